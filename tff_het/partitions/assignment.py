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
    """Checks the number of clients.

    Args:
      num_clients: What the user asked for.
      at_most: How many clients there can be.
      unit: What there are `at_most` of, for the error message ('training examples').

    Returns:
      The number of clients.

    Raises:
      ValueError: The number is missing, below 1, or above `at_most`.
    """
    if num_clients is None:
        raise ValueError("num_clients is needed for this partition; found None.")
    if not 1 <= num_clients <= at_most:
        raise ValueError(
            f"num_clients must be from 1 to {at_most}, the number of {unit}; found {num_clients}."
        )
    return num_clients


def require_shards(num_clients: int, shards_per_client: int, num_train: int) -> int:
    """Checks how many shards a client gets.

    Args:
      num_clients: How many clients there are.
      shards_per_client: What the user asked for.
      num_train: How many training examples there are.

    Returns:
      The number of all clients' shards.

    Raises:
      ValueError: A client gets less than one, or there are more shards than training examples.
    """
    if shards_per_client < 1:
        raise ValueError(f"shards_per_client must be 1 or more; found {shards_per_client}.")
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


def owners_by_value(values: np.ndarray, owner_of: Mapping[int, int]) -> np.ndarray:
    """The owner of each example where a value (its class, its group) decides: int [n], -1: nobody.

    Args:
      values: [n], numbers.
      owner_of: Value -> number of the client.
    """
    kinds, kind = np.unique(values, return_inverse=True)
    owner = np.array([owner_of.get(value, -1) for value in kinds.tolist()], np.int64)
    return owner[kind]
