"""Training examples that the server keeps, and no client gets."""

from typing import NamedTuple

import numpy as np

from tff_het import seeding


class AtServer(NamedTuple):
    """Training examples split between clients and server; each is in exactly one part.

    Attributes:
      initial: Indices int64 ascending of those that the server trains on before the first round.
      selection: Of those that it evaluates models on.
      clients: Of those that are left for clients.
    """

    initial: np.ndarray
    selection: np.ndarray
    clients: np.ndarray


def set_apart(num_examples: int, *, initial: int, selection: int, seed: int) -> AtServer:
    """Draws the server's examples at random, before any are assigned.

    Which the initial ones are does not depend on how many there are for selection.

    Args:
      num_examples: How many training examples there are.
      initial: How many the server trains on, 0 or more.
      selection: How many it evaluates on, 0 or more.
      seed: The seed of the run.

    Raises:
      ValueError: If a number is negative, or none are left for clients.
    """
    if min(initial, selection) < 0 or initial + selection >= num_examples:
        raise ValueError(
            "The server's examples are 0 or more, and fewer than there are; found "
            f"{initial} for initial training and {selection} for selection, of {num_examples}."
        )
    order = seeding.generator(seed, seeding.SERVER_EXAMPLES).permutation(num_examples)
    cuts = [initial, initial + selection]
    return AtServer(*(np.sort(part).astype(np.int64) for part in np.split(order, cuts)))
