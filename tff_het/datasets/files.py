"""Finding and reading the files of data sets, with errors that say what to do."""

import pathlib
import zipfile
import zlib
from collections.abc import Mapping, Sequence

import numpy as np


def find(folder: pathlib.Path, candidates: Sequence[str], how_to_get: str) -> pathlib.Path:
    """The first of the candidate files that the folder holds.

    Args:
      folder: Where to look.
      candidates: File names, the preferred one first.
      how_to_get: One sentence for the error message.

    Raises:
      FileNotFoundError: None of them is there.
    """
    for candidate in candidates:
        if (folder / candidate).is_file():
            return folder / candidate
    if folder.is_dir():
        held = sorted(path.name for path in folder.iterdir())
        found = f"the folder holds {held[:10]}{' and more' if len(held) > 10 else ''}"
    else:
        found = "the folder does not exist"
    raise FileNotFoundError(
        f"Expected {' or '.join(candidates)} in {folder}; {found}. {how_to_get}"
    )


def corrupt(path: pathlib.Path, expected: str, found: str, how_to_get: str) -> ValueError:
    """The error to raise for a file that is truncated, corrupt or of another form."""
    return ValueError(f"Cannot use {path}: expected {expected}; found {found}. {how_to_get}")


def read_npz(path: pathlib.Path, keys: Sequence[str], how_to_get: str) -> dict[str, np.ndarray]:
    """All arrays of a `.npz` file, without unpickling anything.

    Args:
      path: The file.
      keys: Arrays that must be there.
      how_to_get: One sentence for the error message.

    Raises:
      ValueError: The file is no readable `.npz`, holds pickled objects, or lacks a key.
    """
    try:
        with np.load(path, allow_pickle=False) as archive:
            arrays = {key: archive[key] for key in archive.files}
    # AttributeError, TypeError: np.load gives a bare array (no context manager) for a .npy file;
    # NotImplementedError: zipfile does not know the compression.
    except (
        zipfile.BadZipFile,
        zlib.error,
        AttributeError,
        EOFError,
        NotImplementedError,
        OSError,
        TypeError,
        ValueError,
    ) as error:
        raise corrupt(
            path, "a NumPy .npz archive without pickled objects", str(error), how_to_get
        ) from error
    missing = [key for key in keys if key not in arrays]
    if missing:
        raise corrupt(path, f"arrays {list(keys)}", f"only {sorted(arrays)}", how_to_get)
    return arrays


def check_integer_columns(
    path: pathlib.Path,
    arrays: Mapping[str, np.ndarray],
    keys: Sequence[str],
    length: int,
    how_to_get: str,
) -> None:
    """Raises ValueError unless the arrays of these keys are integers [length]."""
    for key in keys:
        column = arrays[key]
        if column.shape != (length,) or column.dtype.kind not in "iu":
            found = f"{column.dtype} {list(column.shape)}"
            raise corrupt(path, f"{key} integers [{length}]", found, how_to_get)
