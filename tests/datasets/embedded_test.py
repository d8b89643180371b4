"""Embeddings as data sets: their order, tasks made of them, and damaged files."""

import json
import pathlib

import numpy as np
import pytest
import tensorflow as tf

from embeddings import records
from embeddings.examples import Item
from experiments.run import one
from experiments.run.config import RunConfig
from experiments.study import runner
from tff_het import datasets
from tff_het.datasets import embedding_files
from tff_het.simulation import runtime
from tff_het.simulation.checkpoints import CheckpointError

DIMENSION = 4
LABELS = ("Cough", "flute", "viola")


def make_items(number=30):
    rng = np.random.default_rng(0)
    for i in rng.permutation(number):
        split = "test" if i % 3 == 0 else "train"
        item = Item(f"{split}/{i:03}", LABELS[i % 3 - i % 2], split, f"place {i % 2}")
        yield item, np.array([i, i / 2, -i, 1], np.float32)


def save(folder: pathlib.Path, examples=None, num_files=3, **changes) -> pathlib.Path:
    """Writes records in the order in which they come, into files of about the same length."""
    folder.mkdir(parents=True)
    examples = list(make_items()) if examples is None else examples
    serialized = [records.serialize(item, embedding) for item, embedding in examples]
    counts = {}
    for item, _ in examples:
        by_label = counts.setdefault(item.split, {})
        by_label[item.label] = by_label.get(item.label, 0) + 1
    names = {}
    for index in range(num_files):
        part = serialized[index::num_files]
        names[f"embeddings-{index}.tfrecord"] = len(part)
        with tf.io.TFRecordWriter(str(folder / f"embeddings-{index}.tfrecord")) as writer:
            for record in part:
                writer.write(record)
    metadata = {
        "format": 1,
        "model": "yamnet",
        "dimension": DIMENSION,
        "class_names": sorted({item.label for item, _ in examples}),
        "sources": sorted({item.source for item, _ in examples}),
        "counts": counts,
        "checksum": embedding_files.checksum_text(embedding_files.checksum(serialized)),
        "files": names,
    }
    (folder / "metadata.json").write_text(json.dumps({**metadata, **changes}))
    return folder


def test_records_in_the_order_of_their_ids(tmp_path):
    save(tmp_path / "embedded")
    data = datasets.load("embedded", tmp_path)
    assert data.class_names == LABELS
    assert data.train["x"].dtype == np.float32 and data.train["y"].dtype == np.int32
    for split, examples in (("train", data.train), ("test", data.test)):
        expected = sorted(
            [(item.id, item, x) for item, x in make_items() if item.split == split],
            key=lambda entry: entry[0],
        )
        assert len(expected) == (20 if split == "train" else 10)
        np.testing.assert_array_equal(examples["x"], [x for _, _, x in expected])
        labels = [LABELS.index(item.label) for _, item, _ in expected]
        assert examples["y"].tolist() == labels and len(set(labels)) > 1
        sources = [int(item.source[-1]) for _, item, _ in expected]
        assert examples["source"].tolist() == sources


def test_contents_do_not_depend_on_files_and_order(tmp_path):
    one = datasets.load("embedded", save(tmp_path / "one"))
    examples = list(make_items())[::-1]
    other = datasets.load("embedded", save(tmp_path / "other", examples, num_files=5))
    assert one.fingerprint() == other.fingerprint()
    changed = [(item, x + (item.id == "train/004")) for item, x in examples]
    different = datasets.load("embedded", save(tmp_path / "changed", changed))
    assert different.fingerprint() != one.fingerprint()


def test_more_records_than_are_parsed_at_once(tmp_path, monkeypatch):
    expected = datasets.load("embedded", save(tmp_path / "embedded")).fingerprint()
    monkeypatch.setattr(embedding_files, "_CHUNK", 3)
    assert datasets.load("embedded", tmp_path / "embedded").fingerprint() == expected


@pytest.mark.parametrize("spelling", ["Cough", "cough"])
def test_coughs_against_all_else(tmp_path, spelling):
    named = {"Cough": spelling}
    examples = [
        (Item(i.id, named.get(i.label, i.label), i.split, i.source), x) for i, x in make_items()
    ]
    save(tmp_path / "fsd_cough", examples)
    data = datasets.load("fsd_cough", tmp_path)
    assert data.class_names == ("other", spelling)
    labels = [i.label for i, _ in sorted(examples, key=lambda e: e[0].id) if i.split == "train"]
    assert data.train["y"].tolist() == [int(label == spelling) for label in labels]
    assert 0 < data.train["y"].sum() < 20


def test_without_coughs_is_refused(tmp_path):
    save(tmp_path / "fsd_cough", [e for e in make_items() if e[0].label != "Cough"])
    with pytest.raises(ValueError, match=r"metadata\.json: expected a class 'Cough'.*flute"):
        datasets.load("fsd_cough", tmp_path)


def test_cifar10_embeddings_keep_all_classes(tmp_path):
    save(tmp_path / "cifar10_embeddings")
    assert datasets.load("cifar10_embeddings", tmp_path).class_names == LABELS


@pytest.mark.parametrize("name", ["embedded", "fsd_cough", "cifar10_embeddings"])
def test_missing_embeddings_say_how_to_make_them(tmp_path, name):
    for data_dir in (None, tmp_path):
        with pytest.raises(FileNotFoundError, match=rf"embeddings\.extract --output=.*{name}"):
            datasets.load(name, data_dir)


