"""From flags to examples, and to who holds them: all that needs no network and no training."""

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from absl import flags

from experiments.flags import data as data_flags
from experiments.flags import run as run_flags
from tff_het import datasets, partitions
from tff_het.numbers import Number

_LABEL: Callable[[Any], int] = Number(0, 2**31 - 1, is_whole=True)
# Flag -> (partitions that it belongs to, its option there, how the flag's text is read).
_PARTITION_OPTIONS: dict[str, tuple[tuple[str, ...], str, Callable[[Any], Any]]] = {
    "shards_per_client": (("shards", "multimodal"), "shards_per_client", int),
    "single_class": (("shards",), "single_class", bool),
    "minority_classes": (
        ("multimodal",),
        "minority_classes",
        lambda texts: list(map(_LABEL, texts)),
    ),
    "minority_clients": (("multimodal",), "minority_clients", int),
    "dirichlet_alpha": (("dirichlet",), "alpha", float),
    "dirichlet_min_examples": (("dirichlet",), "min_examples", int),
    "client_classes": (("disjoint_classes",), "classes", lambda text: _classes(text)),
    "group_column": (("groups",), "column", str),
    "max_groups": (("groups",), "max_groups", int),
    "shared_classes": (("groups",), "shared_classes", int),
    "cluster_projection": (("clusters",), "projection", str),
    "cluster_components": (("clusters",), "num_components", int),
    "cluster_assignment": (("clusters",), "assignment", str),
    "shuffle_fraction": (("clusters",), "shuffle_fraction", float),
}


class Dealt(NamedTuple):
    """A data set, and which client holds which of its examples.

    Attributes:
      dataset: The data set.
      partition: Whose which examples are.
      initial: Training examples of no client, on which the server may train; None without any.
      selection: Others, on which it may evaluate models; None without any.
    """

    dataset: datasets.Dataset
    partition: partitions.Partition
    initial: datasets.Examples | None = None
    selection: datasets.Examples | None = None


def load(name: str, data_dir: str | None) -> datasets.Dataset:
    """As `datasets.load`; the last one is kept, since runs of one program often share it."""
    return _load(name, data_dir, _stamp(name, data_dir))


@functools.lru_cache(maxsize=1)
def _load(name: str, data_dir: str | None, stamp: tuple[tuple[str, int, int], ...]):
    return datasets.load(name, data_dir)


def _stamp(name: str, data_dir: str | None) -> tuple[tuple[str, int, int], ...]:
    """What tells files from those that were there before: names, times and sizes."""
    if data_dir is None:
        return ()
    root = Path(data_dir)
    files = [root, *root.glob("*"), *(root / name).rglob("*")] if root.is_dir() else [root]
    found = [(str(file), file.stat()) for file in sorted(files) if file.is_file()]
    return tuple((path, stat.st_mtime_ns, stat.st_size) for path, stat in found)


def deal() -> Dealt:
    """Loads the data set that the flags name, and assigns its examples.

    Raises:
      ValueError: If flags contradict each other or do not fit the data.
      FileNotFoundError: If files are missing.
    """
    options = _partition_options()
    try:
        dataset = load(data_flags.DATASET.value, data_flags.DATA_DIR.value)
    except RuntimeError as error:  # A download failed.
        raise ValueError(error) from error
    if data_flags.POSITIVE_LABEL.value is not None:
        dataset = dataset.one_against_rest(data_flags.POSITIVE_LABEL.value)
    at_server = partitions.set_apart(
        len(dataset.train["y"]),
        initial=data_flags.INITIAL_EXAMPLES.value,
        selection=data_flags.SELECTION_EXAMPLES.value,
        seed=run_flags.SEED.value,
    )
    kept = (_rows(dataset.train, own) for own in (at_server.initial, at_server.selection))
    common = {
        "num_clients": data_flags.NUM_CLIENTS.value,
        "seed": run_flags.SEED.value,
        "allow_empty_test": data_flags.ALLOW_EMPTY_TEST.value,
        # Without any at the server, no copy of all the others is made.
        "among": at_server.clients if len(at_server.clients) < len(dataset.train["y"]) else None,
        **options,
    }
    name, fraction = data_flags.PARTITION.value, data_flags.LOCAL_TEST_FRACTION.value
    if fraction is not None:
        divided = partitions.make_with_local_test(name, dataset, fraction=fraction, **common)
        return Dealt(*divided, *kept)
    partition = partitions.make(name, dataset.train, dataset.test, **common)
    return Dealt(dataset, partition, *kept)


def _rows(examples: datasets.Examples, chosen: np.ndarray) -> datasets.Examples | None:
    return {name: column[chosen] for name, column in examples.items()} if len(chosen) else None


def _partition_options() -> dict[str, Any]:
    given = {}
    for flag, (takers, option, read) in _PARTITION_OPTIONS.items():
        text = flags.FLAGS[flag].value
        if text is None:
            continue
        if data_flags.PARTITION.value not in takers:
            raise ValueError(
                f"--{flag} belongs to --partition={' or '.join(takers)}; found "
                f"--partition={data_flags.PARTITION.value}."
            )
        try:
            given[option] = read(text)
        except ValueError as error:
            given_text = ",".join(text) if isinstance(text, list) else text
            raise ValueError(f"--{flag}={given_text} is not of the form it has: {error}") from error
    return given


def _classes(text: str) -> list[list[int]]:
    return [list(map(_LABEL, part.split(","))) for part in text.split(";")]
