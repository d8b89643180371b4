"""A user's own arrays, from one `.npz` file."""

import pathlib

import numpy as np

from tff_het.datasets import files
from tff_het.datasets.dataset import Dataset

_REQUIRED = ("x_train", "y_train", "x_test", "y_test")
_SPLITS = ("train", "test")
_HOW = (
    "Write it with np.savez(path, x_train=..., y_train=..., x_test=..., y_test=...), plus"
    " <column>_train and <column>_test for further columns and class_names if wanted."
)


def load(data_dir: pathlib.Path | None) -> Dataset:
    """Loads your own arrays from one `.npz` file.

    Args:
      data_dir: The `.npz` file, or a folder that holds `npz/data.npz`. Its arrays: `x_train` and
        `x_test` (uint8; int16, as packet lengths; float32; or float64, which becomes float32),
        `y_train` and `y_test` (integers from 0), any further `<column>_train` with
        `<column>_test`, and optionally `class_names` (text [classes]; default '0', '1', ... up to
        the largest label).

    Raises:
      FileNotFoundError: There is no such file, or data_dir is None.
      ValueError: The file is corrupt, needs unpickling, or its arrays are not as described.
    """
    if data_dir is None:
        raise FileNotFoundError(f"'npz' is read from a file of yours: pass it as data_dir. {_HOW}")
    path = data_dir if data_dir.is_file() else files.find(data_dir / "npz", ("data.npz",), _HOW)
    arrays = files.read_npz(path, _REQUIRED, _HOW)
    names = arrays.pop("class_names", None)
    train, test = ({}, {})  # type: tuple[dict[str, np.ndarray], dict[str, np.ndarray]]
    for key, array in arrays.items():
        column, _, split = key.rpartition("_")
        if not column or split not in _SPLITS:
            raise files.corrupt(
                path, "arrays <column>_train, <column>_test and class_names", f"{key!r}", _HOW
            )
        (train if split == "train" else test)[column] = _converted(path, key, column, array)
    if names is None:
        class_names = files.classes_of(path, np.concatenate([train["y"], test["y"]]), _HOW)
    else:
        class_names = files.texts(path, "class_names", names, _HOW)
    return Dataset("npz", train, test, class_names, f"file {path}")


def _converted(path: pathlib.Path, key: str, column: str, array: np.ndarray) -> np.ndarray:
    """The array in the dtype that a `Dataset` holds."""
    if column == "y":
        if not array.size:
            raise files.corrupt(path, f"{key} as integers [n], n > 0", f"{list(array.shape)}", _HOW)
        return files.whole_numbers(path, key, array, _HOW)
    with np.errstate(over="ignore"):  # What becomes infinite is refused by `Dataset`.
        return array.astype(np.float32) if array.dtype == np.float64 else array
