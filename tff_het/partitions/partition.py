"""The result of a partition: which client owns which example."""

import dataclasses
import hashlib
import itertools
import json
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tff_het import writing

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.image import AxesImage

_MAX_LABELLED_CELLS = 200
_FILE_ARRAYS = ("meta", "train", "train_bounds", "test", "test_bounds")


class Parts(Sequence[np.ndarray]):
    """Indices of each client's examples, in one array: no objects for each of a million clients.

    Attributes:
      indices: int64 [n], those of all clients one after another.
      sizes: int64 [clients], how many each client has.
      bounds: int64 [clients + 1], where each client's begin, and the last one's end.
    """

    def __init__(self, indices: np.ndarray, sizes: npt.ArrayLike) -> None:
        self.indices, self.sizes = indices, np.asarray(sizes, np.int64)
        self.bounds = np.append(0, np.cumsum(self.sizes))
        if np.any(self.sizes < 0) or self.bounds[-1] != len(indices):
            raise ValueError(f"Sizes of parts must add up to {len(indices)}; found {sizes!r}.")

    @classmethod
    def of(cls, parts: Sequence[np.ndarray]) -> "Parts":
        """Returns clients' parts, in ascending order, of whole numbers from 0 in any order."""
        sizes = [len(part) for part in parts]
        indices = np.concatenate(parts).astype(np.int64)
        # Sorted all at once, each client's behind those of the one before.
        offsets = np.repeat(np.arange(len(sizes)), sizes) * (indices.max(initial=0) + 1)
        return cls(np.sort(indices + offsets) - offsets, sizes)

    def __getitem__(self, index):
        """The indices of a client, or those of each in a slice."""
        places = range(len(self))[index]
        if isinstance(places, range):
            return [self[place] for place in places]
        return self.indices[self.bounds[places] : self.bounds[places + 1]]

    def __len__(self) -> int:
        """Number of clients."""
        return len(self.sizes)


