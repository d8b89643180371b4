"""Per-client folders as PFLlib (Zhang et al. 2023) writes them."""

import io
import pathlib
import pickle
import zipfile
from typing import Any

import numpy as np

from tff_het.datasets import files
from tff_het.datasets.dataset import Dataset

_HOW = (
    "Give the folder of one of PFLlib's data sets, which holds train/0.npz, train/1.npz, ... and "
    "test/0.npz, test/1.npz, ..."
)
_ARRAYS = ("_reconstruct", "scalar")
_MODULES = ("numpy.core.multiarray", "numpy._core.multiarray")


class _Arrays(pickle.Unpickler):
    """Reads dictionaries of arrays, and refuses whatever else could run code."""

    def find_class(self, module: str, name: str) -> Any:
        if module in _MODULES and name in _ARRAYS:
            return getattr(np.core.multiarray, name)
        if module == "numpy" and name in ("ndarray", "dtype"):
            return getattr(np, name)
        raise pickle.UnpicklingError(f"{module}.{name}, which is no array")


@files.explained(_HOW)
def load(data_dir: pathlib.Path | None) -> Dataset:
    """Loads PFLlib's per-client folders, which `--partition=groups --groups.column=client` keeps.

    Args:
      data_dir: The folder with `train` and `test`, or one with a folder `pfllib` of that form. Each
        file `<client>.npz` holds a dictionary `data` of `x` (float; images [n, channels, height,
        width], anything else [n, ...]) and `y` (integers from 0).

    Returns:
      `x` float32 (images with the channels last), `y`, and `client`, the number of the file.

    Raises:
      FileNotFoundError: A folder or file is missing, or data_dir is None.
      ValueError: A file is corrupt, holds something else than arrays, or a client has test examples
        and no training examples.
    """
    root = files.folder(data_dir, "pfllib", own="train")
    train, test = (_split(root / split) for split in ("train", "test"))
    if strangers := {*test["client"].tolist()} - {*train["client"].tolist()}:
        found = f"no training examples of client {min(strangers)}, which has test examples"
        raise files.corrupt(root, "the same clients in train and test", found)
    labels = np.concatenate([train["y"], test["y"]])
    class_names = files.class_names(root, labels)
    return Dataset("pfllib", train, test, class_names, f"files in {root}")


def _split(folder: pathlib.Path) -> dict[str, np.ndarray]:
    paths = {int(path.stem): path for path in folder.glob("*.npz") if path.stem.isdecimal()}
    if sorted(paths) != list(range(len(paths))) or not paths:
        found = sorted(paths)[:10] or "none"
        raise files.MissingError(
            f"Expected 0.npz, 1.npz, ... without a gap in {folder}; found {found}."
        )
    parts = [_read(paths[client]) for client in range(len(paths))]
    sizes = [len(part["y"]) for part in parts]
    try:
        joined = {name: np.concatenate([part[name] for part in parts]) for name in ("x", "y")}
    except ValueError as error:
        raise files.corrupt(folder, "examples of one shape", error) from error
    return joined | {"client": np.repeat(np.arange(len(parts), dtype=np.int32), sizes)}


def _read(path: pathlib.Path) -> dict[str, np.ndarray]:
    expected = "a dictionary `data` of arrays x and y"
    try:
        with zipfile.ZipFile(path) as archive:
            stream = io.BytesIO(archive.read("data.npy"))
        version = np.lib.format.read_magic(stream)
        read = {(1, 0): np.lib.format.read_array_header_1_0}.get(
            version, np.lib.format.read_array_header_2_0
        )
        read(stream)
        found = _Arrays(stream).load()
        data = found.item() if isinstance(found, np.ndarray) else found
        x, y = np.asarray(data["x"]), np.asarray(data["y"])
    # A damaged file leads to errors of zipfile, pickle and others: all mean the same here.
    except Exception as error:
        raise files.corrupt(path, expected, str(error) or repr(error)) from error
    if x.dtype.kind not in "fiu" or x.ndim < 2 or y.ndim != 1 or len(x) != len(y):
        raise files.corrupt(path, expected, f"x {x.dtype} {x.shape}, y {y.shape}")
    x = x.astype(np.float32)
    labels = files.whole_numbers(path, "y", y)
    return {"x": np.moveaxis(x, 1, -1) if x.ndim == 4 else x, "y": labels}
