"""Runtimes, cohorts, client states, checkpoints, and the one training loop."""
