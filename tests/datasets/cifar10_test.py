"""The CIFAR-10 reader on small files of the same form, and on the real data."""

import pathlib
import subprocess
import sys

import numpy as np
import pytest

from tff_het import datasets
from tff_het.datasets import cifar10

FILES = [f"data_batch_{i}.bin" for i in range(1, 6)] + ["test_batch.bin"]
CLASS_NAMES = [
    "airplane",
    "automobile",
    "bird",
    "cat",
    "deer",
    "dog",
    "frog",
    "horse",
    "ship",
    "truck",
]


@pytest.fixture
def folder(tmp_path, monkeypatch) -> pathlib.Path:
    """Files of 10 records each."""
    monkeypatch.setattr(cifar10, "_RECORDS_PER_FILE", 10)
    folder = tmp_path / "cifar10" / "cifar-10-batches-bin"
    folder.mkdir(parents=True)
    rng = np.random.default_rng(0)
    for name in FILES:
        records = rng.integers(0, 256, (10, 3073), dtype=np.uint8)
        records[:, 0] = np.arange(10)
        (folder / name).write_bytes(records.tobytes())
    (folder / "batches.meta.txt").write_text("\n".join(CLASS_NAMES) + "\n\n")
    return folder


def test_reads_planes_as_channels_in_file_order(folder, tmp_path):
    data = datasets.load("cifar10", tmp_path)
    assert data.train["x"].shape == (50, 32, 32, 3) and data.test["x"].shape == (10, 32, 32, 3)
    assert data.class_names == tuple(CLASS_NAMES)
    record = np.fromfile(folder / "data_batch_2.bin", np.uint8).reshape(10, 3073)[3]
    image = data.train["x"][13]
    assert data.train["y"][13] == 3
    assert image[5, 7].tolist() == [record[1 + plane * 1024 + 5 * 32 + 7] for plane in range(3)]


@pytest.mark.parametrize("name", FILES)
def test_truncated_file_is_refused(folder, tmp_path, name):
    (folder / name).write_bytes((folder / name).read_bytes()[:-3073])
    with pytest.raises(ValueError, match=rf"{name}.*30730 bytes.*27657 bytes"):
        datasets.load("cifar10", tmp_path)


def test_label_out_of_range_is_refused(folder, tmp_path):
    content = bytearray((folder / "data_batch_1.bin").read_bytes())
    content[3073] = 77
    (folder / "data_batch_1.bin").write_bytes(bytes(content))
    with pytest.raises(ValueError, match=r"data_batch_1\.bin.*77"):
        datasets.load("cifar10", tmp_path)


def test_missing_file_and_other_names_are_refused(folder, tmp_path):
    (folder / "batches.meta.txt").write_text("apple\n")
    with pytest.raises(ValueError, match=r"batches\.meta\.txt.*apple"):
        datasets.load("cifar10", tmp_path)
    (folder / "data_batch_4.bin").unlink()
    with pytest.raises(FileNotFoundError, match=r"data_batch_4\.bin"):
        datasets.load("cifar10", tmp_path)


@pytest.mark.slow
def test_real_files(data_dir, tmp_path):
    root = data_dir
    if not (root / "cifar10" / "cifar-10-batches-bin").is_dir():
        script = root / "cifar10" / "make_cifar10_bin.py"
        if not script.is_file():
            pytest.skip("TFF_HET_DATA_DIR holds no cifar10/cifar-10-batches-bin")
        root = tmp_path
        subprocess.run([sys.executable, script, root / "cifar10"], check=True)
    data = datasets.load("cifar10", root)
    assert data.train["x"].shape == (50_000, 32, 32, 3)
    assert np.bincount(data.train["y"]).tolist() == [5000] * 10
    assert np.bincount(data.test["y"]).tolist() == [1000] * 10
    assert data.train["y"][:5].tolist() == [6, 9, 9, 4, 1]
    means = data.train["x"].reshape(-1, 3).mean(axis=0) / 255
    np.testing.assert_allclose(means, [0.4914, 0.4822, 0.4465], atol=5e-4)
