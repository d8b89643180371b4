"""Clients as they are in nature: by a column that says who or where an example comes from."""

import numpy as np

from tff_het.partitions.assignment import (
    Assignment,
    Examples,
    indices_by_owner,
    owners_by_value,
    require_count,
)


def groups(
    train: Examples,
    test: Examples,
    rng: np.random.Generator,
    *,
    num_clients: int | None,
    column: str = "writer",
    max_groups: int | None = None,
) -> Assignment:
    """Gives all examples of a group (a writer, a network) to one client.

    Args:
      train: Training examples; the groups in its `column` are those that are dealt.
      test: Test examples; those of other groups belong to nobody.
      rng: Source of all random draws.
      num_clients: Number of clients: groups are shuffled and dealt as evenly as possible (HDAFL,
        Yang et al. 2020: 2,000 writers on 100 clients). None makes each group a client of its own,
        named after it ('writer_12').
      column: The column of group ids.
      max_groups: Use at most this many groups, drawn at random; None uses all.

    Raises:
      ValueError: There is no such column, or there are more clients than groups.
    """
    if column not in train or column not in test:
        raise ValueError(
            f"column must be one of the columns {sorted(set(train) & set(test))}; found {column!r}."
        )
    for split, ids in (("train", train[column]), ("test", test[column])):
        if ids.ndim != 1:
            raise ValueError(
                f"column {column!r} must hold one id per example; found shape {list(ids.shape)} in"
                f" {split}."
            )
    ids = np.unique(train[column])
    if max_groups is not None:
        if max_groups < 1:
            raise ValueError(f"max_groups must be 1 or more; found {max_groups}.")
        ids = np.sort(rng.permutation(ids)[:max_groups])
    if num_clients is None:
        dealt = [[group] for group in ids.tolist()]
        client_ids = [f"{column}_{group}" for group in ids.tolist()]
    else:
        num_clients = require_count(num_clients, len(ids), f"groups in column {column!r}")
        dealt = [part.tolist() for part in np.array_split(rng.permutation(ids), num_clients)]
        client_ids = None
    owner_of = {group: client for client, own in enumerate(dealt) for group in own}
    return Assignment(
        train=indices_by_owner(owners_by_value(train[column], owner_of), len(dealt)),
        test=indices_by_owner(owners_by_value(test[column], owner_of), len(dealt)),
        client_ids=client_ids,
    )
