"""Omniglot's split by writer and character, on a small copy of its design and the real file."""

import numpy as np
import pytest

from tff_het import datasets


def drawings(characters=(6, 9), writers=10):
    """Every writer of an alphabet drew each of its characters once."""
    label, alphabet, writer = [], [], []
    for a, num_characters in enumerate(characters):
        for character in range(num_characters):
            label += [sum(characters[:a]) + character] * writers
            alphabet += [a] * writers
            writer += range(a * writers, (a + 1) * writers)
    x = np.zeros((len(label), 28, 28), np.uint8)
    x[:, 0, 0] = np.arange(len(label)) % 256
    columns = {"label": label, "alphabet": alphabet, "writer": writer}
    return {"x": x, **{key: np.array(value, np.int16) for key, value in columns.items()}}


def save(tmp_path, **arrays):
    (tmp_path / "omniglot").mkdir(exist_ok=True)
    np.savez(tmp_path / "omniglot" / "omniglot_small28.npz", **arrays)
    return tmp_path


def check_split(data, num_writers):
    for column, kinds in (("y", data.num_classes), ("writer", num_writers)):
        for examples in (data.train, data.test):
            assert len(np.unique(examples[column])) == kinds
    share = len(data.test["y"]) / (len(data.test["y"]) + len(data.train["y"]))
    assert share == pytest.approx(0.2)


def test_every_writer_and_character_is_in_train_and_test(tmp_path):
    data = datasets.load("omniglot", save(tmp_path, **drawings()))
    assert data.num_classes == 15 and data.class_names[14] == "14"
    check_split(data, num_writers=20)
    assert data.fingerprint() == datasets.load("omniglot", tmp_path).fingerprint()


def test_fewer_characters_keep_their_drawings_and_split(tmp_path):
    data = datasets.load("omniglot", save(tmp_path, **drawings()))
    few = datasets.load("omniglot", tmp_path, max_characters=7)
    assert few.class_names == data.class_names[:7]
    for all_, kept in ((data.train, few.train), (data.test, few.test)):
        for key, column in kept.items():
            np.testing.assert_array_equal(column, all_[key][all_["y"] < 7])


@pytest.mark.parametrize(
    ("changes", "parts"),
    [
        ({"x": np.zeros((150, 28, 28), np.float32)}, ("uint8", "float32")),
        ({"x": np.zeros((150, 27, 28), np.uint8)}, ("[150, 27, 28]",)),
        ({"x": np.zeros((0, 28, 28), np.uint8)}, ("n > 0",)),
        ({"writer": np.zeros(149, np.int16)}, ("writer", "[150]", "[149]")),
        ({"label": np.zeros(150)}, ("label", "float64")),
        ({"char_names": np.array(["only one"])}, ("0..0", "1 class names")),
    ],
)
def test_broken_files_are_refused(tmp_path, changes, parts):
    with pytest.raises(ValueError) as error:
        datasets.load("omniglot", save(tmp_path, **{**drawings(), **changes}))
    for part in (*parts, "omniglot"):
        assert part in str(error.value)


def test_missing_array_is_named(tmp_path):
    arrays = drawings()
    del arrays["writer"]
    with pytest.raises(ValueError, match=r"'writer'.*only \['alphabet'"):
        datasets.load("omniglot", save(tmp_path, **arrays))


def test_real_file(data_dir):
    data = datasets.load("omniglot", data_dir)
    assert data.num_classes == 242 and len(data.train["y"]) == 3872
    check_split(data, num_writers=160)
    assert np.bincount(data.test["y"]).tolist() == [4] * 242
