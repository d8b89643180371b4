"""All partitions by name."""

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from tff_het import seeding
from tff_het.partitions.assignment import Assignment, Examples
from tff_het.partitions.partition import Partition, Parts, digest_of
from tff_het.registry import Registry

# Each is a pure function of (train, test, rng, num_clients, options of its own).
PARTITIONS: Registry[Callable[..., Assignment]] = Registry(
    "partition",
    {
        "clusters": "tff_het.partitions.clusters:clusters",
        "dirichlet": "tff_het.partitions.dirichlet:dirichlet",
        "disjoint_classes": "tff_het.partitions.disjoint_classes:disjoint_classes",
        "file": "tff_het.partitions.file:file",
        "groups": "tff_het.partitions.groups:groups",
        "iid": "tff_het.partitions.iid:iid",
        "multimodal": "tff_het.partitions.multimodal:multimodal",
        "niid_bench_classes": "tff_het.partitions.as_released:niid_bench_classes",
        "p_fed_me_classes": "tff_het.partitions.as_released:p_fed_me_classes",
        "pfllib_classes": "tff_het.partitions.as_released:pfllib_classes",
        "shards": "tff_het.partitions.shards:shards",
    },
)
_COMMON = ("train", "test", "rng", "num_clients")


def names() -> tuple[str, ...]:
    """The names that `make` knows, sorted."""
    return tuple(sorted(PARTITIONS))


def make(
    name: str,
    train: Examples,
    test: Examples,
    *,
    num_clients: int | None,
    seed: int,
    allow_empty_test: bool = False,
    among: np.ndarray | None = None,
    **options: Any,
) -> Partition:
    """Divides the examples of a data set among clients.

    Train and test are divided alike: a client's test examples follow the distribution of its own
    training examples.

    Args:
      name: One of `names()`.
      train: Training examples: columns of equal length, labels in `y`.
      test: Test examples.
      num_clients: Number of clients; None where the partition follows from something else.
      seed: Decides, with `name` and the options, every random draw.
      allow_empty_test: Accept clients without test examples.
      among: Indices of the training examples that are assigned; the others belong to nobody. All by
        default.
      **options: Options of the partition, see its function.

    Returns:
      The partition; its `options` are those that were used, defaults included.

    Raises:
      ValueError: Name, options or numbers do not fit, or a client is left without training
        examples, or without test examples where `allow_empty_test` is False.
      FileNotFoundError: The file of the partition `file` is missing.
    """
    function = PARTITIONS[name]
    parameters = inspect.signature(function).parameters
    accepted = {key: p.default for key, p in parameters.items() if key not in _COMMON}
    unknown = sorted(set(options) - set(accepted))
    if unknown:
        raise ValueError(
            f"Partition {name!r} has no option {', '.join(unknown)}: expected one of"
            f" {', '.join(accepted) or '(it has none)'}."
        )
    for parameter in PARTITIONS.parameters(name):
        parameter = parameter._replace(optional=parameter.default is None)
        try:
            value = parameter.parsed(options.get(parameter.name, parameter.default))
            options |= {parameter.name: value} if parameter.name in options else {}
        except ValueError as error:
            raise ValueError(f"{parameter.name}: {error}.") from error
    if name == "file" and among is not None:
        raise ValueError(
            "a file assigns all training examples: leave out those that no client gets "
            "(initial_examples, selection_examples)."
        )
    rng = seeding.generator(seed, seeding.PARTITION)
    dealt = train if among is None else {key: column[among] for key, column in train.items()}
    assignment = function(dealt, test, rng, num_clients=num_clients, **options)
    train_parts = assignment.train if among is None else [among[own] for own in assignment.train]
    client_ids = assignment.client_ids
    if client_ids is None:
        client_ids = [f"client_{k}" for k in range(len(assignment.train))]
    return Partition(
        name=name,
        seed=int(seed),
        client_ids=tuple(client_ids),
        train=Parts.of(train_parts),
        test=Parts.of(assignment.test),
        num_train=len(train["y"]),
        num_test=len(test["y"]),
        options={**accepted, **options},
        allow_empty_test=allow_empty_test,
        groups=tuple(assignment.groups or ()),
        labels=digest_of(train["y"], test["y"]),
    )
