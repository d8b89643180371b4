"""Each class at one client only."""

from collections.abc import Sequence

import numpy as np

from tff_het.kinds import Label
from tff_het.partitions.assignment import Assignment, Examples, indices_by_value, require_count


def disjoint_classes(
    train: Examples,
    test: Examples,
    rng: np.random.Generator,
    *,
    num_clients: int | None,
    classes: Sequence[Sequence[Label]] | None = None,
) -> Assignment:
    """Gives all examples of a class to one client.

    Args:
      train: Training examples; the classes in its `y` are those that are assigned.
      test: Test examples; those of classes that no client has belong to nobody.
      rng: Source of all random draws.
      num_clients: Number of clients. May be None where `classes` says it.
      classes: The classes of each client, as a flag in quotes, '0,1;2,3;4,5,6;7,8,9' (Qian et
        al. 2019); classes in none of the lists belong to nobody. None shuffles the classes and
        assigns them as evenly as possible.

    Raises:
      ValueError: There are more clients than classes, or `classes` does not fit the clients and
        the labels.
    """
    present = np.unique(train["y"])
    if classes is None:
        num_clients = require_count(num_clients, len(present), "classes in the training examples")
        dealt = [part.tolist() for part in np.array_split(rng.permutation(present), num_clients)]
    else:
        dealt = [list(own) for own in classes]
        _check_classes(dealt, num_clients, present.tolist())
    return Assignment(indices_by_value(train["y"], dealt), indices_by_value(test["y"], dealt))


def _check_classes(dealt: list[list[int]], num_clients: int | None, present: list[int]) -> None:
    if num_clients not in (None, len(dealt)):
        raise ValueError(
            f"classes must hold one list per client, {num_clients}; found {len(dealt)} lists."
        )
    if not dealt or not all(dealt):
        raise ValueError(f"Each client needs at least one class; found classes={dealt}.")
    flat = [label for own in dealt for label in own]
    twice = sorted({label for label in flat if flat.count(label) > 1})
    if twice:
        raise ValueError(f"classes must name each class at most once; found {twice} repeatedly.")
    absent = sorted(set(flat) - set(present))
    if absent:
        raise ValueError(f"classes must be among those in the data, {present}; found {absent}.")
