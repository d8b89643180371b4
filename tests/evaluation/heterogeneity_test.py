"""Distances of clients, against closed forms and the formulas as they are printed."""

import warnings

import numpy as np
import pytest
import scipy.linalg

from tff_het.evaluation.heterogeneity import earth_movers_distances, frechet_distances


def as_printed(mean_a, covariance_a, mean_b, covariance_b):
    """Eq. (2); singular matrices have a square root by their eigenvalues alone."""
    values, vectors = np.linalg.eigh(covariance_a)
    root = (vectors * np.sqrt(np.maximum(values, 0))) @ vectors.T
    overlap = np.sqrt(np.maximum(np.linalg.eigvalsh(root @ covariance_b @ root), 0)).sum()
    difference = mean_a - mean_b
    return difference @ difference + np.trace(covariance_a + covariance_b) - 2 * overlap


def moments(sample):
    sample = np.asarray(sample, np.float64)
    return sample.mean(axis=0), np.atleast_2d(np.cov(sample, rowvar=False))


def normal(rng, size, dimensions, offset=0.0):
    mixing = rng.normal(size=(dimensions, dimensions)) / np.sqrt(dimensions)
    return rng.normal(size=(size, dimensions)) @ mixing + offset + rng.normal(size=dimensions)


@pytest.mark.parametrize("dimensions", [1, 2, 7, 40])
def test_agrees_with_the_general_square_root(dimensions):
    rng = np.random.default_rng(dimensions)
    for size in (60, 200):
        a, b = (normal(rng, n, dimensions) + rng.normal(size=(n, dimensions)) for n in (size, 90))
        (mean_a, cov_a), (mean_b, cov_b) = moments(a), moments(b)
        root = np.atleast_2d(scipy.linalg.sqrtm(cov_a @ cov_b))
        difference = mean_a - mean_b
        expected = difference @ difference + np.trace(cov_a + cov_b - 2 * root.real)
        np.testing.assert_allclose(frechet_distances([a, b]), [expected, expected], rtol=1e-9)


def test_closed_forms():
    # Scalars: (m_a - m_b)^2 + (s_a - s_b)^2.
    scalars = [np.array([[-3.0], [3.0]]) / np.sqrt(2), np.array([[-5.0], [5.0]]) / np.sqrt(2) + 2]
    np.testing.assert_allclose(frechet_distances(scalars), 4.0 + 4.0)
    # Common directions: the sum over them of (s_a - s_b)^2, variances of 0 among them.
    rng = np.random.default_rng(0)
    directions, _ = np.linalg.qr(rng.normal(size=(6, 6)))
    deviations = np.array([[2, 1, 0, 0, 3, 1e-3], [1, 0, 4, 0, 3, 1e-2]])
    # Columns of length 1, orthogonal to each other and to 1: their covariance is 1 / 19.
    columns = np.linalg.qr(np.column_stack([np.ones(20), rng.normal(size=(20, 6))]))[0][:, 1:]
    samples = [np.sqrt(19) * columns @ (directions * own).T for own in deviations]
    expected = np.square(deviations[0] - deviations[1]).sum()
    np.testing.assert_allclose(frechet_distances(samples), expected, rtol=1e-6)


def test_samples_smaller_than_their_dimensions():
    # Two points have a covariance of rank one, u u^T with u their difference / sqrt(2).
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=(2, 2, 300))
    u, v = (np.diff(pair, axis=0)[0] / np.sqrt(2) for pair in (a, b))
    difference = a.mean(axis=0) - b.mean(axis=0)
    expected = difference @ difference + u @ u + v @ v - 2 * abs(u @ v)
    np.testing.assert_allclose(frechet_distances([a, b]), expected, rtol=1e-6)
    # More of them, and a constant dimension: as with the covariances themselves.
    a, b = rng.normal(size=(20, 60)) + 0.3, rng.normal(size=(40, 60)) * 2
    a[:, 7] = b[:, 7] = 5.0
    expected = as_printed(*moments(a), *moments(b))
    np.testing.assert_allclose(frechet_distances([a, b]), expected, rtol=1e-6)


def direct(features):
    """Eq. (3), each pool put together."""
    distances = []
    for client, rows in enumerate(features):
        others = np.concatenate([*features[:client], *features[client + 1 :]])
        distances.append(as_printed(*moments(rows), *moments(others)))
    return distances


