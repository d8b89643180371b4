"""Attacks on clients' data, by who holds exactly what travels: membership inference, inversion."""
