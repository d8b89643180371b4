"""Clients as they are in nature: by a column that says who or where an example comes from."""

import functools

import numpy as np

from tff_het.kinds import Count, Whole
from tff_het.partitions.assignment import Assignment, Examples, indices_by_value, require_count


def groups(
    train: Examples,
    test: Examples,
    rng: np.random.Generator,
    *,
    num_clients: int | None,
    column: str = "writer",
    max_groups: Whole | None = None,
    shared_classes: Count | None = None,
) -> Assignment:
    """Gives all examples of a group (a writer, a network) to one client.

    Args:
      train: Training examples; the groups in its `column` are those that are assigned.
      test: Test examples; those of other groups belong to nobody.
      rng: Source of all random draws.
      num_clients: Number of clients: groups are shuffled and assigned as evenly as possible (HDAFL,
        Yang et al. 2020: 2,000 writers on 100 clients). None makes each group a client of its own,
        named after it ('writer_12').
      column: The column of group ids.
      max_groups: Use at most this many groups, drawn at random; None uses all.
      shared_classes: How many classes stay with all clients, drawn at random from those that all
        have training examples of. Each of the others is kept by one client and removed from the
        rest, train and test alike, as evenly as the groups allow; what is removed belongs to
        nobody. None removes nothing.

    Raises:
      ValueError: There is no such column, there are more clients than groups, or fewer classes
        that all clients hold than `shared_classes`.
    """
    if column not in train or column not in test:
        raise ValueError(
            f"column must be one of the columns {sorted(set(train) & set(test))}; found {column!r}."
            " Choose it, a data set that names groups, or another partition."
        )
    for split, ids in (("train", train[column]), ("test", test[column])):
        if ids.ndim != 1:
            raise ValueError(
                f"column {column!r} must hold one id per example; found shape {list(ids.shape)} in"
                f" {split}."
            )
    ids = np.unique(train[column])
    if max_groups is not None:
        ids = np.sort(rng.permutation(ids)[:max_groups])
    if num_clients is None:
        dealt = [[group] for group in ids.tolist()]
        client_ids = [f"{column}_{group}" for group in ids.tolist()]
    else:
        num_clients = require_count(num_clients, len(ids), f"groups in column {column!r}")
        dealt = [part.tolist() for part in np.array_split(rng.permutation(ids), num_clients)]
        client_ids = None
    owned_train, owned_test = (indices_by_value(of[column], dealt) for of in (train, test))
    if shared_classes is not None:
        held = [np.unique(train["y"][own]) for own in owned_train]
        kept = _deal_classes(held, shared_classes, rng)
        owned_train = _of_classes(owned_train, train["y"], kept)
        owned_test = _of_classes(owned_test, test["y"], kept)
    return Assignment(train=owned_train, test=owned_test, client_ids=client_ids)


def _deal_classes(
    held: list[np.ndarray], num_shared: int, rng: np.random.Generator
) -> list[list[int]]:
    """Chooses which of its classes each client keeps."""
    everywhere = functools.reduce(np.intersect1d, held)
    if num_shared > len(everywhere):
        raise ValueError(
            f"shared_classes must be from 0 to {len(everywhere)}, the number of classes that all"
            f" clients hold; found {num_shared}."
        )
    shared = rng.permutation(everywhere)[:num_shared].tolist()
    kept: list[list[int]] = [[] for _ in held]
    others = np.setdiff1d(np.concatenate(held), shared)
    holders = {label: [c for c, own in enumerate(held) if label in own] for label in others}
    # Those that few clients could take come first, so that the rest can make up for them.
    for label in sorted(rng.permutation(others), key=lambda label: len(holders[label])):
        fewest = min(holders[label], key=lambda client: len(kept[client]))
        kept[fewest].append(int(label))
    return [shared + own for own in kept]


def _of_classes(
    owned: list[np.ndarray], labels: np.ndarray, kept: list[list[int]]
) -> list[np.ndarray]:
    pairs = zip(owned, kept, strict=True)
    return [indices[np.isin(labels[indices], classes)] for indices, classes in pairs]