@dataclasses.dataclass(frozen=True, eq=False)
class Partition:
    """Assignment of train and test examples to clients.

    An example belongs to at most one client; some may belong to nobody.

    Attributes:
      name: The partition's registered name.
      seed: The seed it was drawn with.
      client_ids: A name for each client, all different.
      train: For each client int64 indices into the training examples, strictly increasing; arrays
        that are given one by one become `Parts`.
      test: The same for the test examples.
      num_train: Size of the training part that the indices are into.
      num_test: The same for the test part.
      options: The options it was made with, as JSON holds them (tuples become lists).
      allow_empty_test: Whether clients may be without test examples.
      groups: The sub-population that each client is of; empty where there are none.
      labels: The `digest_of` the labels that it divides; empty where these are not known.

    Raises:
      ValueError: One of the above does not hold, or a client has no training examples.
    """

    name: str
    seed: int
    client_ids: tuple[str, ...]
    train: Parts
    test: Parts
    num_train: int
    num_test: int
    options: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    allow_empty_test: bool = False
    groups: tuple[str, ...] = ()
    labels: str = ""

    def __post_init__(self) -> None:
        where = f"Partition {self.name!r}"
        if not self.client_ids or len(set(self.client_ids)) != len(self.client_ids):
            raise ValueError(
                f"{where}: client ids must be one or more and all different; found"
                f" {_some(self.client_ids)}."
            )
        if not all(isinstance(name, str) for name in (*self.client_ids, *self.groups)):
            raise ValueError(f"{where}: client ids and groups must be texts.")
        if self.groups and len(self.groups) != len(self.client_ids):
            raise ValueError(
                f"{where}: groups must be one for each of {len(self.client_ids)} clients, or none;"
                f" found {len(self.groups)}."
            )
        try:
            object.__setattr__(self, "options", json.loads(json.dumps(dict(self.options))))
        except TypeError as error:
            raise ValueError(
                f"{where}: options must be text, numbers, booleans, None or lists of these; found"
                f" {dict(self.options)} ({error})."
            ) from error
        for split, size in (("train", self.num_train), ("test", self.num_test)):
            parts = self._checked(f"{where}, {split}", getattr(self, split), size)
            object.__setattr__(self, split, parts)
        empty_train = self._without("train")
        if empty_train:
            raise ValueError(
                f"{where}: {len(empty_train)} of {len(self.client_ids)} clients have no training"
                f" examples ({_some(empty_train)}). Ask for fewer clients or other options."
            )
        empty_test = self._without("test")
        if empty_test and not self.allow_empty_test:
            raise ValueError(
                f"{where}: {len(empty_test)} of {len(self.client_ids)} clients have none of the"
                f" {self.num_test} test examples ({_some(empty_test)}). Ask for fewer clients, or"
                " accept it with allow_empty_test=True."
            )

    def _checked(self, where: str, parts: Sequence[np.ndarray], size: int) -> Parts:
        if len(parts) != len(self.client_ids):
            raise ValueError(
                f"{where}: one index array per client is needed, {len(self.client_ids)}; found"
                f" {len(parts)}."
            )
        for part in [parts.indices] if isinstance(parts, Parts) else parts:
            if part.dtype != np.int64 or part.ndim != 1:
                raise ValueError(
                    f"{where}: indices must be int64 [n]; found {part.dtype} {list(part.shape)}."
                )
        if not isinstance(parts, Parts):
            parts = Parts(np.concatenate(parts), [len(part) for part in parts])
        together = parts.indices
        unordered = np.setdiff1d(np.flatnonzero(np.diff(together) <= 0) + 1, parts.bounds)
        if unordered.size:
            client = int(np.searchsorted(parts.bounds, unordered[0], "right")) - 1
            raise ValueError(
                f"{where}: indices of {self.client_ids[client]!r} must be strictly increasing;"
                f" found {parts[client][:5]}."
            )
        if together.size and not 0 <= together.min() <= together.max() < size:
            raise ValueError(
                f"{where}: indices must be 0..{size - 1}; found {together.min()}..{together.max()}."
            )
        repeated = np.flatnonzero(np.bincount(together, minlength=1) > 1)
        if repeated.size:
            raise ValueError(
                f"{where}: an example may belong to one client at most; found {repeated.size} that"
                f" belong to several, first {repeated[0]}."
            )
        return parts

    def _without(self, split: str) -> list[str]:
        """Ids of the clients without examples in `split`."""
        return [self.client_ids[index] for index in np.flatnonzero(getattr(self, split).sizes == 0)]

    def class_counts(
        self, labels: np.ndarray, split: str = "train", num_classes: int | None = None
    ) -> np.ndarray:
        """Examples of each class at each client.

        Args:
          labels: Labels of the whole train or test part, integers [n].
          split: 'train' or 'test'.
          num_classes: Number of classes; None: the largest label + 1.

        Returns:
          int64 [clients, classes].

        Raises:
          ValueError: `split` is neither, or there are not as many labels as the partition was made
            for, or a label is out of range.
        """
        if split not in ("train", "test"):
            raise ValueError(f"split must be 'train' or 'test'; found {split!r}.")
        size = self.num_train if split == "train" else self.num_test
        if len(labels) != size:
            raise ValueError(
                f"Partition {self.name!r} was made for {size} {split} examples; found"
                f" {len(labels)} labels."
            )
        wanted = int(labels.max()) + 1 if num_classes is None else num_classes
        if labels.min() < 0 or labels.max() >= wanted:
            raise ValueError(
                f"Labels must be 0..{wanted - 1}; found {labels.min()}..{labels.max()}."
            )
        parts, shape = getattr(self, split), (len(self.client_ids), wanted)
        cells = np.repeat(np.arange(shape[0]) * wanted, parts.sizes) + labels[parts.indices]
        return np.bincount(cells, minlength=shape[0] * wanted).reshape(shape)

    def describe(self, train_labels: np.ndarray, test_labels: np.ndarray) -> str:
        """A short report for people.

        Args:
          train_labels: Labels of the training examples, integers [num_train].
          test_labels: Labels of the test examples, integers [num_test].

        Returns:
          A line on the partition, and one each on train and test.
        """
        given = {key: value for key, value in self.options.items() if value is not None}
        options = "".join(f", {key}={value}" for key, value in given.items())
        lines = [f"{self.name}: {len(self.client_ids)} clients, seed {self.seed}{options}"]
        for split, labels in (("train", train_labels), ("test", test_labels)):
            counts = self.class_counts(labels, split)
            sizes, classes = counts.sum(axis=1), (counts > 0).sum(axis=1)
            lines.append(
                f"  {split}: {sizes.sum()} of {len(labels)} examples belong to clients"
                f" ({len(labels) - sizes.sum()} to nobody); per client {sizes.min()} to"
                f" {sizes.max()} (median {np.median(sizes):g}) of {classes.min()} to"
                f" {classes.max()} classes"
            )
        return "\n".join(lines)

    def draw(
        self,
        ax: "Axes",
        labels: np.ndarray,
        *,
        split: str = "train",
        class_names: Sequence[str] | None = None,
    ) -> "AxesImage":
        """Draws a heat map of the examples of each class (columns) at each client (rows).

        Args:
          ax: Where to draw. Cells carry their counts where they are few.
          labels: Labels of the whole train or test part, integers [n].
          split: 'train' or 'test'.
          class_names: Names of the classes; None numbers them.

        Returns:
          The image, e.g. for a colour bar.
        """
        counts = self.class_counts(labels, split, None if class_names is None else len(class_names))
        num_clients, num_classes = counts.shape
        image = ax.imshow(counts, aspect="auto", cmap="Blues", vmin=0, interpolation="nearest")
        ax.set(title=f"{self.name}, {split} examples", xlabel="class", ylabel="client")
        if class_names is not None:
            # Names may have dollar signs, which are no formulas.
            ax.set_xticks(
                range(num_classes), class_names, rotation=45, ha="right", parse_math=False
            )
        if counts.size <= _MAX_LABELLED_CELLS:
            ax.set_yticks(range(num_clients), self.client_ids, parse_math=False)
            for (row, column), count in np.ndenumerate(counts):
                dark = count > counts.max() / 2
                ax.text(
                    column, row, str(count), ha="center", va="center", color="w" if dark else "k"
                )
        return image

    def fingerprint(self) -> str:
        """SHA-256 (hex) over who holds what."""
        digest = hashlib.sha256(json.dumps(self.client_ids).encode())
        for part in itertools.chain(self.train, self.test):
            digest.update(f"{len(part)}\n".encode())
            digest.update(part.tobytes())
        return digest.hexdigest()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the partition to a `.npz` file: wholly or not at all.

        Args:
          path: The file; replaced if it exists. Its arrays: `train` int64 [n], the indices of all
            clients one after another, increasing for each; `train_bounds` int64 [clients - 1],
            where the next client's begin; `test` and `test_bounds` likewise; `meta`, a JSON text of
            the other attributes.

        Raises:
          OSError: The folder is missing or not writeable.
        """
        meta = {
            "name": self.name,
            "seed": self.seed,
            "client_ids": self.client_ids,
            "num_train": self.num_train,
            "num_test": self.num_test,
            "options": self.options,
            "allow_empty_test": self.allow_empty_test,
            "groups": self.groups,
            "labels": self.labels,
        }
        arrays = {"meta": np.array(json.dumps(meta))}
        for split in ("train", "test"):
            parts = getattr(self, split)
            arrays[split], arrays[f"{split}_bounds"] = parts.indices, parts.bounds[1:-1]
        with writing.complete(path) as file:
            np.savez_compressed(file, **arrays)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Partition":
        """Reads a partition that `save` wrote.

        Raises:
          FileNotFoundError: There is no such file.
          ValueError: The file is no partition, or is corrupt.
        """
        try:
            with np.load(path, allow_pickle=False) as archive:
                meta_text, *rest = (archive[key] for key in _FILE_ARRAYS)
            meta = json.loads(str(meta_text))
            train, test = (
                Parts(indices, np.diff(bounds, prepend=0, append=len(indices)))
                for indices, bounds in (rest[:2], rest[2:])
            )
            return cls(
                **{
                    **meta,
                    "client_ids": tuple(meta["client_ids"]),
                    "groups": tuple(meta.get("groups", ())),
                },
                train=train,
                test=test,
            )
        except FileNotFoundError:
            raise
        # A damaged file leads to errors of zipfile, zlib, json and others: all mean the same here.
        except Exception as error:
            raise ValueError(
                f"Cannot use {os.fspath(path)}: expected a partition as Partition.save writes it;"
                f" found {error!r}. Make the partition again."
            ) from error


def digest_of(train_labels: np.ndarray, test_labels: np.ndarray) -> str:
    """SHA-256 (hex) over the labels of a data set, in their order."""
    digest = hashlib.sha256()
    for labels in (train_labels, test_labels):
        digest.update(np.asarray(labels, np.int64).tobytes())
    return digest.hexdigest()


def _some(client_ids: Sequence[str]) -> str:
    """The first few ids, for error messages."""
    return ", ".join(client_ids[:5]) + (", ..." if len(client_ids) > 5 else "")
