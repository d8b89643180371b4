"""LEAF's JSON files, and the way through TFF with TFF replaced."""

import json
import types

import numpy as np
import pytest

from tff_het import datasets
from tff_het.backend.names import tff
from tff_het.datasets import download


def leaf(sizes, value=0.5, first_label=0):
    """The content of one LEAF file: {writer: number of examples}."""
    data = {
        writer: {
            "x": [[value] * 783 + [1.0]] * n,
            "y": [(first_label + i) % 62 for i in range(n)],
        }
        for writer, n in sizes.items()
    }
    return {"users": list(sizes), "num_samples": list(sizes.values()), "user_data": data}


@pytest.fixture
def write(tmp_path):
    def write(name, content):
        path = tmp_path / "femnist" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return tmp_path

    write("train/all_data_0.json", leaf({"f_b": 3, "f_a": 2}))
    write("train/all_data_1.json", leaf({"f_d": 1}, first_label=61))
    write("test/all_data_0.json", leaf({"f_a": 1, "f_c": 2, "f_e": 0}))
    return write


def test_reads_all_files_with_one_numbering_of_writers(write, tmp_path):
    data = datasets.load("femnist", tmp_path)
    assert data.train["x"].shape == (6, 28, 28, 1) and data.train["x"].dtype == np.uint8
    assert data.train["writer"].tolist() == [0, 0, 1, 1, 1, 3]
    assert data.test["writer"].tolist() == [0, 2, 2]
    assert data.train["y"].tolist() == [0, 1, 0, 1, 2, 61]
    assert data.train["x"][0, 0, 0, 0] == 128 and data.train["x"][0, 27, 27, 0] == 255
    assert data.num_classes == 62 and data.class_names[10] == "A" and data.class_names[36] == "a"


@pytest.mark.parametrize(
    ("content", "parts"),
    [
        (json.dumps(leaf({"w": 2}))[:500], ("complete JSON",)),
        ([1, 2], ("list",)),
        ({"users": [], "num_samples": []}, ("user_data",)),
        ({**leaf({"w": 2}), "num_samples": [3]}, ("3 examples", "'w'", "found 2")),
        ({**leaf({"w": 2}), "users": ["w", "v"]}, ("2 users", "1 sizes")),
        (leaf({"f_a": 1}), ("'f_a'", "earlier")),
        (leaf({"w": 1}, value=1.5), ("0..1", "1.5")),
        (leaf({"w": 1}, value=float("nan")), ("0..1", "nan")),
        (leaf({"w": 1}, value="a"), ("numbers", "'w'")),
        (
            {"users": ["w"], "num_samples": [1], "user_data": {"w": {"x": [[0.0] * 7], "y": [1]}}},
            ("[1, 784]", "[1, 7]"),
        ),
        ({"users": ["w"], "num_samples": [1], "user_data": {"w": {"x": [[0.0]]}}}, ("'y'",)),
    ],
)
def test_broken_files_are_refused(write, tmp_path, content, parts):
    write("train/all_data_2.json", content)
    with pytest.raises(ValueError) as error:
        datasets.load("femnist", tmp_path)
    for part in (*parts, "all_data_2.json", "preprocess.sh"):
        assert part in str(error.value)


def test_label_out_of_range_is_refused(write, tmp_path):
    content = leaf({"w": 1})
    content["user_data"]["w"]["y"] = [62]
    write("train/all_data_2.json", content)
    with pytest.raises(ValueError, match=r"0\.\.61.*found 62"):
        datasets.load("femnist", tmp_path)


class FakeClientData:
    """What is used of `tff.simulation.datasets.ClientData`."""

    client_ids = ("w1", "w0")

    def create_tf_dataset_for_client(self, client_id):
        examples = [
            {"label": np.int32(i), "pixels": np.full((28, 28), i / 2, np.float32)}
            for i in range(3 if client_id == "w0" else 1)
        ]
        return types.SimpleNamespace(as_numpy_iterator=lambda: iter(examples))


def fake_tff(monkeypatch, load_data):
    monkeypatch.setattr(tff.simulation.datasets.emnist, "load_data", load_data)
    monkeypatch.setattr(download, "announce", lambda name, url: None)


def test_comes_through_tff_without_data_dir(monkeypatch):
    fake_tff(monkeypatch, lambda only_digits: (FakeClientData(), FakeClientData()))
    data = datasets.load("femnist")
    assert data.train["writer"].tolist() == [0, 0, 0, 1]
    assert data.train["y"].tolist() == [0, 1, 2, 0]
    assert data.train["x"][:, 0, 0, 0].tolist() == [0, 128, 255, 0]


def test_failed_download_says_what_to_do(monkeypatch):
    def load_data(only_digits):
        raise OSError("no network")

    fake_tff(monkeypatch, load_data)
    with pytest.raises(RuntimeError, match=r"no network.*data_dir.*preprocess\.sh"):
        datasets.load("femnist")
