"""Folders as PFLlib writes them: its arrays and clients, and nothing that runs code."""

import os
import pickle
import zipfile

import numpy as np
import pytest

from tff_het import datasets, partitions


def write(folder, shape=(3, 4, 5), sizes=((6, 2), (8, 3)), compressed=np.savez_compressed):
    """As `save_file` of PFLlib does; gives what each client has."""
    draw = np.random.default_rng(0)
    for number, split in enumerate(("train", "test")):
        (folder / split).mkdir(parents=True, exist_ok=True)
        for client, size in enumerate(sizes):
            x = draw.normal(size=(size[number], *shape)).astype(np.float32)
            y = np.arange(size[number]) % 2
            with open(folder / split / f"{client}.npz", "wb") as file:
                compressed(file, data={"x": x, "y": y})


def payload(path):
    with np.load(path, allow_pickle=True) as archive:
        return archive["data"].item()


@pytest.mark.parametrize("shape", [(3, 4, 5), (7,)])
def test_clients_have_their_own_examples(tmp_path, shape):
    write(tmp_path, shape)
    data = datasets.load("pfllib", tmp_path)
    split = partitions.make(
        "groups", data.train, data.test, num_clients=None, seed=0, column="client"
    )
    assert split.client_ids == ("client_0", "client_1")
    for client in range(2):
        for part, rows in (("train", split.train), ("test", split.test)):
            theirs = payload(tmp_path / part / f"{client}.npz")
            ours = getattr(data, part)
            x = ours["x"][rows[client]]
            expected = np.moveaxis(theirs["x"], 1, -1) if len(shape) == 3 else theirs["x"]
            np.testing.assert_array_equal(x, expected)
            np.testing.assert_array_equal(ours["y"][rows[client]], theirs["y"])


def test_more_than_ten_clients_are_in_the_order_of_their_numbers(tmp_path):
    write(tmp_path / "pfllib", (2,), [(2 + k, 2) for k in range(12)], np.savez)
    data = datasets.load("pfllib", tmp_path)
    assert np.bincount(data.train["client"]).tolist() == [2 + k for k in range(12)]


class Evil:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.system, (f"touch {self.path}",)


def test_pickled_code_is_refused_and_not_run(tmp_path):
    write(tmp_path)
    trace = tmp_path / "trace"
    with open(tmp_path / "train" / "1.npz", "wb") as file:
        np.savez(file, data=Evil(trace))
    with pytest.raises(ValueError, match=r"1.npz: .*system, which is no array"):
        datasets.load("pfllib", tmp_path)
    assert not trace.exists()
    header = zipfile.ZipFile(tmp_path / "train" / "1.npz").read("data.npy")
    assert b"system" in header and pickle.DEFAULT_PROTOCOL  # The test holds what it says.


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"x": np.zeros((2, 3))}, "'y'"),
        ({"x": np.zeros((2, 3)), "y": np.zeros(3, int)}, "dictionary"),
        ({"x": np.zeros((2, 3)), "y": 3}, "dictionary"),
        ({"x": np.zeros((2, 3)), "y": np.zeros(2)}, "y as integers"),
        ({"x": np.zeros((2, 9)), "y": np.zeros(2, int)}, "examples of one shape"),
        ("text", "dictionary"),
    ],
)
def test_other_content_is_refused(tmp_path, data, message):
    write(tmp_path, (3,))
    with open(tmp_path / "train" / "1.npz", "wb") as file:
        np.savez(file, data=data)
    with pytest.raises(ValueError, match=message):
        datasets.load("pfllib", tmp_path)


def test_clients_that_only_test_are_refused(tmp_path):
    write(tmp_path, sizes=((6, 2), (0, 3)))
    with pytest.raises(ValueError, match="no training examples of client 1, which has test"):
        datasets.load("pfllib", tmp_path)


def test_missing_files_are_told(tmp_path):
    with pytest.raises(FileNotFoundError, match="pass data_dir"):
        datasets.load("pfllib")
    with pytest.raises(FileNotFoundError, match=r"Expected 0\.npz"):
        datasets.load("pfllib", tmp_path)
    write(tmp_path)
    (tmp_path / "test" / "0.npz").unlink()
    with pytest.raises(FileNotFoundError, match=r"found \[1\]"):
        datasets.load("pfllib", tmp_path)
