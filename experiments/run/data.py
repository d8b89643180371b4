"""From a config to examples, and to who holds them: all that needs no network and no training."""

from pathlib import Path
from typing import Any, NamedTuple

from experiments.run.config import RunConfig
from tff_het import datasets, partitions

_last: list[Any] = []  # What was asked for last, and the data set.


class Dealt(NamedTuple):
    """A data set, and which client holds which of its examples."""

    dataset: datasets.Dataset
    partition: partitions.Partition
    # Training examples of no client: the server may train on some, and evaluate models on others.
    initial: datasets.Examples | None = None
    selection: datasets.Examples | None = None


def load(name: str, data_dir: str | None, **options) -> datasets.Dataset:
    """As `datasets.load`; the last one is kept, since runs of one program often share it."""
    key = name, data_dir, _stamp(name, data_dir), options
    if not _last or _last[0] != key:
        _last[:] = key, datasets.load(name, data_dir, **options)
    return _last[1]


def _stamp(name: str, data_dir: str | None) -> tuple[tuple[str, int, int], ...]:
    """What tells files from those that were there before: names, times and sizes."""
    if data_dir is None:
        return ()
    root = Path(data_dir).expanduser()
    inside = (file for own in (name, "train", "test") for file in (root / own).rglob("*"))
    files = [root, *root.glob("*"), *inside] if root.is_dir() else [root]
    found = [(str(file), file.stat()) for file in sorted(files) if file.is_file()]
    return tuple((path, stat.st_mtime_ns, stat.st_size) for path, stat in found)


def deal(config: RunConfig) -> Dealt:
    """Loads the data set that the config names, and assigns its examples.

    Raises:
      ValueError: If settings do not fit the data.
      FileNotFoundError: If files are missing.
    """
    data = config.data
    try:
        dataset = load(data.dataset, data.data_dir, **config.given_to(data.dataset))
    except RuntimeError as error:  # A download failed.
        raise ValueError(error) from error
    if data.positive_label is not None:
        dataset = dataset.one_against_rest(data.positive_label)
    if data.merge_test:
        dataset = dataset.with_test_in_train()
    at_server = partitions.set_apart(
        len(dataset.train["y"]),
        initial=data.initial_examples,
        selection=data.selection_examples,
        seed=config.partition_seed,
    )
    kept = (
        {name: column[own] for name, column in dataset.train.items()} if len(own) else None
        for own in (at_server.initial, at_server.selection)
    )
    common = {
        "num_clients": data.num_clients,
        "seed": config.partition_seed,
        "allow_empty_test": data.allow_empty_test,
        # Without any at the server, no copy of all the others is made.
        "among": at_server.clients if len(at_server.clients) < len(dataset.train["y"]) else None,
        **config.given_to(data.partition),
    }
    try:
        if data.local_test_fraction is not None:
            divided = partitions.make_with_local_test(
                data.partition, dataset, fraction=data.local_test_fraction, **common
            )
            return Dealt(*divided, *kept)
        partition = partitions.make(data.partition, dataset.train, dataset.test, **common)
    except ValueError as error:
        raise ValueError(f"--partition={data.partition}: {error}") from error
    return Dealt(dataset, partition, *kept)
