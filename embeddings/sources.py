"""Read what to embed: folders of audio or images, and the project's data sets."""

import abc
import concurrent.futures
import csv
import dataclasses
import functools
import hashlib
import io
import json
import os
from typing import NamedTuple, Protocol

import numpy as np
import tensorflow as tf

from embeddings import folders
from embeddings.examples import Item, UnusableError
from tff_het import datasets
from tff_het.datasets.embedding_files import SPLITS


class Source(Protocol):
    """Examples to embed; holds no data, because it is sent to the workers."""

    def items(self) -> list[Item]:
        """Returns all examples, sorted by id."""

    def read(self, item: Item) -> bytes | np.ndarray:
        """Returns an example's content; raises UnusableError if there is none."""

    def fingerprint(self) -> str:
        """Returns the SHA-256 (hex) over the examples."""


class Layout(NamedTuple):
    """Paths of the lists and of the clips in a folder of labelled clips, by split."""

    lists: dict[str, str]
    folders: dict[str, str]


LAYOUTS = (
    Layout({"train": "train.csv", "test": "test.csv"}, {"train": "audio", "test": "audio"}),
    Layout(
        {
            "train": "FSDKaggle2018.meta/train_post_competition.csv",
            "test": "FSDKaggle2018.meta/test_post_competition_scoring_clips.csv",
        },
        {"train": "FSDKaggle2018.audio_train", "test": "FSDKaggle2018.audio_test"},
    ),
)


class _Files(abc.ABC):
    """Base of the sources that read files."""

    @abc.abstractmethod
    def items(self) -> list[Item]:
        """Returns all examples, sorted by id."""

    def read(self, item: Item) -> bytes:
        """Returns the file's bytes.

        Raises:
          UnusableError: It does not exist, or cannot be read.
        """
        try:
            with tf.io.gfile.GFile(item.path, "rb") as file:
                return file.read()
        except tf.errors.NotFoundError as error:
            raise UnusableError("missing", f"there is no file {item.path}") from error
        except (OSError, tf.errors.OpError) as error:
            raise UnusableError("unreadable", str(error)) from error

    def fingerprint(self) -> str:
        """Returns the SHA-256 (hex) over ids, labels, sources and contents, but not the path."""
        items = self.items()
        with concurrent.futures.ThreadPoolExecutor() as pool:
            contents = pool.map(self._digest, items)
            lines = [
                [item.id, item.label, item.split, item.source, content]
                for item, content in zip(items, contents, strict=True)
            ]
        return hashlib.sha256(json.dumps(lines).encode()).hexdigest()

    def _digest(self, item: Item) -> str:
        try:
            return hashlib.sha256(self.read(item)).hexdigest()
        except UnusableError as error:
            return error.reason


@dataclasses.dataclass(frozen=True)
class LabelledFiles(_Files):
    """A folder with CSV lists `fname,label[,source]` and audio files, see `LAYOUTS`."""

    folder: str

    def items(self) -> list[Item]:
        """Returns all rows of both lists, sorted by id.

        Raises:
          FileNotFoundError: There are no lists.
          ValueError: A list lacks a column or a value, or has a file twice.
        """
        for layout in LAYOUTS:
            paths = {split: os.path.join(self.folder, layout.lists[split]) for split in SPLITS}
            if all(tf.io.gfile.exists(path) for path in paths.values()):
                found = [
                    item
                    for split, path in paths.items()
                    for item in _listed(
                        path, split, os.path.join(self.folder, layout.folders[split])
                    )
                ]
                return sorted(found, key=lambda item: item.id)
        expected = " or ".join(" and ".join(layout.lists.values()) for layout in LAYOUTS)
        raise FileNotFoundError(
            f"Expected {expected} in {self.folder}; found {_held(self.folder)}. Pass --input, a"
            " folder in one of these layouts (see embeddings/README.md)."
        )


