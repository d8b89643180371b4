"""Distances of clients, against closed forms and the formulas as they are printed."""

import warnings

import numpy as np
import pytest
import scipy.linalg

from tff_het.evaluation.heterogeneity import (
    average_frechet_distance,
    earth_movers_distance,
    frechet_distance,
    frechet_distance_of_samples,
)


def as_printed(mean_a, covariance_a, mean_b, covariance_b):
    """Eq. (2) with a general matrix square root."""
    root = scipy.linalg.sqrtm(covariance_a @ covariance_b)
    difference = mean_a - mean_b
    return difference @ difference + np.trace(covariance_a + covariance_b - 2 * root.real)


def moments(sample):
    sample = np.asarray(sample, np.float64)
    return sample.mean(axis=0), np.cov(sample, rowvar=False)


def normal(rng, size, dimensions, offset=0.0):
    mixing = rng.normal(size=(dimensions, dimensions)) / np.sqrt(dimensions)
    return rng.normal(size=(size, dimensions)) @ mixing + offset + rng.normal(size=dimensions)


@pytest.mark.parametrize("dimensions", [1, 2, 7, 40])
def test_agrees_with_the_general_square_root(dimensions):
    rng = np.random.default_rng(dimensions)
    for size in (60, 200):
        a, b = (normal(rng, n, dimensions) + rng.normal(size=(n, dimensions)) for n in (size, 90))
        (mean_a, cov_a), (mean_b, cov_b) = moments(a), moments(b)
        cov_a, cov_b = np.atleast_2d(cov_a), np.atleast_2d(cov_b)
        expected = as_printed(mean_a, cov_a, mean_b, cov_b)
        assert frechet_distance(mean_a, cov_a, mean_b, cov_b) == pytest.approx(expected, rel=1e-9)
        assert frechet_distance(mean_b, cov_b, mean_a, cov_a) == pytest.approx(expected, rel=1e-9)
        assert frechet_distance_of_samples(a, b) == pytest.approx(expected, rel=1e-9)
        average = average_frechet_distance([a, b])
        np.testing.assert_allclose(average.clients, [expected, expected], rtol=1e-9)


def test_closed_forms():
    zero, one = np.zeros(3), np.array([1.0, 2.0, -2.0])
    # Points; a point and a distribution; scalars: (s_a - s_b)^2.
    nothing = np.zeros((3, 3))
    assert frechet_distance(zero, nothing, one, nothing) == pytest.approx(9.0)
    assert frechet_distance(zero, nothing, one, 2 * np.eye(3)) == pytest.approx(9.0 + 6.0)
    assert frechet_distance([0.0], [[9.0]], [2.0], [[25.0]]) == pytest.approx(4.0 + 4.0)
    # Common directions: the sum over them of (s_a - s_b)^2, variances of 0 among them.
    rng = np.random.default_rng(0)
    directions, _ = np.linalg.qr(rng.normal(size=(6, 6)))
    a, b = np.array([4, 1, 0, 0, 9, 1e-6]), np.array([1, 0, 16, 0, 9, 1e-4])
    covariances = [(directions * values) @ directions.T for values in (a, b)]
    found = frechet_distance(np.zeros(6), covariances[0], np.zeros(6), covariances[1])
    assert found == pytest.approx(np.square(np.sqrt(a) - np.sqrt(b)).sum(), rel=1e-6)
    # Of rank one: |u|^2 + |v|^2 - 2 |u.v|.
    u, v = rng.normal(size=(2, 50))
    found = frechet_distance(np.zeros(50), np.outer(u, u), np.zeros(50), np.outer(v, v))
    assert found == pytest.approx(u @ u + v @ v - 2 * abs(u @ v), rel=1e-6)


def test_samples_smaller_than_their_dimensions():
    # Two points have a covariance of rank one, u u^T with u their difference / sqrt(2).
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=(2, 2, 300))
    u, v = (np.diff(pair, axis=0)[0] / np.sqrt(2) for pair in (a, b))
    difference = a.mean(axis=0) - b.mean(axis=0)
    expected = difference @ difference + u @ u + v @ v - 2 * abs(u @ v)
    assert frechet_distance_of_samples(a, b) == pytest.approx(expected, rel=1e-12)
    assert average_frechet_distance([a, b]).mean == pytest.approx(expected, rel=1e-6)
    # More of them, and a constant dimension: as with the covariances themselves.
    a, b = rng.normal(size=(20, 60)) + 0.3, rng.normal(size=(40, 60)) * 2
    a[:, 7] = b[:, 7] = 5.0
    expected = frechet_distance(*moments(a), *moments(b))
    assert frechet_distance_of_samples(a, b) == pytest.approx(expected, rel=1e-6)


