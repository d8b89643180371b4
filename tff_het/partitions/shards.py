"""A few shards of the examples sorted by label for each client: few classes at each."""

import numpy as np

from tff_het.partitions.assignment import Assignment, Examples, require_count


def shards(
    train: Examples,
    test: Examples,
    rng: np.random.Generator,
    *,
    num_clients: int | None,
    shards_per_client: int = 2,
) -> Assignment:
    """The pathological non-i.i.d. partition of McMahan et al. 2017.

    The examples sorted by label are cut into num_clients * shards_per_client shards of equal size,
    dealt at random. The test examples are cut into as many shards, and shard i of both goes to the
    same client, so that a client is tested on what it was trained on (up to a shard's edge where
    train and test hold classes in different proportions). What remains of a division, fewer
    examples than shards, is drawn at random and belongs to nobody.

    Args:
      train: Training examples; `y` decides.
      test: Test examples.
      rng: Source of all random draws.
      num_clients: Number of clients.
      shards_per_client: Shards of each client.

    Raises:
      ValueError: There are fewer training examples than shards, or a count is below 1.
    """
    if shards_per_client < 1:
        raise ValueError(f"shards_per_client must be 1 or more; found {shards_per_client}.")
    num_train = len(train["y"])
    num_clients = require_count(num_clients, num_train, "training examples")
    num_shards = num_clients * shards_per_client
    if num_train < num_shards:
        raise ValueError(
            f"{num_clients} clients with {shards_per_client} shards each need {num_shards} training"
            f" examples or more; found {num_train}. Ask for fewer clients or shards."
        )
    shard_of_client = rng.permutation(num_shards).reshape(num_clients, shards_per_client)

    def cut(labels: np.ndarray) -> list[np.ndarray]:
        size = len(labels) // num_shards
        kept = np.sort(rng.permutation(len(labels))[: size * num_shards])
        by_label = kept[np.argsort(labels[kept], kind="stable")].reshape(num_shards, size)
        return [by_label[own].reshape(-1) for own in shard_of_client]

    return Assignment(train=cut(train["y"]), test=cut(test["y"]))
