"""A small Omniglot: handwritten characters of several alphabets, by writer."""

import pathlib

import numpy as np

from tff_het.datasets import files
from tff_het.datasets.dataset import Dataset
from tff_het.kinds import Whole

_FILE = "omniglot_small28.npz"
_SPLIT_SEED = 0
_TEST_EVERY = 5  # One example in five is a test example.
_HOW = (
    f"Write <data_dir>/omniglot/{_FILE} with np.savez from the drawings of"
    " https://github.com/brendenlake/omniglot: x uint8 [n, 28, 28], and label, alphabet and writer,"
    " integers [n] from 0 (optionally char_names: one name per label)."
)


@files.explained(_HOW)
def load(data_dir: pathlib.Path | None, *, max_characters: Whole | None = None) -> Dataset:
    """Loads Omniglot (Lake et al. 2015): a class per character, a writer column.

    Each writer drew each character of one alphabet once, so that a split must cut both ways. Ours:
    within an alphabet writers and characters are ranked at random (fixed seed), and the drawing of
    writer i and character j is a test example where i + j is a multiple of 5. Every character with
    5 writers and every writer with 5 characters or more thus appears in train and in test, in
    proportions of about 80/20.

    Args:
      data_dir: Holds `omniglot/omniglot_small28.npz`.
      max_characters: Keep at most this many characters, the first of the file; None keeps all.

    Returns:
      `x` uint8 [n, 28, 28, 1]; `y`, the character; `writer` and `alphabet`, int32 [n].

    Raises:
      FileNotFoundError: The file is missing, or data_dir is None.
      ValueError: The file is corrupt or its arrays do not fit together.
    """
    path = files.find(files.folder(data_dir, "omniglot"), _FILE)
    arrays = files.read_npz(path, ("x", "label", "alphabet", "writer"))
    images = arrays["x"]
    if images.dtype != np.uint8 or not images.size or images.shape[1:] != (28, 28):
        raise files.corrupt(path, "x uint8 [n, 28, 28], n > 0", files.form(images))
    columns = {
        name: files.whole_numbers(path, key, arrays[key], length=len(images))
        for name, key in (("y", "label"), ("writer", "writer"), ("alphabet", "alphabet"))
    }
    columns["x"] = images[..., None]
    in_test = _in_test(columns["y"], columns["writer"], columns["alphabet"])
    class_names = files.class_names(path, columns["y"], arrays.get("char_names"), "char_names")
    kept = columns["y"] < (max_characters or np.inf)
    train = {key: column[kept & ~in_test] for key, column in columns.items()}
    test = {key: column[kept & in_test] for key, column in columns.items()}
    return Dataset("omniglot", train, test, class_names[:max_characters], f"file {path}")


def _in_test(labels: np.ndarray, writers: np.ndarray, alphabets: np.ndarray) -> np.ndarray:
    """Marks the test drawings: bool [n]."""
    rng = np.random.default_rng(_SPLIT_SEED)
    in_test = np.zeros(len(labels), bool)
    for alphabet in np.unique(alphabets):
        rows = np.flatnonzero(alphabets == alphabet)
        ranks = _random_ranks(labels[rows], rng) + _random_ranks(writers[rows], rng)
        in_test[rows] = ranks % _TEST_EVERY == 0
    return in_test


def _random_ranks(values: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """For each value the place of its kind in a random order of the kinds: int [n]."""
    kinds, kind = np.unique(values, return_inverse=True)
    return rng.permutation(len(kinds))[kind]
