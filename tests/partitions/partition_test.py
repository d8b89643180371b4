"""What a `Partition` refuses, counts, reports, draws and keeps on disk."""

import os

import numpy as np
import pytest
from matplotlib.figure import Figure

from tff_het.partitions import Partition


def indices(*parts):
    return tuple(np.array(part, np.int64) for part in parts)


def make(**changes):
    fields = {
        "name": "toy",
        "seed": 3,
        "client_ids": ("ann", "bob"),
        "train": indices([0, 2], [1, 4, 5]),
        "test": indices([1], [0, 2]),
        "num_train": 6,
        "num_test": 3,
        "options": {"alpha": 0.5, "classes": ((0, 1), (2,))},
    }
    return Partition(**{**fields, **changes})


LABELS = np.array([0, 1, 0, 2, 1, 1], np.int32)


@pytest.mark.parametrize(
    ("changes", "parts"),
    [
        ({"client_ids": ("ann", "ann")}, ("all different", "ann")),
        ({"client_ids": ("ann", 2)}, ("must be texts",)),
        ({"client_ids": (), "train": (), "test": ()}, ("one or more",)),
        ({"train": indices([0, 1])}, ("train", "2; found 1")),
        ({"train": indices([0, 2], [2, 3])}, ("at most", "first 2")),
        ({"train": indices([0, 2], [1, 6])}, ("0..5", "0..6")),
        ({"test": indices([-1], [0])}, ("test", "0..2", "-1..0")),
        ({"train": indices([2, 0], [1])}, ("'ann'", "strictly increasing")),
        ({"train": indices([2, 2], [1])}, ("'ann'", "strictly increasing")),
        ({"train": (np.array([0], np.int32), np.array([1]))}, ("int64", "int32")),
        ({"train": indices([0, 2], [])}, ("1 of 2 clients", "no training", "bob")),
        ({"test": indices([], [0])}, ("1 of 2 clients", "3 test", "ann", "allow_empty_test=True")),
        ({"options": {"rng": object()}}, ("options", "object")),
    ],
)
def test_refuses_what_does_not_hold(changes, parts):
    with pytest.raises(ValueError) as error:
        make(**changes)
    for part in ("toy", *parts):
        assert part in str(error.value)


def test_empty_test_can_be_allowed_but_empty_train_cannot():
    assert len(make(test=indices([], []), allow_empty_test=True).test[0]) == 0
    with pytest.raises(ValueError, match="no training"):
        make(train=indices([], [0]), allow_empty_test=True)


def test_class_counts():
    partition = make()
    assert partition.class_counts(LABELS).tolist() == [[2, 0, 0], [0, 3, 0]]
    assert partition.class_counts(LABELS, num_classes=4).shape == (2, 4)
    assert partition.class_counts(np.array([1, 1, 0]), "test").tolist() == [[0, 1], [1, 1]]


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        ((LABELS[:5],), ("6 train", "5 labels")),
        ((LABELS, "validation"), ("'train' or 'test'", "'validation'")),
        ((LABELS, "train", 2), ("0..1", "0..2")),
        ((LABELS - 1,), ("-1",)),
    ],
)
def test_class_counts_refuses(arguments, parts):
    with pytest.raises(ValueError) as error:
        make().class_counts(*arguments)
    for part in parts:
        assert part in str(error.value)


def test_describe_says_what_belongs_to_nobody():
    text = make().describe(LABELS, np.array([0, 1, 1]))
    assert text.splitlines() == [
        "toy: 2 clients, seed 3, alpha=0.5, classes=[[0, 1], [2]]",
        (
            "  train: 5 of 6 examples belong to clients (1 to nobody);"
            " per client 2 to 3 (median 2.5) of 1 to 1 classes"
        ),
        (
            "  test: 3 of 3 examples belong to clients (0 to nobody);"
            " per client 1 to 2 (median 1.5) of 1 to 2 classes"
        ),
    ]


def test_save_and_load_round_trip(tmp_path):
    partition = make(test=indices([], [0, 2]), allow_empty_test=True)
    path = tmp_path / "partition.npz"
    partition.save(path)
    partition.save(path)  # Replaces.
    loaded = Partition.load(path)
    for name in (
        "name",
        "seed",
        "client_ids",
        "num_train",
        "num_test",
        "options",
        "allow_empty_test",
    ):
        assert getattr(loaded, name) == getattr(partition, name)
    for split in ("train", "test"):
        for ours, theirs in zip(getattr(partition, split), getattr(loaded, split), strict=True):
            np.testing.assert_array_equal(ours, theirs)
            assert theirs.dtype == np.int64
    assert os.listdir(tmp_path) == ["partition.npz"]


def test_load_refuses_what_is_no_partition(tmp_path):
    path = tmp_path / "partition.npz"
    with pytest.raises(FileNotFoundError):
        Partition.load(path)
    make().save(path)
    whole = path.read_bytes()
    for content in (b"", b"hello", whole[: len(whole) // 2]):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=r"partition\.npz.*Make the partition again"):
            Partition.load(path)
    np.savez(path, x=np.zeros(3))
    with pytest.raises(ValueError, match="meta"):
        Partition.load(path)


def test_draw_labels_cells_where_they_are_few():
    ax = Figure().add_subplot()
    image = make().draw(ax, LABELS, class_names=("a", "b", "c"))
    assert image.get_array().tolist() == [[2, 0, 0], [0, 3, 0]]
    assert [text.get_text() for text in ax.texts] == ["2", "0", "0", "0", "3", "0"]
    assert [label.get_text() for label in ax.get_xticklabels()] == ["a", "b", "c"]
    assert [label.get_text() for label in ax.get_yticklabels()] == ["ann", "bob"]

    many = make(
        client_ids=tuple(f"c{k}" for k in range(300)),
        train=tuple(np.array([k]) for k in range(300)),
        test=tuple(np.array([k]) for k in range(300)),
        num_train=300,
        num_test=300,
    )
    ax = Figure().add_subplot()
    many.draw(ax, np.zeros(300, int), split="test", class_names=("$x_{$",))
    ax.figure.draw_without_rendering()  # No formula.
    assert not ax.texts
