"""Two sub-populations with classes of their own, one of which has more clients than the other."""

from collections.abc import Sequence

import numpy as np

from tff_het.kinds import Label, Whole
from tff_het.partitions import class_shards
from tff_het.partitions.assignment import Assignment, Examples, require_shards

MAJORITY, MINORITY = "majority", "minority"


def multimodal(
    train: Examples,
    test: Examples,
    rng: np.random.Generator,
    *,
    num_clients: int | None,
    minority_classes: Sequence[Label] | None = None,
    minority_clients: Whole | None = None,
    shards_per_client: Whole = 2,
) -> Assignment:
    """Makes two sub-populations with classes of their own (WAFFLe 2020, appendix B.2).

    The classes of either group are cut into shards of one class each, as many as the group's
    clients get, equally many of each class (up to one, where the classes do not divide them). All
    shards of both groups have one size, the largest for which there are enough examples; what is
    left over is drawn at random and belongs to nobody. Test examples are cut into as many shards of
    the same classes, all of one size as well.

    Args:
      train: Training examples; `y` decides.
      test: Test examples.
      rng: Source of all random draws.
      num_clients: Number of clients of both groups together (N_1 + N_2).
      minority_classes: Required: the classes of the minority; all others are the majority's.
      minority_clients: Required: how many clients are the minority (N_2).
      shards_per_client: Shards of each client (Z).

    Returns:
      Clients 'majority_0', ..., 'minority_0', ..., the majority first, and their groups.

    Raises:
      ValueError: A group has no clients or no classes, or there are fewer examples than shards.
    """
    present = np.unique(train["y"]).tolist()
    groups = _groups(present, minority_classes, num_clients, minority_clients)
    num_clients = sum(size for _, size in groups.values())
    require_shards(num_clients, shards_per_client, len(train["y"]))
    counts: dict[int, int] = {}
    orders = []
    for classes, size in groups.values():
        num_shards = size * shards_per_client
        orders.append(sum(counts.values()) + rng.permutation(num_shards))
        counts |= class_shards.shards_of_classes(train["y"], classes, num_shards)
    order = np.concatenate(orders)

    def cut(labels: np.ndarray) -> list[np.ndarray]:
        # The largest that all shards can have.
        fitting = (np.count_nonzero(labels == y) // count for y, count in counts.items() if count)
        return class_shards.deal(
            class_shards.cut(labels, counts, rng, min(fitting)), order, shards_per_client
        )

    sizes = {group: size for group, (_, size) in groups.items()}
    return Assignment(
        train=cut(train["y"]),
        test=cut(test["y"]),
        client_ids=[f"{group}_{k}" for group, size in sizes.items() for k in range(size)],
        groups=[group for group, size in sizes.items() for _ in range(size)],
    )


def _groups(
    present: list[int],
    minority_classes: Sequence[Label] | None,
    num_clients: int | None,
    minority_clients: Whole | None,
) -> dict[str, tuple[list[int], int]]:
    """Classes and number of clients of each group."""
    minority = list(minority_classes or ())
    if not minority or len(set(minority)) < len(minority) or not set(minority) < set(present):
        raise ValueError(
            f"minority_classes must be different ones of the classes in the data, {present}, and"
            f" not all; found {minority}."
        )
    if num_clients is None or num_clients < 2:
        raise ValueError(
            f"num_clients must be 2 or more, those of both groups together; found {num_clients}."
        )
    if minority_clients is None or not 1 <= minority_clients < num_clients:
        raise ValueError(
            f"minority_clients must be from 1 to {num_clients - 1}, so that both groups have"
            f" clients; found {minority_clients}."
        )
    majority = [label for label in present if label not in minority]
    return {
        MAJORITY: (majority, num_clients - minority_clients),
        MINORITY: (minority, minority_clients),
    }