def direct(features):
    """Eq. (3), each pool put together."""
    distances = []
    for client, rows in enumerate(features):
        others = np.concatenate([*features[:client], *features[client + 1 :]])
        distances.append(frechet_distance(*moments(rows), *moments(others)))
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
    found = average_frechet_distance(features)
    np.testing.assert_allclose(found.clients, direct(features), rtol=1e-6)
    assert found.mean == np.mean(found.clients)
    # Neither where they lie nor in which order clients come plays a part.
    moved = average_frechet_distance([rows + 1e5 for rows in features[::-1]])
    np.testing.assert_allclose(moved.clients[::-1], found.clients, rtol=1e-6)


def test_features_of_any_dtype_are_summed_in_double_precision():
    rng = np.random.default_rng(0)
    images = [rng.integers(low, 200 + low, size=(60, 16)).astype(np.uint8) for low in (0, 10, 50)]
    expected = direct([own.astype(np.float64) for own in images])
    np.testing.assert_allclose(average_frechet_distance(images).clients, expected, rtol=1e-9)
    single = [own.astype(np.float32) + np.float32(2**14) for own in images]
    np.testing.assert_allclose(average_frechet_distance(single).clients, expected, rtol=1e-9)
    pair = frechet_distance(*moments(images[0]), *moments(images[1]))
    assert frechet_distance_of_samples(single[0], single[1]) == pytest.approx(pair, rel=1e-9)
    assert frechet_distance_of_samples(single[0], images[0]) == pytest.approx(16 * 4.0**14)


def test_equal_distributions_are_not_below_zero():
    rng = np.random.default_rng(0)
    for dimensions in (3, 30, 200):
        rows = normal(rng, 100, dimensions)
        scale = np.trace(np.atleast_2d(np.cov(rows, rowvar=False)))
        for distance in (
            frechet_distance(*moments(rows), *moments(rows)),
            frechet_distance_of_samples(rows, rows[::-1]),
            *average_frechet_distance([rows, rows]).clients,
        ):
            assert 0 <= distance < 1e-6 * scale


def test_constant_features_have_no_distance_and_no_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert average_frechet_distance([np.ones((4, 3)), np.ones((5, 3))]).mean == 0.0
        assert average_frechet_distance([np.ones((4, 9)), np.zeros((4, 9))]).mean == 9.0


def test_shares_of_classes_by_hand():
    found = earth_movers_distance([[4, 0, 0], [0, 2, 2], [0, 0, 8]])
    population = np.array([4, 2, 10]) / 16
    expected = [
        abs(np.array(shares) - population).sum() for shares in ((1, 0, 0), (0, 0.5, 0.5), (0, 0, 1))
    ]
    np.testing.assert_allclose(found.clients, expected)
    assert found.mean == pytest.approx(np.mean(expected))
    assert earth_movers_distance([[1, 2], [10, 20]]).mean == pytest.approx(0)
    assert earth_movers_distance(np.eye(100, dtype=int)).mean == pytest.approx(2 * 0.99)


EYE, ZERO = np.eye(2), np.zeros(2)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((ZERO, EYE, np.zeros(3), EYE), r"\[2\], \[3\], \[2, 2\], \[2, 2\]"),
        ((ZERO, ZERO, ZERO, EYE), r"covariances \[d, d\]"),
        (([], np.zeros((0, 0)), [], np.zeros((0, 0))), "d > 0"),
        ((ZERO, EYE, ZERO, [[1.0, 0.5], [0.0, 1.0]]), "Covariance b must be symmetric"),
        ((ZERO, [[1.0, 0.0], [0.0, -1.0]], ZERO, EYE), "Covariance a .* no negative eigenvalues"),
        ((ZERO, EYE, ZERO, [[1.0, 2.0], [2.0, 1.0]]), "Covariance b .* found -1 beside 3"),
        ((ZERO, EYE, [0.0, np.nan], EYE), "covariance b must be finite"),
        ((ZERO, [[np.inf, 0.0], [0.0, 1.0]], ZERO, EYE), "covariance a must be finite"),
    ],
)
def test_what_is_no_distribution_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        frechet_distance(*arguments)


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
        average_frechet_distance(features)
    if len(features) == 2:
        with pytest.raises(ValueError, match=message.replace("Client", "Sample")):
            frechet_distance_of_samples(*features)


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
        earth_movers_distance(counts)
