"""MNIST and Fashion-MNIST, from the original idx files or through TensorFlow Datasets."""

import gzip
import math
import pathlib
import zlib

import numpy as np

from tff_het.datasets import download, files
from tff_het.datasets.dataset import Dataset

_CLASS_NAMES = {
    "mnist": tuple("0123456789"),
    "fashion_mnist": (
        "T-shirt/top",
        "Trouser",
        "Pullover",
        "Dress",
        "Coat",
        "Sandal",
        "Shirt",
        "Sneaker",
        "Bag",
        "Ankle boot",
    ),
}
_URLS = {
    "mnist": "https://storage.googleapis.com/cvdf-datasets/mnist/",
    "fashion_mnist": "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
}
_IMAGE_SIZE = 28  # [pixels]


def load_mnist(data_dir: pathlib.Path | None) -> Dataset:
    """Loads MNIST: handwritten digits (LeCun et al. 1998)."""
    return load("mnist", data_dir)


def load_fashion_mnist(data_dir: pathlib.Path | None) -> Dataset:
    """Loads Fashion-MNIST: pictures of clothes (Xiao et al. 2017)."""
    return load("fashion_mnist", data_dir)


def load(name: str, data_dir: pathlib.Path | None) -> Dataset:
    """Loads one of the two in its original order.

    Args:
      name: 'mnist' or 'fashion_mnist'.
      data_dir: Holds `<name>/train-images-idx3-ubyte.gz` and the three other original files,
        packed or unpacked. None downloads through TensorFlow Datasets (in TFDS's order).

    Returns:
      `x` uint8 [n, 28, 28, 1], 0..255; `y` 0..9.

    Raises:
      FileNotFoundError: A file is missing.
      ValueError: A file is truncated or not of the idx form, or images and labels do not match.
      RuntimeError: The download failed.
    """
    how = (
        f"Download the four files train-images-idx3-ubyte.gz, train-labels-idx1-ubyte.gz,"
        f" t10k-images-idx3-ubyte.gz and t10k-labels-idx1-ubyte.gz from {_URLS[name]} into"
        f" <data_dir>/{name}/."
    )
    if data_dir is None:
        return download.load_images(name, _CLASS_NAMES[name], _URLS[name], how)
    folder = data_dir / name
    with files.explained(how + download.OR):
        train, test = (_read_split(folder, prefix) for prefix in ("train", "t10k"))
    return Dataset(name, train, test, _CLASS_NAMES[name], f"idx files {folder}")


def _read_split(folder: pathlib.Path, prefix: str) -> dict[str, np.ndarray]:
    stems = (f"{prefix}-images-idx3-ubyte", f"{prefix}-labels-idx1-ubyte")
    image_path, label_path = (files.find(folder, f"{stem}.gz", stem) for stem in stems)
    images = _read_idx(image_path, (None, _IMAGE_SIZE, _IMAGE_SIZE))
    labels = _read_idx(label_path, (None,))
    if len(images) != len(labels):
        expected = f"as many labels as {image_path.name} has images, {len(images)}"
        raise files.corrupt(label_path, expected, f"{len(labels)} labels")
    return {"x": images[..., None], "y": labels.astype(np.int32)}


def _read_idx(path: pathlib.Path, shape: tuple[int | None, ...]) -> np.ndarray:
    """Reads an idx file of bytes.

    The form: two zero bytes, a byte for the type (8: unsigned byte), a byte for the number of
    dimensions, each dimension as a big-endian uint32, then the values in C order.

    Args:
      path: The file; unpacked first where the name ends in `.gz`.
      shape: What the dimensions must be; None stands for any.

    Returns:
      uint8 array of the shape in the header.
    """
    try:
        content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    except (OSError, EOFError, zlib.error) as error:
        raise files.corrupt(path, "a complete gzip file", error) from error
    magic = bytes([0, 0, 8, len(shape)])
    if content[:4] != magic:
        expected = f"an idx file of bytes in {len(shape)} dimensions (it starts with {magic.hex()})"
        raise files.corrupt(path, expected, f"a start of {content[:4].hex() or 'nothing'}")
    header_size = 4 + 4 * len(shape)
    if len(content) < header_size:
        found = f"{len(content)} bytes in all"
        raise files.corrupt(path, f"a header of {header_size} bytes", found)
    dims = tuple(np.frombuffer(content, ">u4", count=len(shape), offset=4).tolist())
    if any(want not in (None, dim) for want, dim in zip(shape, dims, strict=True)):
        raise files.corrupt(path, f"dimensions {shape} (None: any)", dims)
    if len(content) - header_size != math.prod(dims):
        expected = f"{math.prod(dims)} values, as its header {dims} says"
        raise files.corrupt(path, expected, f"{len(content) - header_size} bytes")
    return np.frombuffer(content, np.uint8, offset=header_size).reshape(dims)
