"""All data sets by name."""

import os
import pathlib
from collections.abc import Callable
from typing import Any

from tff_het.datasets.dataset import Dataset
from tff_het.registry import Registry

# Each takes a folder, or None to download.
DATASETS: Registry[Callable[..., Dataset]] = Registry(
    "data set",
    {
        "adult": "tff_het.datasets.adult:load",
        "cifar10": "tff_het.datasets.cifar10:load",
        "cifar10_embeddings": "tff_het.datasets.embedded:load_cifar10_embeddings",
        "digits": "tff_het.datasets.digits:load",
        "digits_vqa": "tff_het.datasets.digits_vqa:load",
        "easy_vqa": "tff_het.datasets.easy_vqa:load",
        "embedded": "tff_het.datasets.embedded:load",
        "fashion_mnist": "tff_het.datasets.mnist:load_fashion_mnist",
        "femnist": "tff_het.datasets.femnist:load",
        "fsd_cough": "tff_het.datasets.embedded:load_fsd_cough",
        "mnist": "tff_het.datasets.mnist:load_mnist",
        "npz": "tff_het.datasets.npz:load",
        "omniglot": "tff_het.datasets.omniglot:load",
        "pfllib": "tff_het.datasets.pfllib:load",
        "traffic": "tff_het.datasets.traffic:load",
        "vqa": "tff_het.datasets.vqa:load",
    },
)


def names() -> tuple[str, ...]:
    """The names that `load` knows, sorted."""
    return tuple(sorted(DATASETS))


def load(name: str, data_dir: str | os.PathLike[str] | None = None, **options: Any) -> Dataset:
    """Loads a data set.

    Args:
      name: One of `names()`.
      data_dir: The folder that holds a folder per data set (`<data_dir>/mnist/...`) with its
        original files; for `npz` the `.npz` file itself or a folder with `npz/data.npz`. None
        downloads where that is possible (`digits` and `digits_vqa` come with scikit-learn and need
        neither).
      **options: Options of the data set, see its function.

    Returns:
      The data set.

    Raises:
      ValueError: The name is unknown, or a file is truncated, corrupt or of another form.
      FileNotFoundError: A file or folder is missing.
      RuntimeError: A download failed.
    """
    loader = DATASETS[name]
    root = None if data_dir is None else pathlib.Path(data_dir).expanduser()
    if root is not None and not root.exists():
        expected = "your .npz file" if name == "npz" else f"the folder that holds {name!r}'s files"
        raise FileNotFoundError(f"data_dir {str(root)!r} does not exist: expected {expected}.")
    return loader(root, **options)
