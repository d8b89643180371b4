"""What one partition function gives, and the checks and cuts that several of them share."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

Examples = Mapping[str, np.ndarray]
"""Columns of equal leading dimension n; the labels are in `y`."""


class Assignment(NamedTuple):
    """The examples of each client, as partition functions give them.

    Attributes:
      train: For each client the indices of its training examples, in any order.
      test: The same for its test examples.
      client_ids: A name for each client; None for 'client_0', 'client_1', ...
      groups: The sub-population that each client is of; None where there are none.
    """

    train: Sequence[np.ndarray]
    test: Sequence[np.ndarray]
    client_ids: Sequence[str] | None = None
    groups: Sequence[str] | None = None


def require_count(num_clients: int | None, at_most: int, unit: str) -> int:
    """Returns the number of clients.

    Raises:
      ValueError: It is missing, below 1, or above `at_most`, which is the number of `unit`.
    """
    if num_clients is None:
        raise ValueError("num_clients is needed for this partition; found None.")
    if not 1 <= num_clients <= at_most:
        raise ValueError(
            f"num_clients must be from 1 to {at_most}, the number of {unit}; found {num_clients}."
        )
    return num_clients


def require_shards(num_clients: int, shards_per_client: int, num_train: int) -> int:
    """Returns the number of all clients' shards.

    Raises:
      ValueError: There are more of them than training examples.
    """
    num_shards = num_clients * shards_per_client
    if num_train < num_shards:
        raise ValueError(
            f"{num_clients} clients with {shards_per_client} shards each need {num_shards} training"
            f" examples or more; found {num_train}. Ask for fewer clients or shards."
        )
    return num_shards


def indices_by_owner(owners: np.ndarray, num_clients: int) -> list[np.ndarray]:
    """Turns 'which client owns each example' into 'which examples each client owns'.

    Args:
      owners: int [n], a client's number, or -1 for an example that nobody owns.
      num_clients: Number of clients.

    Returns:
      For each client the sorted indices of its examples.
    """
    order = np.argsort(owners, kind="stable")
    bounds = np.searchsorted(owners[order], np.arange(num_clients + 1))
    return [order[bounds[k] : bounds[k + 1]] for k in range(num_clients)]


def indices_by_value(values: np.ndarray, dealt: Sequence[Sequence[int]]) -> list[np.ndarray]:
    """For each client the sorted indices of the examples whose value (class, group) is its own.

    Args:
      values: [n], numbers.
      dealt: The values of each client.
    """
    owner_of = {value: client for client, own in enumerate(dealt) for value in own}
    kinds, kind = np.unique(values, return_inverse=True)
    owners = np.array([owner_of.get(value, -1) for value in kinds.tolist()], np.int64)
    return indices_by_owner(owners[kind], len(dealt))


def counts_of(totals: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """Examples of each class for each client: int [classes, clients].

    Args:
      totals: int [classes], how many examples there are of each class.
      shares: float [classes, clients], of them; rows sum to 1, or to less.
    """
    bounds = np.rint(np.cumsum(shares, axis=1) * totals[:, None]).astype(np.int64)
    return np.diff(bounds, axis=1, prepend=0)


def by_shares(
    train: Examples,
    test: Examples,
    rng: np.random.Generator,
    classes: np.ndarray,
    shares: np.ndarray,
) -> Assignment:
    """Gives clients shares of each class, of train and test alike.

    Args:
      classes: int [classes], all that `y` has; `rng` draws which of their examples are whose.
      shares: float [classes, clients]; what a row lacks to 1 belongs to nobody.
    """
    owned, tested = (_deal(split["y"], classes, shares, rng) for split in (train, test))
    return Assignment(owned, tested)


def _deal(
    labels: np.ndarray, classes: np.ndarray, shares: np.ndarray, rng: np.random.Generator
) -> list[np.ndarray]:
    counts = counts_of((labels == classes[:, None]).sum(axis=1), shares)
    parts = []
    for label, sizes in zip(classes, counts, strict=True):
        rows = rng.permutation(np.flatnonzero(labels == label))
        parts.append(np.split(rows, np.cumsum(sizes))[:-1])
    return [np.concatenate(own) for own in zip(*parts, strict=True)]
