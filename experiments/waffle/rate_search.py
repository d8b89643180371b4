"""Searches the learning rate of WAFFLe's posteriors on validation examples."""

from experiments.waffle import q_search

EXPERIMENT = q_search.search(
    "rate_search",
    "Not in the paper: the learning rate of the posteriors",
    "WAFFLe",
    "posterior_rate",
    ("1", "1000", "10000", "100000", "1000000"),
    ("100000", "1000", "1"),
    "(MNIST, unimodal) Posteriors that learn faster than everything else do better.",
)
