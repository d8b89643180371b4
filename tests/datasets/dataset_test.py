"""What a `Dataset` refuses, and its fingerprint."""

import dataclasses

import numpy as np
import pytest

from tff_het import datasets


def make_dataset(**changes):
    fields = {
        "name": "toy",
        "train": {"x": np.ones((4, 2), np.float32), "y": np.array([0, 1, 2, 0], np.int32)},
        "test": {"x": np.ones((2, 2), np.float32), "y": np.array([2, 1], np.int32)},
        "class_names": ("a", "b", "c"),
        "source": "made by hand",
    }
    return datasets.Dataset(**{**fields, **changes})


def test_holds_read_only_views_and_leaves_the_callers_arrays_alone():
    x = np.ones((4, 2), np.float32)
    data = make_dataset(train={"x": x, "y": np.zeros(4, np.int32)})
    assert data.num_classes == 3
    with pytest.raises(ValueError, match="read-only"):
        data.train["x"][0] = 7
    x[0] = 7
    with pytest.raises(dataclasses.FrozenInstanceError):
        data.name = "other"


@pytest.mark.parametrize(
    ("train", "parts"),
    [
        ({"x": np.ones((4, 2), np.float32)}, ("x and y are needed", "['x']")),
        ({"x": np.ones((3, 2), np.float32), "y": np.zeros(4, np.int32)}, ("'x': 3", "'y': 4")),
        ({"x": np.ones((0, 2), np.float32), "y": np.zeros(0, np.int32)}, ("at least one",)),
        ({"x": np.ones(4, np.float32), "y": np.zeros(4, np.int32)}, ("a row for", "[4]")),
        (
            {"x": np.ones((4, 2)), "y": np.zeros(4, np.int32)},
            ("uint8, int16 or float32", "float64"),
        ),
        ({"x": np.ones((4, 2), np.float32), "y": np.zeros(4)}, ("int32", "float64")),
        ({"x": np.ones((4, 2), np.float32), "y": np.zeros((4, 1), np.int32)}, ("[4, 1]",)),
        (
            {"x": np.ones((4, 2), np.float32), "y": np.array([0, 1, 3, 9], np.int32)},
            ("0..2", "3 in row 2"),
        ),
        ({"x": np.ones((4, 2), np.float32), "y": np.array([0, -1, 0, 0], np.int32)}, ("-1",)),
        (
            {"x": np.ones((4, 2), np.float32), "y": np.zeros(4, np.int32), "w": np.array(["a"])},
            ("'w'", "numbers or booleans"),
        ),
        (
            {"x": np.ones((4, 2), np.float32), "y": np.zeros(4, np.int32), "w": np.int32(3)},
            ("'w'", "NumPy array"),
        ),
        ({"x": np.ones((4, 3), np.float32), "y": np.zeros(4, np.int32)}, ("[3]", "[2]")),
        ({"x": np.ones((4, 2), np.uint8), "y": np.zeros(4, np.int32)}, ("uint8", "float32")),
    ],
)
def test_refuses_what_is_not_of_the_form(train, parts):
    with pytest.raises(ValueError) as error:
        make_dataset(train=train)
    for part in ("toy", *parts):
        assert part in str(error.value)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_refuses_non_finite_values_naming_column_and_first_row(value):
    weight = np.ones((4, 2), np.float32)
    weight[2, 1] = weight[3, 0] = value
    train = {"x": np.ones((4, 2), np.float32), "y": np.zeros(4, np.int32), "weight": weight}
    with pytest.raises(ValueError, match=r"'weight'.*row 2"):
        make_dataset(train=train)


def test_refuses_no_classes():
    with pytest.raises(ValueError, match="class name"):
        make_dataset(class_names=())


def test_fingerprint_follows_the_contents_and_nothing_else():
    data = make_dataset()
    assert data.fingerprint() == make_dataset(name="same", source="elsewhere").fingerprint()
    x = np.ones((4, 2), np.float32)
    x[3, 1] = 2
    labels = data.train["y"]
    changed = [
        make_dataset(train={"x": x, "y": labels}),
        make_dataset(class_names=("a", "b", "d")),
        make_dataset(train={**data.train, "w": labels}, test={**data.test, "w": data.test["y"]}),
        make_dataset(train=data.test, test=data.train),
    ]
    assert len({data.fingerprint(), *(one.fingerprint() for one in changed)}) == 5


def test_fingerprint_takes_arrays_that_are_not_contiguous():
    x = np.arange(8, dtype=np.float32).reshape(2, 4).T
    y = np.zeros(4, np.int32)
    view, copy = (make_dataset(train={"x": a, "y": y}) for a in (x, np.ascontiguousarray(x)))
    assert view.fingerprint() == copy.fingerprint()