@dataclasses.dataclass(frozen=True)
class ImageFolders(_Files):
    """A folder of images, `<split>/<class>/<file>`."""

    folder: str

    def items(self) -> list[Item]:
        """Returns all files that are not hidden, sorted by id.

        Raises:
          FileNotFoundError: There are no such folders.
          ValueError: There are splits other than train and test.
        """
        splits = _folders(self.folder)
        if not splits or set(splits) - set(SPLITS):
            raise (ValueError if splits else FileNotFoundError)(
                f"Expected folders train and test with a folder for each class in {self.folder};"
                f" found {_held(self.folder)}. Move the images into such folders."
            )
        found = [
            Item(f"{split}/{label}/{name}", label, split, path=os.path.join(folder, name))
            for split in splits
            for label in _folders(os.path.join(self.folder, split))
            for folder in (os.path.join(self.folder, split, label),)
            for name in folders.names(folder)
            if not name.startswith(".") and not tf.io.gfile.isdir(os.path.join(folder, name))
        ]
        return sorted(found, key=lambda item: item.id)


@dataclasses.dataclass(frozen=True)
class RegisteredDataset:
    """A data set of the project."""

    name: str
    data_dir: str | None

    def items(self) -> list[Item]:
        """Returns all examples; ids follow the order of the data set."""
        data = _load(self.name, self.data_dir)
        return [
            Item(f"{split}/{row:08}", data.class_names[label], split, source=self.name, row=row)
            for split in sorted(SPLITS)
            for row, label in enumerate(getattr(data, split)["y"].tolist())
        ]

    def read(self, item: Item) -> np.ndarray:
        """Returns the example's `x`."""
        return getattr(_load(self.name, self.data_dir), item.split)["x"][item.row]

    def fingerprint(self) -> str:
        """Returns the data set's own fingerprint."""
        return _load(self.name, self.data_dir).fingerprint()


@functools.cache  # Once per process; all parts of a job there share its arrays.
def _load(name: str, data_dir: str | None) -> datasets.Dataset:
    try:
        return datasets.load(name, data_dir)
    except RuntimeError as error:  # A download failed.
        raise ValueError(error) from error


def _listed(path: str, split: str, folder: str) -> list[Item]:
    """Reads the rows of one list."""
    with tf.io.gfile.GFile(path, "rb") as file:
        content = file.read()
    try:
        reader = csv.DictReader(io.StringIO(content.decode("utf-8-sig")))
        columns, rows = reader.fieldnames or (), [(reader.line_num, row) for row in reader]
    except (UnicodeDecodeError, csv.Error) as error:
        raise ValueError(
            f"Cannot use {path}: expected CSV in UTF-8; found: {error}. Save it as such."
        ) from error
    if not {"fname", "label"} <= set(columns):
        raise ValueError(
            f"Cannot use {path}: expected columns fname and label; found {list(columns)!r:.200}."
            " Write a header line fname,label."
        )
    found: dict[str, Item] = {}
    for line, row in rows:
        name, label = row["fname"], row["label"]
        # DictReader has None where a row is longer or shorter than the header.
        if not name or not label or name in found or None in [*row, *row.values()]:
            raise ValueError(
                f"Cannot use {path}: expected a file name of its own, a label and"
                f" {len(columns)} columns in line {line}; found {name!r} and {label!r}. Remove or"
                " complete the line."
            )
        source = row.get("source") or ""
        found[name] = Item(f"{split}/{name}", label, split, source, os.path.join(folder, name))
    return list(found.values())


def _folders(folder: str) -> list[str]:
    """Returns the sorted names of subfolders that are not hidden."""
    return [
        name
        for name in folders.names(folder)
        if not name.startswith(".") and tf.io.gfile.isdir(os.path.join(folder, name))
    ]


def _held(folder: str) -> str:
    """Describes a folder's content, for an error message."""
    if not tf.io.gfile.isdir(folder):
        return "no such folder"
    names = folders.names(folder)
    return f"{names[:10]}{' and more' if len(names) > 10 else ''}"
