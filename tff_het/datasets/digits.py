"""The 8 x 8 handwritten digits that come with scikit-learn: small, and there without a download."""

import pathlib

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from tff_het.datasets.dataset import Dataset

_SPLIT_SEED = 0
_TEST_FRACTION = 0.2
_SCALE = 15  # Original values 0..16 become 0..240: exact in uint8, and of an image's usual range.


def load(data_dir: pathlib.Path | None) -> Dataset:
    """Loads the 1,797 digits: 1,437 to train on, 360 to test on.

    scikit-learn gives no split, so this is ours: stratified by class, 80/20, from a fixed seed.

    Args:
      data_dir: Not used: the files are part of scikit-learn.

    Returns:
      `x` uint8 [n, 8, 8, 1], multiples of 15 from 0 to 240; `y` 0..9.
    """
    del data_dir
    images, labels = load_digits(return_X_y=True)
    x = (images * _SCALE).astype(np.uint8).reshape(-1, 8, 8, 1)
    y = labels.astype(np.int32)
    rows_train, rows_test = train_test_split(
        np.arange(len(y)), test_size=_TEST_FRACTION, random_state=_SPLIT_SEED, stratify=y
    )
    train, test = (
        {"x": x[rows], "y": y[rows]} for rows in (np.sort(rows_train), np.sort(rows_test))
    )
    return Dataset("digits", train, test, tuple("0123456789"), "scikit-learn load_digits")