def test_one_against_rest():
    data = make_dataset(class_names=("Cat", "Cough", "Bird"))
    binary = data.one_against_rest("cough")
    assert binary.class_names == ("other", "Cough")
    np.testing.assert_array_equal(binary.train["y"], [0, 1, 0, 0])
    np.testing.assert_array_equal(binary.test["y"], [0, 1])
    assert binary.train["y"].dtype == np.int32
    np.testing.assert_array_equal(binary.train["x"], data.train["x"])
    assert binary.fingerprint() != data.fingerprint()
    with pytest.raises(ValueError, match=r"no single class 'dog' beside others.*Cat, Cough, Bird"):
        data.one_against_rest("dog")
    letters = make_dataset(class_names=("A", "a", "b"))
    assert letters.one_against_rest("a").train["y"].tolist() == binary.train["y"].tolist()
    assert letters.one_against_rest("B").class_names == ("other", "b")


def test_with_test_in_train():
    data = make_dataset()
    both = data.with_test_in_train()
    np.testing.assert_array_equal(both.train["y"], [0, 1, 2, 0, 2, 1])
    np.testing.assert_array_equal(both.train["x"][4:], data.test["x"])
    assert len(both.train["x"]) == 6 and len(both.test["y"]) == 2


def with_questions(train, test=((1, 0), (0, 0)), dtype=np.int32, **changes):
    data = make_dataset()
    return make_dataset(
        train={**data.train, "question": np.array(train, dtype)},
        test={**data.test, "question": np.array(test, dtype)},
        **{"vocabulary": ("<padding>", "<unknown>", "cat"), **changes},
    )


QUESTIONS = ((1, 2), (2, 0), (1, 0), (2, 1))


def test_questions_are_of_words_in_the_vocabulary():
    data = with_questions(QUESTIONS)
    assert data.one_against_rest("a").vocabulary == data.vocabulary
    other = with_questions(QUESTIONS, vocabulary=("<padding>", "<unknown>", "dog"))
    assert data.fingerprint() != other.fingerprint()
    with pytest.raises(ValueError, match=r"test: words must be 0..2 .*found 3"):
        with_questions(QUESTIONS, ((1, 3), (0, 0)))
    with pytest.raises(ValueError, match=r"train: words must be 0..2 .*found -1"):
        with_questions((*QUESTIONS[:3], (-1, 0)))
    with pytest.raises(ValueError, match=r"a column question, int32 .*found int64 \[4, 2\]"):
        with_questions(QUESTIONS, dtype=np.int64)
    with pytest.raises(ValueError, match=r"a column question, int32 .*found none"):
        make_dataset(vocabulary=("<padding>",))
    # Without a vocabulary a column may have this name and be what it likes.
    with_questions(QUESTIONS, dtype=np.float32, vocabulary=())


@pytest.mark.parametrize("rows", [1, 3, 1000])
def test_statistics_of_each_feature_or_channel(monkeypatch, rows):
    """Over the training examples alone, also where they are taken in parts."""
    monkeypatch.setattr("tff_het.datasets.dataset._STATISTICS_ROWS", rows)
    rng = np.random.default_rng(0)
    labels = {"train": np.zeros(7, np.int32), "test": np.zeros(2, np.int32)}
    images = {n: rng.integers(0, 256, (len(y), 4, 5, 3), np.uint8) for n, y in labels.items()}
    made = make_dataset(**{n: {"x": images[n], "y": y} for n, y in labels.items()})
    mean, deviation = made.statistics()
    np.testing.assert_allclose(mean, images["train"].mean(axis=(0, 1, 2)), rtol=1e-12)
    np.testing.assert_allclose(deviation, images["train"].std(axis=(0, 1, 2)), rtol=1e-12)


def test_statistics_of_what_never_varies():
    """A deviation of 1, also of a number that is no sum of a few powers of 2."""
    x = np.tile(np.array([[0.1, 0, 7, 0]], np.float32), (1437, 1))
    x[:, 3] = np.arange(1437)
    made = make_dataset(
        train={"x": x, "y": np.zeros(1437, np.int32)},
        test={"x": x[:2], "y": np.zeros(2, np.int32)},
    )
    mean, deviation = made.statistics()
    np.testing.assert_allclose(mean[:3], [0.1, 0, 7], rtol=1e-6)
    np.testing.assert_array_equal(deviation[:3], np.ones(3))
    np.testing.assert_allclose(deviation[3], x[:, 3].std(dtype=np.float64))
