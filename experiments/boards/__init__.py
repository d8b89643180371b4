"""Boards: tables of methods that other suites publish, run again."""

TITLE = "Boards: published comparisons of other suites, run again, and our own"
MODULES = ("pfllib", "niid_bench", "p_fed_me", "fair", "as_released")
