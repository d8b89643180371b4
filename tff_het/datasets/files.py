"""Finding and reading the files of data sets, with errors that say what to do."""

import json
import pathlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from tff_het.datasets.dataset import MAX_CLASSES


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
    # A damaged file leads to errors of zipfile, zlib, tokenize and others: all mean the same here.
    # Also a MemoryError does: a header claims more values than there is memory.
    except Exception as error:
        raise corrupt(
            path, "a NumPy .npz archive without pickled objects", str(error), how_to_get
        ) from error
    missing = [key for key in keys if key not in arrays]
    if missing:
        raise corrupt(path, f"arrays {list(keys)}", f"only {sorted(arrays)}", how_to_get)
    return arrays


def from_json(path: pathlib.Path, expected: str, content: bytes, how_to_get: str) -> Any:
    """What JSON says.

    Args:
      path: The file that it comes from.
      expected: What it should have been, for the error message.
      content: The JSON itself, as bytes.
      how_to_get: One sentence for the error message.

    Raises:
      ValueError: It is no text, no JSON, or has more brackets in each other than Python follows.
    """
    try:
        return json.loads(content)
    except (ValueError, RecursionError) as error:
        raise corrupt(path, expected, str(error), how_to_get) from error


def whole_numbers(
    path: pathlib.Path, name: str, values: Any, how_to_get: str, *, length: int | None = None
) -> np.ndarray:
    """Labels, or numbers of owners: the same values as int32 [n].

    Args:
      path: The file that they come from.
      name: What they are, for the error message.
      values: An array or a list.
      how_to_get: One sentence for the error message.
      length: How many there have to be, if that is known.

    Raises:
      ValueError: They are not whole numbers [length], or int32 would change one of them.
    """
    array = np.asarray(values)
    if array.ndim != 1 or array.dtype.kind not in "iu" or length not in (None, len(array)):
        shape = "n" if length is None else length
        found = f"{array.dtype} {list(array.shape)}"
        raise corrupt(path, f"{name} as integers [{shape}]", found, how_to_get)
    limits = np.iinfo(np.int32)
    changed = np.flatnonzero((array < limits.min) | (array > limits.max))
    if changed.size:
        found = f"{array[changed[0]]} in row {changed[0]}"
        raise corrupt(path, f"{name} from {limits.min} to {limits.max}", found, how_to_get)
    return array.astype(np.int32)


def texts(path: pathlib.Path, name: str, array: np.ndarray, how_to_get: str) -> tuple[str, ...]:
    """Names of classes.

    Raises:
      ValueError: The array is not text [n], is longer than `MAX_CLASSES`, or holds bytes that are
        not ASCII.
    """
    found = f"{array.dtype} {list(array.shape)}"
    try:
        if array.ndim == 1 and array.dtype.kind in "US" and len(array) <= MAX_CLASSES:
            return tuple(array.astype(str).tolist())
    except UnicodeDecodeError as error:
        found = str(error)
    raise corrupt(path, f"at most {MAX_CLASSES} {name} as text [n]", found, how_to_get)


def classes_of(path: pathlib.Path, labels: np.ndarray, how_to_get: str) -> tuple[str, ...]:
    """Names for classes that have none: '0', '1', ... up to the largest label.

    Raises:
      ValueError: The smallest label is not 0, or there would be more than `MAX_CLASSES`.
    """
    least, most = labels.min(), labels.max()
    if least != 0 or most >= MAX_CLASSES:
        raise corrupt(
            path,
            f"labels from 0 on, at most {MAX_CLASSES - 1}",
            f"{least} to {most}; number the classes from 0",
            how_to_get,
        )
    return tuple(map(str, range(most + 1)))
