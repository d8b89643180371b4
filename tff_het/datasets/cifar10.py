"""CIFAR-10, from the original binary files or through TensorFlow Datasets."""

import pathlib

import numpy as np

from tff_het.datasets import download, files
from tff_het.datasets.dataset import Dataset

_META = "airplane automobile bird cat deer dog frog horse ship truck"  # Of batches.meta.txt.
_CLASS_NAMES = tuple(_META.split())
_TRAIN_FILES = tuple(f"data_batch_{i}.bin" for i in range(1, 6))
_TEST_FILES = ("test_batch.bin",)
_RECORDS_PER_FILE = 10_000
_RECORD_BYTES = 1 + 3 * 32 * 32  # The label, then a red, a green and a blue plane of 32 x 32.
_URL = "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz"
_HOW_BY_HAND = (
    f"Download {_URL} and unpack it in <data_dir>/cifar10/, which gives"
    " <data_dir>/cifar10/cifar-10-batches-bin/."
)
_HOW = _HOW_BY_HAND + download.OR


@files.explained(_HOW)
def load(data_dir: pathlib.Path | None) -> Dataset:
    """Loads CIFAR-10 (Krizhevsky 2009) in its original order.

    Args:
      data_dir: Holds `cifar10/cifar-10-batches-bin/` with data_batch_1.bin to data_batch_5.bin,
        test_batch.bin and batches.meta.txt. None downloads through TensorFlow Datasets (in TFDS's
        order).

    Returns:
      `x` uint8 [n, 32, 32, 3], 0..255; `y` 0..9.

    Raises:
      FileNotFoundError: A file is missing.
      ValueError: A file is truncated or corrupt.
      RuntimeError: The download failed.
    """
    if data_dir is None:
        return download.load_images("cifar10", _CLASS_NAMES, _URL, _HOW_BY_HAND)
    folder = data_dir / "cifar10" / "cifar-10-batches-bin"
    train = _read_split(folder, _TRAIN_FILES)
    test = _read_split(folder, _TEST_FILES)
    return Dataset("cifar10", train, test, _read_names(folder), f"binary files {folder}")


def _read_names(folder: pathlib.Path) -> tuple[str, ...]:
    path = files.find(folder, "batches.meta.txt")
    found = tuple(path.read_text(encoding="utf-8", errors="replace").split())
    if found != _CLASS_NAMES:
        raise files.corrupt(path, f"the class names {_CLASS_NAMES}", f"{found!r:.200}")
    return found


def _read_split(folder: pathlib.Path, file_names: tuple[str, ...]) -> dict[str, np.ndarray]:
    records = np.concatenate([_read_records(folder, file_name) for file_name in file_names])
    planes = records[:, 1:].reshape(-1, 3, 32, 32)
    images = np.ascontiguousarray(planes.transpose(0, 2, 3, 1))  # [n, height, width, channels]
    return {"x": images, "y": records[:, 0].astype(np.int32)}


def _read_records(folder: pathlib.Path, file_name: str) -> np.ndarray:
    """Records of one file: uint8 [10,000, 3,073]."""
    path = files.find(folder, file_name)
    content = np.fromfile(path, np.uint8)
    expected = _RECORDS_PER_FILE * _RECORD_BYTES
    if content.size != expected:
        form = f"{_RECORDS_PER_FILE} records of {_RECORD_BYTES}"
        raise files.corrupt(path, f"{expected} bytes ({form})", f"{content.size} bytes")
    records = content.reshape(_RECORDS_PER_FILE, _RECORD_BYTES)
    if records[:, 0].max() >= len(_CLASS_NAMES):
        raise files.corrupt(path, "labels 0..9", f"a label of {records[:, 0].max()}")
    return records
