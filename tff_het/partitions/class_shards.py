"""Shards of one class each: what several partitions cut and deal."""

from collections.abc import Sequence

import numpy as np


def shards_of_classes(
    labels: np.ndarray, classes: Sequence[int], num_shards: int
) -> dict[int, int]:
    """Returns how many of `num_shards` shards each class is cut into.

    As evenly as possible: where the classes do not divide the shards, those with most examples are
    cut into one more. With fewer shards than classes the others have none.

    Args:
      labels: Those of the training examples, int [n]: the largest classes follow from them.
      classes: The classes.
      num_shards: How many shards there are in all.

    Raises:
      ValueError: A class has fewer examples than shards.
    """
    sizes = [np.count_nonzero(labels == label) for label in classes]
    largest_first = np.argsort(-np.array(sizes), kind="stable")
    each, more = divmod(num_shards, len(classes))
    counts = dict.fromkeys(classes, each)
    for place in largest_first[:more]:
        counts[classes[place]] += 1
    for label, size in zip(classes, sizes, strict=True):
        if size < counts[label]:
            raise ValueError(
                f"Class {label} has {size} training examples, fewer than the {counts[label]} "
                "shards it is to be cut into. Ask for fewer clients or shards."
            )
    return counts


def cut(
    labels: np.ndarray,
    counts: dict[int, int],
    rng: np.random.Generator,
    size: int | None = None,
) -> list[np.ndarray]:
    """Cuts each class into shards of equal size.

    Args:
      labels: int [n].
      counts: Class -> number of its shards.
      rng: Draws which examples are in which shard, and which are left over.
      size: Examples in a shard; by default as many as there are of the class, so that shards of
        different classes differ in size.

    Returns:
      The indices of each shard's examples, class after class.
    """
    shards = []
    for label, count in counts.items():
        rows = rng.permutation(np.flatnonzero(labels == label))
        length = len(rows) // max(count, 1) if size is None else size
        shards += list(rows[: count * length].reshape(count, length))
    return shards


def deal(
    shards: Sequence[np.ndarray], order: np.ndarray, shards_per_client: int
) -> list[np.ndarray]:
    """Returns the examples of each client: of the shards in `order`, this many each."""
    return [
        np.concatenate([shards[place] for place in own])
        for own in order.reshape(-1, shards_per_client)
    ]
