"""Crops and mirror images against NumPy with the same draws."""

import numpy as np
import pytest
import tensorflow as tf

from tff_het.learning.augmentation import crop_and_flip


def by_hand(images: np.ndarray, padding: int, seed) -> np.ndarray:
    """One image at a time."""
    crop_seed, flip_seed = tf.random.experimental.stateless_split(seed, 2).numpy()
    n, height, width, _ = images.shape
    offsets = tf.random.stateless_uniform(
        [2, n], crop_seed, maxval=2 * padding + 1, dtype=tf.int32
    ).numpy()
    flips = tf.random.stateless_uniform([n], flip_seed).numpy() < 0.5
    results = []
    for image, top, left, flip in zip(images, *offsets, flips, strict=True):
        padded = np.pad(image, [(padding, padding), (padding, padding), (0, 0)])
        crop = padded[top : top + height, left : left + width]
        results.append(crop[:, ::-1] if flip else crop)
    return np.stack(results)


@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
@pytest.mark.parametrize("padding", [0, 1, 4])
def test_against_numpy(padding, dtype):
    images = np.random.default_rng(0).integers(1, 256, (30, 6, 5, 3)).astype(dtype)
    found = crop_and_flip(padding)(tf.constant(images), tf.constant([7, 8])).numpy()
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, by_hand(images, padding, [7, 8]))


def test_all_offsets_and_both_directions_occur():
    images = np.zeros((500, 9, 9, 1), np.uint8)
    images[:, 4, 3] = 1  # One pixel, not in the middle.
    found = crop_and_flip(2)(tf.constant(images), tf.constant([1, 1])).numpy()
    rows, columns = np.nonzero(found[..., 0])[1:]
    assert len(rows) == 500
    # Moved by -2 .. 2 from (4, 3), or from (4, 5) in the mirror.
    assert set(rows) == {2, 3, 4, 5, 6}
    assert set(columns) == {1, 2, 3, 4, 5, 6, 7}


def test_seeds():
    images = tf.constant(np.random.default_rng(0).integers(0, 256, (8, 6, 6, 3)), tf.uint8)
    one, again, other = (crop_and_flip(2)(images, tf.constant(s)) for s in ([1, 2], [1, 2], [1, 3]))
    np.testing.assert_array_equal(one, again)
    assert not np.array_equal(one, other)


def test_refusals():
    with pytest.raises(ValueError, match=">= 0, found -1"):
        crop_and_flip(-1)
    with pytest.raises(ValueError, match=r"images \[b, H, W, C\], found \(2, 3\)"):
        crop_and_flip()(tf.zeros([2, 3]), tf.constant([0, 0]))
