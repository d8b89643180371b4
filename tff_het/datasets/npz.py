"""A user's own arrays, from one `.npz` file."""

import pathlib

import numpy as np

from tff_het.datasets import files
from tff_het.datasets.dataset import Dataset

_REQUIRED = ("x_train", "y_train", "x_test", "y_test")
_HOW = (
    "Write it with np.savez(path, x_train=..., y_train=..., x_test=..., y_test=...), plus"
    " <column>_train and <column>_test for further columns and class_names if wanted."
)


@files.explained(_HOW)
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
        raise files.MissingError("'npz' is read from a file of yours: pass it as data_dir.")
    path = data_dir if data_dir.is_file() else files.find(data_dir / "npz", "data.npz")
    arrays = files.read_npz(path, _REQUIRED)
    splits: dict[str, dict[str, np.ndarray]] = {"train": {}, "test": {}}
    for key, array in arrays.items():
        column, _, split = key.rpartition("_")
        if key == "class_names":
            continue
        if not column or split not in splits:
            expected = "arrays <column>_train, <column>_test and class_names"
            raise files.corrupt(path, expected, repr(key))
        splits[split][column] = _converted(path, key, column, array)
    labels = np.concatenate([columns["y"] for columns in splits.values()])
    class_names = files.class_names(path, labels, arrays.get("class_names"), "class_names")
    return Dataset("npz", splits["train"], splits["test"], class_names, f"file {path}")


def _converted(path: pathlib.Path, key: str, column: str, array: np.ndarray) -> np.ndarray:
    """The array in the dtype that a `Dataset` holds."""
    if column == "y":
        if not array.size:
            raise files.corrupt(path, f"{key} as integers [n], n > 0", list(array.shape))
        return files.whole_numbers(path, key, array)
    with np.errstate(over="ignore"):  # What becomes infinite is refused by `Dataset`.
        return array.astype(np.float32) if (column, array.dtype) == ("x", np.float64) else array