def test_a_study_finds_them(tmp_path):
    save(tmp_path / "fsd_cough")
    found = runner.fingerprint("fsd_cough", str(tmp_path))
    assert found == datasets.load("fsd_cough", tmp_path).fingerprint()
    with pytest.raises(runner.MissingDataError, match="cifar10_embeddings"):
        runner.fingerprint("cifar10_embeddings", str(tmp_path))


def test_the_positive_label_is_part_of_a_run(tmp_path):
    save(tmp_path / "embedded")
    values = {"dataset": "embedded", "data_dir": str(tmp_path), "method": "fed_avg"}
    values |= {"num_clients": "2", "rounds": "1", "positive_label": "flute"}
    with runtime.use("in_process"):
        one.run(RunConfig.of(**values), tmp_path / "run").close()
        assert "--positive_label=flute" in (tmp_path / "run" / "flags.txt").read_text()
        with pytest.raises(CheckpointError):
            one.run(RunConfig.of(**values | {"positive_label": "viola"}), tmp_path / "run").close()
        with pytest.raises(ValueError, match="no single class 'organ'"):
            one.run(
                RunConfig.of(**values | {"positive_label": "organ"}), tmp_path / "other"
            ).close()


@pytest.mark.parametrize(
    ("changes", "parts"),
    [
        ({"format": 2}, ("format 1", "format 2")),
        ({"dimension": 5}, ("dimension 5",)),
        ({"dimension": "4"}, ("'dimension' as int", "'4'")),
        ({"checksum": "farmhash64-sum:0"}, ("checksum farmhash64-sum:0",)),
        ({"counts": {"train": {"flute": 30}}}, ("counts",)),
        ({"class_names": ["Cough", "flute"]}, ("label of", "'viola'")),
        ({"class_names": ["flute", "viola", "Cough"]}, ("'class_names' sorted",)),
        ({"sources": ["place 0"]}, ("source of", "'place 1'")),
        ({"files": {}}, ("files and a dimension",)),
        ({"files": {"embeddings-0.tfrecord": 10}}, ("checksum",)),
        ({"files": {"embeddings-0.tfrecord": 11}}, ("11 records", "found 10")),
    ],
)
def test_metadata_that_does_not_fit_is_refused(tmp_path, changes, parts):
    save(tmp_path / "embedded", **changes)
    with pytest.raises(ValueError) as error:
        datasets.load("embedded", tmp_path)
    for part in (*parts, "Cannot use", "remove it first"):
        assert part in str(error.value)


@pytest.mark.parametrize("text", ["", "{", "[]", "\x00\xff", '{"format": 1}'])
def test_broken_metadata_is_refused(tmp_path, text):
    (save(tmp_path / "embedded") / "metadata.json").write_text(text, encoding="latin-1")
    with pytest.raises(ValueError, match=r"Cannot use .*metadata\.json"):
        datasets.load("embedded", tmp_path)


def broken(content: bytes, how: str) -> bytes:
    raw = [0]  # Where records begin and end: each has 16 bytes more than its length says.
    while raw[-1] < len(content):
        raw.append(raw[-1] + 16 + int.from_bytes(content[raw[-1] : raw[-1] + 8], "little"))
    flipped = bytearray(content)
    flipped[raw[1] + 60] ^= 1
    return {
        "empty": b"",
        "cut within a record": content[:-30],
        "cut between records": content[: raw[-2]],
        "one record twice": content[: raw[-2]] + content[: raw[1]],
        "a bit flipped": bytes(flipped),
        "other bytes": b"not records at all, but text" * 9,
    }[how]


@pytest.mark.parametrize(
    ("how", "parts"),
    [
        ("empty", ("embeddings-1.tfrecord", "10 records", "found 0")),
        ("cut within a record", ("embeddings-1.tfrecord", "whole TFRecords")),
        ("cut between records", ("embeddings-1.tfrecord", "10 records", "found 9")),
        ("one record twice", ("metadata.json", "checksum")),
        ("a bit flipped", ("embeddings-1.tfrecord", "whole TFRecords")),
        ("other bytes", ("embeddings-1.tfrecord", "whole TFRecords")),
    ],
)
def test_damaged_records_are_refused(tmp_path, how, parts):
    path = save(tmp_path / "embedded") / "embeddings-1.tfrecord"
    path.write_bytes(broken(path.read_bytes(), how))
    with pytest.raises(ValueError) as error:
        datasets.load("embedded", tmp_path)
    for part in (*parts, "Cannot use", "remove it first"):
        assert part in str(error.value)


def test_missing_file_is_named(tmp_path):
    (save(tmp_path / "embedded") / "embeddings-1.tfrecord").unlink()
    with pytest.raises(FileNotFoundError, match=r"Expected embeddings-1\.tfrecord"):
        datasets.load("embedded", tmp_path)


def test_checksums_of_parts_add_up():
    parts = [[b"a", b"bc"], [b"", b"d" * 999], []]
    total = embedding_files.checksum([record for part in parts for record in part])
    added = 0
    for part in parts[::-1]:
        added = embedding_files.add_checksums(embedding_files.checksum(part[::-1]), added)
    assert added == total != embedding_files.checksum([b"a", b"bc", b""])
    # The text is what files hold: it must stay what it is.
    assert embedding_files.checksum_text(embedding_files.checksum([b"a", b"bc"])) == (
        "farmhash64-sum:069fe2aa9631f75a"
    )