@pytest.mark.parametrize(
    ("sizes", "dimensions"),
    [
        ((30, 50, 20, 90), 5),
        ((30, 50, 20, 90), 40),  # Some clients have fewer examples than dimensions.
        ((10, 9, 8), 40),  # All of them together have.
        ((2, 2), 3),
        ((2, 4000, 3), 6),
    ],
)
def test_average_is_that_of_each_client_to_the_others_together(sizes, dimensions):
    rng = np.random.default_rng(len(sizes))
    features = [normal(rng, size, dimensions) for size in sizes]
    found = frechet_distances(features)
    np.testing.assert_allclose(found, direct(features), rtol=1e-6)
    # Neither where they lie nor in which order clients come plays a part.
    moved = frechet_distances([rows + 1e5 for rows in features[::-1]])
    np.testing.assert_allclose(moved[::-1], found, rtol=1e-6)


def test_features_of_any_dtype_are_summed_in_double_precision():
    rng = np.random.default_rng(0)
    images = [rng.integers(low, 200 + low, size=(60, 16)).astype(np.uint8) for low in (0, 10, 50)]
    expected = direct([own.astype(np.float64) for own in images])
    np.testing.assert_allclose(frechet_distances(images), expected, rtol=1e-9)
    single = [own.astype(np.float32) + np.float32(2**14) for own in images]
    np.testing.assert_allclose(frechet_distances(single), expected, rtol=1e-9)
    apart = frechet_distances([single[0], images[0]])
    np.testing.assert_allclose(apart, 16 * 4.0**14)


def test_equal_distributions_are_not_below_zero():
    rng = np.random.default_rng(0)
    for dimensions in (3, 30, 200):
        rows = normal(rng, 100, dimensions)
        scale = np.trace(np.atleast_2d(np.cov(rows, rowvar=False)))
        for distance in frechet_distances([rows, rows[::-1]]):
            assert 0 <= distance < 1e-6 * scale


def test_constant_features_have_no_distance_and_no_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert frechet_distances([np.ones((4, 3)), np.ones((5, 3))]).tolist() == [0.0] * 2
        assert frechet_distances([np.ones((4, 9)), np.zeros((4, 9))]).tolist() == [9.0] * 2


def test_shares_of_classes_by_hand():
    found = earth_movers_distances([[4, 0, 0], [0, 2, 2], [0, 0, 8]])
    population = np.array([4, 2, 10]) / 16
    expected = [
        abs(np.array(shares) - population).sum() for shares in ((1, 0, 0), (0, 0.5, 0.5), (0, 0, 1))
    ]
    np.testing.assert_allclose(found, expected)
    np.testing.assert_allclose(earth_movers_distances([[1, 2], [10, 20]]), 0, atol=1e-15)
    np.testing.assert_allclose(earth_movers_distances(np.eye(100, dtype=int)), 2 * 0.99)


@pytest.mark.parametrize(
    ("features", "message"),
    [
        ([np.ones((5, 2))], "Two clients or more .* found 1"),
        ([np.ones((5, 2)), np.ones((1, 2))], "Client 1 of 2 .* two examples or more; found 1"),
        ([np.ones((5, 2)), np.ones((0, 2)), np.ones((5, 2))], "Client 1 of 3 .* found 0"),
        ([np.ones((5, 2)), np.ones((5, 3))], r"Client 1 .* \[5, 3\], and \[5, 2\]"),
        ([np.ones((5, 2, 1)), np.ones((5, 2, 1))], r"Client 0 .* \[5, 2, 1\]"),
        ([np.ones((5, 2)), np.full((5, 2), np.nan)], "must be finite"),
    ],
)
def test_features_that_cannot_be_compared_are_refused(features, message):
    with pytest.raises(ValueError, match=message):
        frechet_distances(features)


@pytest.mark.parametrize(
    ("counts", "message"),
    [
        ([1, 2], r"\[clients, classes\].*\[2\]"),
        (np.zeros((0, 3)), r"\[0, 3\]"),
        ([[1, -1], [1, 1]], "negative; found -1"),
        ([[1, 1], [0, 0], [0, 0]], "none at 2 of 3 clients, first number 1"),
    ],
)
def test_counts_that_are_none_are_refused(counts, message):
    with pytest.raises(ValueError, match=message):
        earth_movers_distances(counts)
