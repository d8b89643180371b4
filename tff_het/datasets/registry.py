"""All data sets by name."""

import functools
import os
import pathlib
from collections.abc import Callable

from tff_het.datasets import (
    adult,
    cifar10,
    digits,
    digits_vqa,
    easy_vqa,
    embedded,
    femnist,
    mnist,
    npz,
    omniglot,
    traffic,
    vqa,
)
from tff_het.datasets.dataset import Dataset

_LOADERS: dict[str, Callable[[pathlib.Path | None], Dataset]] = {
    "adult": adult.load,
    "cifar10": cifar10.load,
    "cifar10_embeddings": embedded.load_cifar10_embeddings,
    "digits": digits.load,
    "digits_vqa": digits_vqa.load,
    "easy_vqa": easy_vqa.load,
    "embedded": embedded.load,
    "fashion_mnist": functools.partial(mnist.load, "fashion_mnist"),
    "femnist": femnist.load,
    "fsd_cough": embedded.load_fsd_cough,
    "mnist": functools.partial(mnist.load, "mnist"),
    "npz": npz.load,
    "omniglot": omniglot.load,
    "traffic": traffic.load,
    "vqa": vqa.load,
}


def names() -> tuple[str, ...]:
    """The names that `load` knows, sorted."""
    return tuple(sorted(_LOADERS))


def load(name: str, data_dir: str | os.PathLike[str] | None = None) -> Dataset:
    """Loads a data set.

    Args:
      name: One of `names()`.
      data_dir: The folder that holds a folder per data set (`<data_dir>/mnist/...`) with its
        original files; for `npz` the `.npz` file itself or a folder with `npz/data.npz`. None
        downloads where that is possible (`digits` and
        `digits_vqa` come with scikit-learn and need neither).

    Returns:
      The data set.

    Raises:
      ValueError: The name is unknown, or a file is truncated, corrupt or of another form.
      FileNotFoundError: A file or folder is missing.
      RuntimeError: A download failed.
    """
    if name not in _LOADERS:
        raise ValueError(f"Unknown data set {name!r}: expected one of {', '.join(names())}.")
    root = None if data_dir is None else pathlib.Path(data_dir).expanduser()
    if root is not None and not root.exists():
        expected = "your .npz file" if name == "npz" else f"the folder that holds {name!r}'s files"
        raise FileNotFoundError(f"data_dir {str(root)!r} does not exist: expected {expected}.")
    return _LOADERS[name](root)
