"""Loading by name, the data set without files, and downloads (with the downloader replaced)."""

import socket
import sys
import types

import numpy as np
import pytest

from tff_het import datasets


def test_unknown_name_lists_the_known_ones():
    assert {"digits", "mnist", "adult", "npz"} <= set(datasets.names())
    with pytest.raises(ValueError, match=r"'imdb'.*adult, cifar10, cifar10_embeddings, digits"):
        datasets.load("imdb")


def test_missing_data_dir_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere"):
        datasets.load("mnist", tmp_path / "nowhere")


@pytest.mark.parametrize("name", ["adult", "omniglot", "npz"])
def test_without_data_dir_says_how_to_get_the_files(name):
    with pytest.raises(FileNotFoundError, match=r"pass.*data_dir"):
        datasets.load(name)


@pytest.mark.parametrize("name", sorted(set(datasets.names()) - {"digits", "digits_vqa"}))
def test_empty_data_dir_names_the_missing_file(name, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"Expected .*(gz|bin|data|json|npz)"):
        datasets.load(name, tmp_path)


def test_digits_are_the_same_each_time_and_stratified():
    data = datasets.load("digits")
    assert data.train["x"].shape == (1437, 8, 8, 1) and data.train["x"].dtype == np.uint8
    assert data.test["x"].shape == (360, 8, 8, 1)
    assert data.train["x"].max() == 240 and not np.any(data.train["x"] % 15)
    share = np.bincount(data.test["y"]) / (
        np.bincount(data.test["y"]) + np.bincount(data.train["y"])
    )
    np.testing.assert_allclose(share, 0.2, atol=0.01)
    assert data.fingerprint() == datasets.load("digits").fingerprint()


def fake_tfds(monkeypatch, load, is_prepared=True):
    module = types.ModuleType("tensorflow_datasets")
    module.builder = lambda name: types.SimpleNamespace(is_prepared=lambda: is_prepared)
    module.load = load
    module.as_numpy = lambda splits: splits
    monkeypatch.setitem(sys.modules, "tensorflow_datasets", module)


@pytest.mark.parametrize("name", ["mnist", "fashion_mnist", "cifar10"])
def test_images_come_through_tfds_without_data_dir(name, monkeypatch):
    shape = (6, 32, 32, 3) if name == "cifar10" else (6, 28, 28, 1)

    def load(asked, split, batch_size):
        assert (asked, split, batch_size) == (name, ["train", "test"], -1)
        return [{"image": np.zeros(shape, np.uint8), "label": np.arange(6)} for _ in split]

    fake_tfds(monkeypatch, load)
    data = datasets.load(name)
    assert data.train["x"].shape == shape and data.train["y"].dtype == np.int32
    assert data.num_classes == 10 and data.source == "TensorFlow Datasets"


def test_failed_download_says_what_to_do(monkeypatch):
    def load(*args, **kwargs):
        raise ConnectionError("no network")

    fake_tfds(monkeypatch, load)
    with pytest.raises(RuntimeError, match=r"no network.*data_dir.*t10k-labels"):
        datasets.load("mnist")


def test_without_a_network_nothing_is_tried(monkeypatch, capsys):
    def connect(address, timeout):
        raise OSError(f"no network to {address}")

    monkeypatch.setattr(socket, "create_connection", connect)
    monkeypatch.delenv("https_proxy", raising=False)
    monkeypatch.delenv("http_proxy", raising=False)
    fake_tfds(monkeypatch, pytest.fail, is_prepared=False)
    with pytest.raises(RuntimeError, match=r"no network to .*, 80\).*Pass data_dir"):
        datasets.load("fashion_mnist")
    assert capsys.readouterr().err.startswith("Downloading 'fashion_mnist' from fashion-mnist.s3")
