"""A user's own arrays."""

import numpy as np
import pytest

from tff_het import datasets


def arrays():
    rng = np.random.default_rng(0)
    return {
        "x_train": rng.normal(size=(30, 4)),
        "y_train": np.arange(30) % 3,
        "x_test": rng.normal(size=(12, 4)),
        "y_test": np.arange(12) % 3,
        "network_train": np.arange(30) % 2,
        "network_test": np.arange(12) % 2,
    }


@pytest.mark.parametrize("in_folder", [True, False])
def test_reads_a_file_or_a_folder(tmp_path, in_folder):
    path = tmp_path / "npz" / "data.npz" if in_folder else tmp_path / "mine.npz"
    path.parent.mkdir(exist_ok=True)
    owners = {"owner_train": 2.0**24 + np.arange(30), "owner_test": np.zeros(12)}
    np.savez(path, **arrays(), **owners)
    data = datasets.load("npz", tmp_path if in_folder else path)
    assert data.train["x"].dtype == np.float32 and data.train["y"].dtype == np.int32
    assert len(np.unique(data.train["owner"])) == 30  # Float32 would merge them.
    np.testing.assert_array_equal(data.test["network"], arrays()["network_test"])
    assert data.class_names == ("0", "1", "2")


def test_takes_class_names(tmp_path):
    np.savez(tmp_path / "a.npz", **arrays(), class_names=np.array(["cat", "dog", "eel", "fox"]))
    assert datasets.load("npz", tmp_path / "a.npz").class_names == ("cat", "dog", "eel", "fox")


@pytest.mark.parametrize(
    ("changes", "parts"),
    [
        ({"y_train": np.zeros(30)}, ("y_train", "float64")),
        ({"y_test": np.zeros(0, int)}, ("y_test", "[0]")),
        ({"x_train": np.zeros((30, 4), np.int64)}, ("uint8, int16 or float32", "int64")),
        ({"x_train": np.full((30, 4), np.nan)}, ("'x'", "row 0")),
        ({"x_train": np.zeros((29, 4))}, ("29", "30")),
        ({"x_test": np.zeros((12, 5))}, ("[4]", "[5]")),
        ({"writer_train": np.zeros(30)}, ("same columns", "writer")),
        ({"weights": np.zeros(30)}, ("'weights'",)),
        ({"_train": np.zeros(30)}, ("'_train'",)),
        ({"class_names": np.array(["a"])}, ("1 class names", "0..0")),
        ({"class_names": np.array([1, 2, 3])}, ("text", "int64")),
        ({"y_train": np.array([None] * 30)}, ("without pickled objects", "Object arrays")),
    ],
)
def test_unfit_arrays_are_refused(tmp_path, changes, parts):
    path = tmp_path / "mine.npz"
    np.savez(path, **{**arrays(), **changes})
    with pytest.raises(ValueError) as error:
        datasets.load("npz", path)
    for part in (*parts, "mine.npz"):
        assert part in str(error.value)


def test_corrupt_files_are_refused(tmp_path):
    path = tmp_path / "mine.npz"
    np.savez_compressed(path, **arrays())
    whole = path.read_bytes()
    rng = np.random.default_rng(0)
    broken = [b"", b"hello", whole[: len(whole) // 2]]
    for place in rng.integers(40, len(whole) // 2, 40):
        altered = bytearray(whole)
        altered[place] ^= 0xFF
        broken.append(bytes(altered))
    expected = datasets.load("npz", path).fingerprint()
    for content in broken:
        path.write_bytes(content)
        try:
            found = datasets.load("npz", path).fingerprint()
        except ValueError as error:
            found = expected if "mine.npz" in str(error) else str(error)
        # Some bytes of a ZIP file carry nothing: the contents then must be what they were.
        assert found == expected


def test_npy_under_another_name_is_refused(tmp_path):
    path = tmp_path / "mine.npz"
    with path.open("wb") as file:
        np.save(file, np.zeros(3))
    with pytest.raises(ValueError, match=r"mine\.npz.*\.npz archive"):
        datasets.load("npz", path)
