"""Clients whose test examples are cut from their own training examples."""

import dataclasses

import numpy as np

from tff_het import seeding
from tff_het.datasets import Dataset, Examples
from tff_het.partitions.partition import Partition, Parts, digest_of
from tff_het.partitions.registry import make


def make_with_local_test(
    name: str,
    dataset: Dataset,
    *,
    fraction: float,
    num_clients: int | None,
    seed: int,
    allow_empty_test: bool = False,
    **options,
) -> tuple[Dataset, Partition]:
    """Assigns the training examples alone, and cuts each client's own into train and test.

    Args:
      name: As `make` takes it.
      dataset: Its test examples are not used.
      fraction: In (0, 1): the nearest whole number to this share of a client's examples, drawn at
        random, is what it is tested on, but one is always left to train on.
      num_clients: As `make` takes it.
      seed: Likewise; it decides which examples are cut off too.
      allow_empty_test: Likewise.
      **options: Options of the partition, and `among` as `make` takes it.

    Returns:
      A data set without the old test examples, in which the examples that are cut off are the test
      part and all others, also those that belong to nobody, the training part; and its partition.

    Raises:
      ValueError: The fraction is out of range, no client has a test example, or as `make` does.
    """
    if not 0 < fraction < 1:
        raise ValueError(f"fraction must be between 0 and 1; found {fraction}.")
    nothing = {key: column[:0] for key, column in dataset.test.items()}
    dealt = make(
        name,
        dataset.train,
        nothing,
        num_clients=num_clients,
        seed=seed,
        allow_empty_test=True,
        **options,
    )
    is_test = np.zeros(dealt.num_train, bool)
    for client, own in enumerate(dealt.train):
        rng = seeding.generator(seed, seeding.LOCAL_TEST, client)
        size = min(int(np.rint(fraction * len(own))), len(own) - 1)
        is_test[rng.permutation(own)[:size]] = True
    if not is_test.any():
        largest = max(map(len, dealt.train))
        raise ValueError(
            f"A share of {fraction} of their examples leaves no client one to be tested on: they"
            f" have {largest} at most. Ask for a larger share or fewer clients."
        )
    # Where each example stands in the part that it is in now.
    place = np.where(is_test, np.cumsum(is_test), np.cumsum(~is_test)) - 1
    divided = dataclasses.replace(
        dataset,
        train=_rows(dataset.train, ~is_test),
        test=_rows(dataset.train, is_test),
        source=f"{dataset.source}; a share of {fraction} of each client's training examples as its"
        " test",
    )
    partition = dataclasses.replace(
        dealt,
        train=Parts.of([place[own[~is_test[own]]] for own in dealt.train]),
        test=Parts.of([place[own[is_test[own]]] for own in dealt.train]),
        num_train=int(np.count_nonzero(~is_test)),
        num_test=int(np.count_nonzero(is_test)),
        options={**dealt.options, "local_test_fraction": fraction},
        allow_empty_test=allow_empty_test,
        labels=digest_of(divided.train["y"], divided.test["y"]),
    )
    return divided, partition


def _rows(examples: Examples, chosen: np.ndarray) -> dict[str, np.ndarray]:
    return {key: column[chosen] for key, column in examples.items()}
