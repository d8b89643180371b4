"""Examples assigned to clients at random: every client sees the same distribution."""

import numpy as np

from tff_het.partitions.assignment import Assignment, Examples, require_count


def iid(
    train: Examples, test: Examples, rng: np.random.Generator, *, num_clients: int | None
) -> Assignment:
    """Shuffles the examples and cuts them into parts whose sizes differ by at most 1.

    Args:
      train: Training examples.
      test: Test examples.
      rng: Source of all random draws.
      num_clients: Number of clients.

    Raises:
      ValueError: There are fewer training examples than clients.
    """
    num_clients = require_count(num_clients, len(train["y"]), "training examples")
    return Assignment(
        train=np.array_split(rng.permutation(len(train["y"])), num_clients),
        test=np.array_split(rng.permutation(len(test["y"])), num_clients),
    )
