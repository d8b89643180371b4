"""A few shards of the examples sorted by label for each client: few classes at each."""

import numpy as np

from tff_het.kinds import Whole
from tff_het.partitions import class_shards
from tff_het.partitions.assignment import Assignment, Examples, require_count, require_shards


def shards(
    train: Examples,
    test: Examples,
    rng: np.random.Generator,
    *,
    num_clients: int | None,
    shards_per_client: Whole = 2,
    single_class: bool = False,
) -> Assignment:
    """Gives each client a few shards of the examples sorted by label (McMahan et al. 2017).

    The examples sorted by label are cut into num_clients * shards_per_client shards of equal size,
    assigned at random. The test examples are cut into as many shards; shard i of both goes to one
    client, so that a client is tested on what it was trained on (up to a shard's edge where
    train and test hold classes in different proportions). What remains of a division, fewer
    examples than shards, is drawn at random and belongs to nobody.

    Args:
      train: Training examples; `y` decides.
      test: Test examples.
      rng: Source of all random draws.
      num_clients: Number of clients.
      shards_per_client: Shards of each client.
      single_class: Cut each class by itself, so that no shard has examples of two (WAFFLe, 2020,
        appendix B.1). All classes are cut into equally many shards (up to one, where the classes do
        not divide them), which are of equal size within a class only.

    Raises:
      ValueError: There are fewer training examples than shards, of a class with `single_class`, or
        a count is below 1.
    """
    num_train = len(train["y"])
    num_clients = require_count(num_clients, num_train, "training examples")
    num_shards = require_shards(num_clients, shards_per_client, num_train)
    order = rng.permutation(num_shards)
    if single_class:
        classes = np.unique(train["y"]).tolist()
        counts = class_shards.shards_of_classes(train["y"], classes, num_shards)

    def cut(labels: np.ndarray) -> list[np.ndarray]:
        if single_class:
            pieces = class_shards.cut(labels, counts, rng)
        else:
            size = len(labels) // num_shards
            kept = np.sort(rng.permutation(len(labels))[: size * num_shards])
            by_label = kept[np.argsort(labels[kept], kind="stable")]
            pieces = list(by_label.reshape(num_shards, size))
        return class_shards.deal(pieces, order, shards_per_client)

    return Assignment(train=cut(train["y"]), test=cut(test["y"]))
