"""Finding and reading the files of data sets, with errors that say what to do."""

import contextlib
import json
import pathlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from tff_het.datasets.dataset import MAX_CLASSES


class MissingError(FileNotFoundError):
    """There is no such file."""


class UnusableError(ValueError):
    """A file is truncated, corrupt or of another form."""


@contextlib.contextmanager
def explained(how_to_get: str) -> Iterator[None]:
    """Ends both errors with a sentence on how to get the files; of several, the innermost does.

    Decorates a function that reads files, or surrounds a block.

    Raises:
      FileNotFoundError: For a `MissingError`.
      ValueError: For an `UnusableError`.
    """
    try:
        yield
    except MissingError as error:
        raise FileNotFoundError(f"{error} {how_to_get}") from error.__cause__
    except UnusableError as error:
        raise ValueError(f"{error} {how_to_get}") from error.__cause__


def folder(data_dir: pathlib.Path | None, name: str, own: str | None = None) -> pathlib.Path:
    """The folder of a data set that is read from files.

    Args:
      data_dir: Holds it, or is it, if it holds `own`.
      name: The data set's, and the folder's.
      own: A file or folder in it.

    Raises:
      MissingError: data_dir is None.
    """
    if data_dir is None:
        raise MissingError(f"{name!r} is read from files: pass data_dir.")
    return data_dir if own is not None and (data_dir / own).exists() else data_dir / name


def find(folder: pathlib.Path, *candidates: str) -> pathlib.Path:
    """The first of the candidate files that the folder holds; the preferred one comes first.

    Raises:
      MissingError: None of them is there.
    """
    for candidate in candidates:
        if (folder / candidate).is_file():
            return folder / candidate
    if folder.is_dir():
        held = sorted(path.name for path in folder.iterdir())
        found = f"the folder holds {held[:10]}{' and more' if len(held) > 10 else ''}"
    else:
        found = "the folder does not exist"
    raise MissingError(f"Expected {' or '.join(candidates)} in {folder}; {found}.")


def corrupt(path: pathlib.Path, expected: str, found: object) -> UnusableError:
    """The error to raise for a file that is truncated, corrupt or of another form."""
    return UnusableError(f"Cannot use {path}: expected {expected}; found {found}.")


def read_npz(path: pathlib.Path, keys: Sequence[str]) -> dict[str, np.ndarray]:
    """All arrays of a `.npz` file that has these keys, without unpickling anything.

    Raises:
      UnusableError: The file is no readable `.npz`, holds pickled objects, or lacks a key.
    """
    try:
        with np.load(path, allow_pickle=False) as archive:
            arrays = {key: archive[key] for key in archive.files}
    # A damaged file leads to errors of zipfile, zlib, tokenize and others: all mean the same here.
    # Also a MemoryError does: a header claims more values than there is memory.
    except Exception as error:
        raise corrupt(path, "a NumPy .npz archive without pickled objects", error) from error
    if not set(keys) <= set(arrays):
        raise corrupt(path, f"arrays {list(keys)}", f"only {sorted(arrays)}")
    return arrays


def from_json(path: pathlib.Path, expected: str, content: bytes) -> Any:
    """What JSON says.

    Args:
      path: The file that it comes from.
      expected: What it should have been, for the error message.
      content: The JSON itself, as bytes.

    Raises:
      UnusableError: It is no text, no JSON, or has more brackets in each other than Python follows.
    """
    try:
        return json.loads(content)
    except (ValueError, RecursionError) as error:
        raise corrupt(path, expected, error) from error


def whole_numbers(
    path: pathlib.Path, name: str, values: Any, *, length: int | None = None
) -> np.ndarray:
    """Labels, or numbers of owners: the same values as int32 [n].

    Args:
      path: The file that they come from.
      name: What they are, for the error message.
      values: An array or a list.
      length: How many there have to be, if that is known.

    Raises:
      UnusableError: They are not whole numbers [length], or int32 would change one of them.
    """
    array = np.asarray(values)
    if array.ndim != 1 or array.dtype.kind not in "iu" or length not in (None, len(array)):
        shape = "n" if length is None else length
        raise corrupt(path, f"{name} as integers [{shape}]", form(array))
    limits = np.iinfo(np.int32)
    changed = np.flatnonzero((array < limits.min) | (array > limits.max))
    if changed.size:
        found = f"{array[changed[0]]} in row {changed[0]}"
        raise corrupt(path, f"{name} from {limits.min} to {limits.max}", found)
    return array.astype(np.int32)


def form(array: np.ndarray) -> str:
    """Dtype and shape of an array, for error messages."""
    return f"{array.dtype} {list(array.shape)}"


def class_names(
    path: pathlib.Path, labels: np.ndarray, array: np.ndarray | None = None, key: str = ""
) -> tuple[str, ...]:
    """Names of classes.

    Args:
      path: The file.
      labels: All labels, integers [n], n > 0.
      array: The names; None for '0', '1', ... up to the largest label.
      key: What the file calls them.

    Raises:
      UnusableError: The names are not text [n], more than `MAX_CLASSES`, or bytes that are not
        ASCII. Without names: the smallest label is not 0, or there would be more classes than that.
    """
    if array is None:
        least, most = labels.min(), labels.max()
        if least != 0 or most >= MAX_CLASSES:
            found = f"{least} to {most}; number the classes from 0"
            raise corrupt(path, f"labels from 0 on, at most {MAX_CLASSES - 1}", found)
        return tuple(map(str, range(most + 1)))
    found = form(array)
    try:
        if array.ndim == 1 and array.dtype.kind in "US" and len(array) <= MAX_CLASSES:
            return tuple(array.astype(str).tolist())
    except UnicodeDecodeError as error:
        found = str(error)
    raise corrupt(path, f"at most {MAX_CLASSES} {key} as text [n]", found)
