"""The form in which every data set reaches the rest of the library."""

import collections
import dataclasses
import hashlib
import json
from collections.abc import Mapping

import numpy as np

Examples = Mapping[str, np.ndarray]
"""Columns of equal leading dimension n: always `x` [n, ...] and `y` int32 [n], and whatever else
the examples carry (`writer`, `race`, `sex`, ...), one value or array per example."""

MAX_CLASSES = 100_000
_STATISTICS_ROWS = 1_000_000


@dataclasses.dataclass(frozen=True, eq=False)
class Dataset:
    """Train and test examples of one data set, checked once, here.

    The arrays are held as read-only views, and their `fingerprint` is taken once: do not write to
    the originals afterwards.

    Attributes:
      name: The name under which the data set is registered.
      train: Training examples. `x` is uint8 (images: [n, height, width, channels], 0..255),
        int16 (packet lengths in bytes) or float32 [n, ...]; `y` is int32 [n], values
        0..num_classes - 1; further columns hold numbers or booleans.
      test: Test examples: the same columns, dtypes and shapes of one example as `train`.
      class_names: One name per class, in the order of the values of `y`; all different, and at
        most `MAX_CLASSES`.
      source: Where the examples came from, for people.
      vocabulary: The words of the column `question` (int32 [n, words], 0 behind the last one), in
        the order of their numbers; empty where there is no such column.

    Raises:
      ValueError: Columns, lengths, dtypes, labels or values are not as described above.
    """

    name: str
    train: Examples
    test: Examples
    class_names: tuple[str, ...]
    source: str
    vocabulary: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        names = self.class_names
        if not 1 <= len(names) <= MAX_CLASSES:
            raise ValueError(
                f"Data set {self.name!r} ({self.source}): from 1 to {MAX_CLASSES} class names are "
                f"needed; found {len(names)}."
            )
        if "" in names or len(set(names)) < len(names):
            counts = collections.Counter(names)
            twice = next(name for name in names if not name or counts[name] > 1)
            raise ValueError(
                f"Data set {self.name!r} ({self.source}): class names must be different and not "
                f"empty; found {twice!r}{' twice' if twice else ''}."
            )
        for split in ("train", "test"):
            examples = getattr(self, split)
            _check_examples(f"{self.name!r} ({self.source}), {split}", examples, self.num_classes)
            object.__setattr__(self, split, {key: _frozen(examples[key]) for key in examples})
        train_spec, test_spec = _spec(self.train), _spec(self.test)
        if train_spec != test_spec:
            raise ValueError(
                f"Data set {self.name!r} ({self.source}): train and test must have the same"
                f" columns, dtypes and shapes of one example; found {train_spec} and {test_spec}."
            )
        if self.vocabulary:
            self._check_questions()

    @property
    def num_classes(self) -> int:
        """Number of classes."""
        return len(self.class_names)

    def one_against_rest(self, label: str) -> "Dataset":
        """Returns the binary task of telling one class (1) from all others (0).

        Args:
          label: The class's name; capital letters matter only where names differ in nothing else.

        Raises:
          ValueError: There is no such class, or no other.
        """
        names = list(self.class_names)
        if label not in names:
            names, label = [name.lower() for name in names], label.lower()
        if names.count(label) != 1 or len(names) < 2:
            raise ValueError(
                f"Data set {self.name!r} has no single class {label!r} beside others; it has: "
                f"{', '.join(self.class_names)}."
            )
        index = names.index(label)
        train, test = (
            {**examples, "y": (examples["y"] == index).astype(np.int32)}
            for examples in (self.train, self.test)
        )
        rest = "other" if names[index].lower() != "other" else "rest"
        class_names = (rest, self.class_names[index])
        return dataclasses.replace(self, train=train, test=test, class_names=class_names)

    def with_test_in_train(self) -> "Dataset":
        """Returns it with its test examples behind the training examples, and in test as before."""
        both = {key: np.concatenate([self.train[key], self.test[key]]) for key in self.train}
        return dataclasses.replace(self, train=both)

    def statistics(self) -> tuple[np.ndarray, np.ndarray]:
        """Mean and standard deviation of the training examples' `x`, for its last axis each.

        Those of an image's channels, or of each feature; float64 [channels]. A feature that never
        varies is given the deviation 1.
        """
        x = self.train["x"].reshape(-1, self.train["x"].shape[-1])
        # In parts: all of it in float64 would take eight times the memory of images.
        parts = np.array_split(x, -(-len(x) // _STATISTICS_ROWS))
        mean = sum(part.sum(axis=0, dtype=np.float64) for part in parts) / len(x)
        squares = sum(np.square(part - mean).sum(axis=0) for part in parts) / len(x)
        deviation = np.sqrt(squares)
        return mean, np.where(deviation > 0, deviation, 1.0)

    def fingerprint(self) -> str:
        """SHA-256 (hex) over class names, words, column names, dtypes, shapes and values.

        Equal for equal contents, wherever they were read from.
        """
        digest = hashlib.sha256(json.dumps(self.class_names).encode())
        if self.vocabulary:
            digest.update(json.dumps(self.vocabulary).encode())
        for split, examples in (("train", self.train), ("test", self.test)):
            for key in sorted(examples):
                column = np.ascontiguousarray(examples[key])
                header = json.dumps([split, key, column.dtype.str, column.shape])
                digest.update(header.encode())
                digest.update(column.reshape(-1).view(np.uint8).data)
        return digest.hexdigest()

    def _check_questions(self) -> None:
        for split in ("train", "test"):
            question = getattr(self, split).get("question")
            where = f"{self.name!r} ({self.source}), {split}"
            if question is None or question.dtype != np.int32 or question.ndim != 2:
                found = "none" if question is None else f"{question.dtype} {list(question.shape)}"
                raise ValueError(
                    f"{where}: with a vocabulary a column question, int32 [n, words], is needed;"
                    f" found {found}."
                )
            outside = (question < 0) | (question >= len(self.vocabulary))
            if outside.any():
                raise ValueError(
                    f"{where}: words must be 0..{len(self.vocabulary) - 1} (there are"
                    f" {len(self.vocabulary)} in the vocabulary); found {question[outside][0]}."
                )


def _frozen(column: np.ndarray) -> np.ndarray:
    """A read-only view, which leaves the caller's own array writeable."""
    view = column.view()
    view.flags.writeable = False
    return view


def _spec(examples: Examples) -> dict[str, str]:
    """Dtype and shape of one example, by column."""
    return {
        key: f"{examples[key].dtype}{list(examples[key].shape[1:])}" for key in sorted(examples)
    }


def _check_examples(where: str, examples: Examples, num_classes: int) -> None:
    """Raises ValueError, beginning with `where`, at the first thing that does not hold."""
    missing = sorted({"x", "y"} - set(examples))
    if missing:
        raise ValueError(f"{where}: columns x and y are needed; found {sorted(examples)}.")
    for key, column in examples.items():
        if not isinstance(column, np.ndarray) or column.ndim == 0:
            raise ValueError(
                f"{where}: column {key!r} must be a NumPy array [n, ...]; found {column!r:.60}."
            )
        if column.dtype.kind not in "biuf":
            raise ValueError(
                f"{where}: column {key!r} must hold numbers or booleans; found dtype"
                f" {column.dtype}. Encode it as numbers first."
            )
        if 0 in column.shape[1:]:
            raise ValueError(
                f"{where}: an example of column {key!r} must hold something; found shape"
                f" {list(column.shape)}."
            )
    lengths = {key: len(column) for key, column in examples.items()}
    if len(set(lengths.values())) != 1:
        raise ValueError(f"{where}: columns must be equally long; found lengths {lengths}.")
    if lengths["y"] == 0:
        raise ValueError(f"{where}: at least one example is needed; found 0.")

    x, y = examples["x"], examples["y"]
    if x.dtype not in (np.uint8, np.int16, np.float32):
        raise ValueError(
            f"{where}: x must be uint8, int16 or float32; found {x.dtype}. Convert it, e.g. with"
            " x.astype(np.float32)."
        )
    if x.ndim == 1:
        raise ValueError(
            f"{where}: x must have a row for each example; found shape {list(x.shape)}. Convert it"
            " with x[:, None]."
        )
    if y.dtype != np.int32 or y.ndim != 1:
        raise ValueError(
            f"{where}: y must be int32 [n]; found {y.dtype} with shape {list(y.shape)}. Convert it"
            " with y.astype(np.int32)."
        )
    outside = np.flatnonzero((y < 0) | (y >= num_classes))
    if outside.size:
        raise ValueError(
            f"{where}: labels must be 0..{num_classes - 1} (there are {num_classes} class names);"
            f" found {y[outside[0]]} in row {outside[0]}."
        )
    for key, column in examples.items():
        if column.dtype.kind == "f" and not (finite := np.isfinite(column)).all():
            position = np.argwhere(~finite)[0]
            raise ValueError(
                f"{where}: column {key!r} must hold finite numbers; found"
                f" {column[tuple(position)]} first in row {position[0]}. Drop or fill such rows"
                " first."
            )
