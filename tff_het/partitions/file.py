"""A finished split, from a file."""

import numpy as np

from tff_het.partitions.assignment import Assignment, Examples
from tff_het.partitions.partition import Partition, digest_of


def file(
    train: Examples,
    test: Examples,
    rng: np.random.Generator,
    *,
    num_clients: int | None,
    path: str = "",
) -> Assignment:
    """Takes the split of a file, such as the `partition.npz` of a run.

    With a `local_test_fraction` that run made its own test part, which no file of the data has: its
    split is refused. So is any together with training examples that no client gets.

    Args:
      train: Training examples; the file was made for as many.
      test: Test examples; likewise.
      rng: Not used.
      num_clients: The file's number of clients; None takes it from there.
      path: The `.npz` file, as `Partition.save` writes it.

    Raises:
      FileNotFoundError: There is no such file.
      ValueError: The file is no partition, or was made for other examples or clients.
    """
    del rng
    if not path:
        raise ValueError("The partition file reads a file: give --file.path, such as split.npz.")
    found = Partition.load(path)
    for split, size, examples in (
        ("training", found.num_train, train),
        ("test", found.num_test, test),
    ):
        if size != len(examples["y"]):
            raise ValueError(
                f"Partition {path} was made for {size} {split} examples; found "
                f"{len(examples['y'])}. Give the data set that it was made for."
            )
    if found.labels and found.labels != digest_of(train["y"], test["y"]):
        raise ValueError(
            f"Partition {path} was made for other labels, or another order of them. Give the data "
            "set that it was made for."
        )
    if num_clients not in (None, len(found.client_ids)):
        raise ValueError(
            f"Partition {path} has {len(found.client_ids)} clients; found num_clients="
            f"{num_clients}. Leave it out."
        )
    return Assignment(found.train, found.test, found.client_ids, found.groups or None)
