"""Files of precomputed embeddings: sharded TFRecords and a JSON description.

`embeddings/` writes them; `embedded.py` makes data sets of them.
"""

import dataclasses
import pathlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from tff_het.datasets import files

METADATA = "metadata.json"
FORMAT = 1
SPLITS = ("train", "test")

# Keys of metadata.json that a reader needs, and what each has to be.
_KEYS: dict[str, type] = {
    "format": int,
    "model": str,
    "dimension": int,
    "class_names": list,
    "sources": list,
    "counts": dict,
    "checksum": str,
    "files": dict,
}
_CHUNK = 1024  # Records that are parsed at once.
MAX_DIMENSION = 100_000  # TensorFlow makes room for a chunk before it reads a record.
_MODULUS = 2**64


@dataclasses.dataclass(frozen=True, eq=False)
class Records:
    """The records of a folder, in the order of their ids.

    Attributes:
      ids: Bytes [n], sorted.
      embeddings: float32 [n, dimension].
      labels: int32 [n], positions in `class_names`.
      splits: int32 [n], positions in `SPLITS`.
      sources: int32 [n], positions in the sorted names of the places that examples come from.
      class_names: Sorted.
      origin: The folder and the network, for people.
    """

    ids: np.ndarray
    embeddings: np.ndarray
    labels: np.ndarray
    splits: np.ndarray
    sources: np.ndarray
    class_names: tuple[str, ...]
    origin: str


def checksum(serialized: Sequence[bytes]) -> int:
    """A checksum of serialised records that does not depend on their order.

    Those of two parts are added by `add_checksums`.
    """
    import tensorflow as tf  # Here: those who read other data sets need no TensorFlow.

    if not len(serialized):
        return 0
    fingerprints = tf.fingerprint(tf.constant(serialized, tf.string)).numpy()  # uint8 [n, 8]
    return int(fingerprints.view("<u8").sum(dtype=np.uint64))


def add_checksums(one: int, other: int) -> int:
    """The checksum of the records of both."""
    return (one + other) % _MODULUS


def checksum_text(value: int) -> str:
    """The form in which metadata.json holds a checksum."""
    return f"farmhash64-sum:{value:016x}"


def read(folder: pathlib.Path) -> Records:
    """Reads and verifies a folder of embeddings: metadata.json and the files that it names.

    Raises:
      FileNotFoundError: metadata.json or a file that it names is missing.
      ValueError: A file is truncated or corrupt, or the records are not those of metadata.json.
    """
    path = files.find(folder, METADATA)
    metadata = _read_metadata(path)
    columns, total = _read_columns(folder, metadata)
    if checksum_text(total) != metadata["checksum"]:
        expected = f"records of checksum {metadata['checksum']}"
        raise files.corrupt(path, expected, f"those of {checksum_text(total)}")
    order = np.argsort(columns["id"], kind="stable")
    names: dict[str, Sequence[str]] = {
        "label": metadata["class_names"],
        "split": SPLITS,
        "source": metadata["sources"],
    }
    numbers = {key: _numbered(path, key, columns[key][order], of) for key, of in names.items()}
    _check_counts(path, metadata, numbers["split"], numbers["label"])
    return Records(
        ids=columns["id"][order],
        embeddings=columns["embedding"][order],
        labels=numbers["label"],
        splits=numbers["split"],
        sources=numbers["source"],
        class_names=tuple(metadata["class_names"]),
        origin=f"{metadata['model']} embeddings in {folder}",
    )


