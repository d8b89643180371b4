"""Flags in groups, one module each; only programs read them."""
