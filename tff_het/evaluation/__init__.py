"""Evaluation: how good each client's model is, how fair that is, and what travelled for it."""
