"""The idx reader: on files written here, broken in every way that was thought of, and the real."""

import gzip
import struct

import numpy as np
import pytest

from tff_het import datasets

NAMES = {
    "train": ("train-images-idx3-ubyte", "train-labels-idx1-ubyte"),
    "test": ("t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"),
}


def idx(array, magic=None):
    magic = 0x0800 + array.ndim if magic is None else magic
    return struct.pack(f">{1 + array.ndim}I", magic, *array.shape) + array.tobytes()


def write(folder, packed=True, **replaced):
    """Writes four small files; `replaced` gives other (unpacked) contents by key as below."""
    rng = np.random.default_rng(0)
    folder.mkdir(exist_ok=True)
    written = {}
    for (split, (images_name, labels_name)), n in zip(NAMES.items(), (20, 10), strict=True):
        images = rng.integers(0, 256, (n, 28, 28), dtype=np.uint8)
        labels = (np.arange(n) % 10).astype(np.uint8)
        written[split] = images, labels
        for name, key, array in (
            (images_name, f"{split}_images", images),
            (labels_name, f"{split}_labels", labels),
        ):
            content = replaced.get(key, idx(array))
            if packed:
                (folder / f"{name}.gz").write_bytes(gzip.compress(content))
            else:
                (folder / name).write_bytes(content)
    return written


@pytest.mark.parametrize("name", ["mnist", "fashion_mnist"])
@pytest.mark.parametrize("packed", [True, False])
def test_reads_what_was_written(tmp_path, name, packed):
    written = write(tmp_path / name, packed)
    data = datasets.load(name, str(tmp_path))
    for split, examples in (("train", data.train), ("test", data.test)):
        np.testing.assert_array_equal(examples["x"][..., 0], written[split][0])
        np.testing.assert_array_equal(examples["y"], written[split][1])
        assert examples["x"].dtype == np.uint8 and examples["y"].dtype == np.int32
    assert data.num_classes == 10


@pytest.mark.parametrize(
    ("replaced", "parts"),
    [
        ({"train_images": b""}, ("train-images", "nothing")),
        ({"train_images": b"\x00\x00\x08\x03\x00"}, ("header of 16 bytes", "5 bytes")),
        (
            {"train_images": idx(np.zeros((20, 28, 28), np.uint8), magic=0x0D03)},
            ("00000803", "00000d03"),
        ),
        ({"test_labels": idx(np.zeros((10, 1), np.uint8))}, ("00000801", "00000802")),
        (
            {"train_images": idx(np.zeros((20, 28, 28), np.uint8))[:-5]},
            ("15680 values", "15675 bytes"),
        ),
        ({"train_labels": idx(np.zeros(20, np.uint8)) + b"!"}, ("20 values", "21 bytes")),
        ({"train_images": idx(np.zeros((20, 27, 28), np.uint8))}, ("(20, 27, 28)",)),
        ({"test_labels": idx(np.zeros(9, np.uint8))}, ("t10k-labels", "10", "9 labels")),
        ({"train_labels": idx(np.full(20, 10, np.uint8))}, ("0..9", "10 in row 0")),
    ],
)
def test_broken_files_are_refused_with_the_numbers(tmp_path, replaced, parts):
    write(tmp_path / "mnist", **replaced)
    with pytest.raises(ValueError) as error:
        datasets.load("mnist", tmp_path)
    for part in parts:
        assert part in str(error.value)


@pytest.mark.parametrize("keep", [0, 5, 40, -4])
def test_truncated_gzip_is_refused(tmp_path, keep):
    write(tmp_path / "mnist")
    path = tmp_path / "mnist" / "train-images-idx3-ubyte.gz"
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(ValueError, match=r"train-images-idx3-ubyte\.gz.*[Dd]ownload"):
        datasets.load("mnist", tmp_path)


def test_altered_gzip_is_refused(tmp_path):
    write(tmp_path / "mnist")
    path = tmp_path / "mnist" / "train-images-idx3-ubyte.gz"
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0xFF
    path.write_bytes(bytes(content))
    with pytest.raises(ValueError, match="complete gzip file"):
        datasets.load("mnist", tmp_path)


def test_missing_file_says_what_the_folder_holds(tmp_path):
    write(tmp_path / "mnist")
    (tmp_path / "mnist" / "t10k-labels-idx1-ubyte.gz").unlink()
    with pytest.raises(FileNotFoundError, match=r"t10k-labels-idx1-ubyte\.gz or.*holds \['t10k-im"):
        datasets.load("mnist", tmp_path)


@pytest.mark.parametrize("name", ["mnist", "fashion_mnist"])
def test_real_files(data_dir, name):
    data = datasets.load(name, data_dir)
    assert data.train["x"].shape == (60_000, 28, 28, 1)
    assert data.test["x"].shape == (10_000, 28, 28, 1)
    counts = np.bincount(data.train["y"])
    if name == "mnist":
        assert data.train["y"][:5].tolist() == [5, 0, 4, 1, 9]
        assert counts.tolist() == [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]
        assert round(data.train["x"].mean() / 255, 4) == 0.1307  # The value everybody uses.
    else:
        assert counts.tolist() == [6000] * 10
        assert round(data.train["x"].mean() / 255, 4) == 0.2860