def _read_metadata(path: pathlib.Path) -> dict[str, Any]:
    metadata = files.from_json(path, "JSON", path.read_bytes())
    if not isinstance(metadata, dict):
        raise files.corrupt(path, "a JSON object", f"{metadata!r:.60}")
    for key, kind in _KEYS.items():
        if not isinstance(metadata.get(key), kind):
            found = f"{metadata[key]!r:.60}" if key in metadata else "nothing"
            raise files.corrupt(path, f"{key!r} as {kind.__name__}", found)
    if metadata["format"] != FORMAT:
        raise files.corrupt(path, f"format {FORMAT}", f"format {metadata['format']}")
    if not metadata["files"] or not 1 <= metadata["dimension"] <= MAX_DIMENSION:
        found = f"{len(metadata['files'])} files, dimension {metadata['dimension']}"
        raise files.corrupt(path, f"files and a dimension from 1 to {MAX_DIMENSION}", found)
    for key in ("class_names", "sources"):
        if metadata[key] != sorted(set(map(str, metadata[key]))):
            raise files.corrupt(path, f"{key!r} sorted texts", f"{metadata[key]!r:.60}")
    return metadata


def _read_columns(
    folder: pathlib.Path, metadata: Mapping[str, Any]
) -> tuple[dict[str, np.ndarray], int]:
    """Columns of all files, in the order of the files, and their checksum."""
    chunks: list[Mapping[str, np.ndarray]] = []
    total = 0
    for name, expected in sorted(metadata["files"].items()):
        path = files.find(folder, name)
        found = 0
        for chunk, part in _read_file(path, metadata["dimension"]):
            chunks.append(chunk)
            found += len(chunk["id"])
            total = add_checksums(total, part)
        if found != expected:
            raise files.corrupt(path, f"{expected} records", found)
    if not chunks:
        raise files.corrupt(folder / METADATA, "files with records", "no record")
    # Texts of one chunk may be longer than those of another: NumPy finds the common width.
    return {key: np.concatenate([chunk[key] for chunk in chunks]) for key in chunks[0]}, total


def _read_file(path: pathlib.Path, dimension: int) -> Iterator[tuple[dict[str, np.ndarray], int]]:
    """Columns and checksum of chunks of one file."""
    import tensorflow as tf

    text = tf.io.FixedLenFeature([], tf.string)
    features = {
        "id": text,
        "label": text,
        "split": text,
        "source": text,
        "embedding": tf.io.FixedLenFeature([dimension], tf.float32),
    }
    try:
        for serialized in tf.data.TFRecordDataset(str(path)).batch(_CHUNK):
            parsed = tf.io.parse_example(serialized, features)
            # Bytes of fixed width sort and compare fast, objects do not.
            columns = {
                key: value.numpy() if key == "embedding" else value.numpy().astype(np.bytes_)
                for key, value in parsed.items()
            }
            yield columns, checksum(serialized)
    except tf.errors.OpError as error:  # Cut off, other bytes, other features.
        expected = f"whole TFRecords with embeddings of dimension {dimension}"
        raise files.corrupt(path, expected, f"{error.message:.200}") from error


def _numbered(path: pathlib.Path, key: str, values: np.ndarray, names: Sequence[str]) -> np.ndarray:
    """Positions of texts in a list of names: int32 [n]."""
    present, inverse = np.unique(values, return_inverse=True)
    number = {name.encode(): index for index, name in enumerate(names)}
    if unknown := [name for name in present.tolist() if name not in number]:
        expected = f"a {key} of {list(names)!r:.200}"
        raise files.corrupt(path, expected, f"a record with {unknown[0].decode()!r}")
    return np.array([number[name] for name in present.tolist()], np.int32)[inverse.reshape(-1)]


def _check_counts(
    path: pathlib.Path, metadata: Mapping[str, Any], splits: np.ndarray, labels: np.ndarray
) -> None:
    names = metadata["class_names"]
    counted = np.bincount(splits * len(names) + labels, minlength=len(SPLITS) * len(names))
    found = {
        split: {name: int(n) for name, n in zip(names, row, strict=True) if n}
        for split, row in zip(SPLITS, counted.reshape(len(SPLITS), -1), strict=True)
    }
    found = {split: counts for split, counts in found.items() if counts}
    if found != metadata["counts"]:
        raise files.corrupt(path, f"counts {metadata['counts']!r:.200}", f"{found!r:.200}")
