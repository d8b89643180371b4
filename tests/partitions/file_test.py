"""A finished split from a file: the same clients, and what is refused."""

import numpy as np
import pytest

from tff_het import partitions


def examples(n):
    return {"x": np.zeros((n, 1), np.float32), "y": np.arange(n, dtype=np.int32) % 5}


TRAIN, TEST = examples(100), examples(40)


def make(path, train=TRAIN, test=TEST, num_clients=None):
    return partitions.make(
        "file", train, test, num_clients=num_clients, seed=3, path=str(path), allow_empty_test=True
    )


@pytest.fixture
def saved(tmp_path):
    found = partitions.make("dirichlet", TRAIN, TEST, num_clients=4, seed=1, allow_empty_test=True)
    found.save(tmp_path / "split.npz")
    return found, tmp_path / "split.npz"


def test_split_is_that_of_the_file(saved):
    original, path = saved
    found = make(path)
    assert found.client_ids == original.client_ids
    assert found.fingerprint() == original.fingerprint()
    other = partitions.make("iid", TRAIN, TEST, num_clients=4, seed=1)
    assert found.fingerprint() != other.fingerprint()
    assert make(path, num_clients=4).fingerprint() == found.fingerprint()


def test_file_that_does_not_fit_is_refused(saved, tmp_path):
    _, path = saved
    with pytest.raises(ValueError, match="made for 100 training examples; found 99"):
        make(path, train=examples(99))
    with pytest.raises(ValueError, match="made for 40 test examples; found 41"):
        make(path, test=examples(41))
    others = {**TRAIN, "y": np.roll(TRAIN["y"], 1)}
    with pytest.raises(ValueError, match="for other labels, or another order of them"):
        make(path, train=others)
    with pytest.raises(ValueError, match="has 4 clients; found num_clients=5"):
        make(path, num_clients=5)
    with pytest.raises(FileNotFoundError):
        make(tmp_path / "none.npz")
