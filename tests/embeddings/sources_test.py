"""Sources: which examples a folder or data set has, and when two are the same."""

import dataclasses
import shutil

import numpy as np
import pytest

pytest.importorskip("tensorflow_hub")

from embeddings.examples import UnusableError
from embeddings.sources import ImageFolders, LabelledFiles, RegisteredDataset
from tff_het import datasets

FSD = {
    "FSDKaggle2018.meta/train_post_competition.csv": (
        "fname,label,manually_verified,freesound_id,license\n"
        "b.wav,Cough,1,1,CC0\na.wav,Flute,0,2,CC0\n"
    ),
    "FSDKaggle2018.meta/test_post_competition_scoring_clips.csv": (
        "fname,label,usage,freesound_id,license\nb.wav,Flute,Public,3,CC0\n"
    ),
    "FSDKaggle2018.audio_train/a.wav": "train a",
    "FSDKaggle2018.audio_train/b.wav": "train b",
    "FSDKaggle2018.audio_test/b.wav": "test b",
}
SIMPLE = {
    "train.csv": "\ufefffname,label,source\nb.wav,Cough,home\na.wav,Flute,\n",
    "test.csv": "label,fname\nFlute,c.wav\n",
    "audio/a.wav": "train a",
    "audio/b.wav": "train b",
    "audio/c.wav": "test c",
}
IMAGES = {
    "train/cat/1.png": "1",
    "train/dog/1.png": "2",
    "test/cat/x.jpg": "3",
    "train/cat/.hidden": "-",
    "train/note.txt": "-",
}


def make(folder, content):
    for name, text in content.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return str(folder)


def found(source):
    return [
        (item.id, item.label, item.split, item.source, source.read(item)) for item in source.items()
    ]


def test_fsdkaggle2018_layout(tmp_path):
    assert found(LabelledFiles(make(tmp_path, FSD))) == [
        ("test/b.wav", "Flute", "test", "", b"test b"),
        ("train/a.wav", "Flute", "train", "", b"train a"),
        ("train/b.wav", "Cough", "train", "", b"train b"),
    ]


def test_simple_layout_with_sources(tmp_path):
    assert found(LabelledFiles(make(tmp_path, SIMPLE))) == [
        ("test/c.wav", "Flute", "test", "", b"test c"),
        ("train/a.wav", "Flute", "train", "", b"train a"),
        ("train/b.wav", "Cough", "train", "home", b"train b"),
    ]


def test_image_folders(tmp_path):
    assert found(ImageFolders(make(tmp_path, IMAGES))) == [
        ("test/cat/x.jpg", "cat", "test", "", b"3"),
        ("train/cat/1.png", "cat", "train", "", b"1"),
        ("train/dog/1.png", "dog", "train", "", b"2"),
    ]


def test_missing_file_is_unusable(tmp_path):
    source = LabelledFiles(make(tmp_path, SIMPLE))
    (tmp_path / "audio" / "a.wav").unlink()
    with pytest.raises(UnusableError) as error:
        source.read(source.items()[1])
    assert error.value.reason == "missing" and "a.wav" in error.value.detail


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("name,label\na.wav,x\n", ("train.csv", "fname and label", "'name'")),
        ("", ("train.csv", "fname and label", "[]")),
        ("fname,label\na.wav,x\nb.wav\n", ("line 3", "'b.wav' and None")),
        ("fname,label\na.wav,x\na.wav,y\n", ("line 3", "'a.wav' and 'y'", "of its own")),
    ],
)
def test_broken_lists_are_refused(tmp_path, text, parts):
    make(tmp_path, SIMPLE)
    (tmp_path / "train.csv").write_text(text)
    with pytest.raises(ValueError) as error:
        LabelledFiles(str(tmp_path)).items()
    for part in parts:
        assert part in str(error.value)


@pytest.mark.parametrize("kind", [LabelledFiles, ImageFolders])
def test_other_folders_are_refused(tmp_path, kind):
    with pytest.raises(FileNotFoundError, match=r"Expected .*found no such folder"):
        kind(str(tmp_path / "nowhere")).items()
    (tmp_path / ".git").mkdir()
    with pytest.raises(FileNotFoundError, match=r"Expected .*\.git"):
        kind(str(tmp_path)).items()


def test_other_splits_are_refused(tmp_path):
    make(tmp_path, {**IMAGES, "validation/cat/1.png": "1"})
    with pytest.raises(ValueError, match="validation"):
        ImageFolders(str(tmp_path)).items()


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("audio/a.wav", "other"),
        ("train.csv", SIMPLE["train.csv"].replace("Cough", "cough")),
        ("train.csv", SIMPLE["train.csv"].replace("home", "work")),
        ("test.csv", SIMPLE["test.csv"].replace("c.wav", "a.wav")),
    ],
)
def test_fingerprint_is_of_the_content(tmp_path, name, text):
    source = LabelledFiles(make(tmp_path / "one", SIMPLE))
    before = source.fingerprint()
    shutil.copytree(tmp_path / "one", tmp_path / "two")
    moved = dataclasses.replace(source, folder=str(tmp_path / "two"))
    assert moved.fingerprint() == before
    (tmp_path / "two" / name).write_text(text, encoding="utf-8")
    assert moved.fingerprint() != before


def test_missing_file_has_a_fingerprint(tmp_path):
    source = LabelledFiles(make(tmp_path, SIMPLE))
    before = source.fingerprint()
    (tmp_path / "audio" / "a.wav").unlink()
    assert source.fingerprint() != before


def test_registered_data_set_keeps_its_order():
    data, source = datasets.load("digits"), RegisteredDataset("digits", None)
    items = source.items()
    assert [item.id for item in items] == sorted(item.id for item in items)
    train = [item for item in items if item.split == "train"]
    assert len(train) == len(data.train["y"]) and len(items) - len(train) == len(data.test["y"])
    np.testing.assert_array_equal([int(item.label) for item in train], data.train["y"])
    for item, x in zip(train, data.train["x"], strict=True):
        np.testing.assert_array_equal(source.read(item), x)
    assert source.fingerprint() == data.fingerprint()
