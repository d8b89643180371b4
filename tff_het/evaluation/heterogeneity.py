"""Heterogeneity of clients in features (Frechet distance) and in classes.

All sums are in float64, whatever the features come in.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.linalg

from tff_het.clients import Population

# How far rounding may take a covariance from a symmetric one without negative eigenvalues.
_TOLERANCE = 1e-8
_NOT_FINITE = "Features must be finite; found nan or infinity. Drop such examples."


class Distances(NamedTuple):
    """Heterogeneity of a population, per client and overall.

    Attributes:
      clients: float64 [K], not negative.
      mean: Their mean, each client counting the same.
    """

    clients: np.ndarray
    mean: float


def of_population(
    population: Population, num_classes: int, *, scale: float = 1.0
) -> tuple[Distances, Distances]:
    """Heterogeneity of clients in features (x, flattened) and in classes (y), over all splits.

    Args:
      population: Two clients or more.
      num_classes: The number of classes.
      scale: What features are divided by, such as 255 for images.

    Returns:
      What `average_frechet_distance` and `earth_movers_distance` give, with their errors.
    """
    splits = [(client.train, client.validation, client.test) for client in population]
    x, y = ([np.concatenate([one[column] for one in own]) for own in splits] for column in "xy")
    features = [rows.reshape(len(rows), -1) / np.float32(scale) for rows in x]
    counts = [np.bincount(labels, minlength=num_classes) for labels in y]
    return average_frechet_distance(features), earth_movers_distance(counts)


def frechet_distance(
    mean_a: npt.ArrayLike,
    covariance_a: npt.ArrayLike,
    mean_b: npt.ArrayLike,
    covariance_b: npt.ArrayLike,
) -> float:
    """The (squared) Frechet distance of two normal distributions, Rieger et al. 2020, eq. (2).

    d^2 = |mean_a - mean_b|^2 + Tr(S_a + S_b - 2 (S_a S_b)^(1/2)), in the squared unit of the
    features. Covariances may be singular.

    Args:
      mean_a: [d].
      covariance_a: [d, d], symmetric, without negative eigenvalues.
      mean_b: [d].
      covariance_b: [d, d], likewise.

    Raises:
      ValueError: Shapes do not fit, a number is not finite, or a covariance is none.
    """
    means = [np.asarray(mean, np.float64) for mean in (mean_a, mean_b)]
    covariances = [np.asarray(matrix, np.float64) for matrix in (covariance_a, covariance_b)]
    size = means[0].size
    shapes = [array.shape for array in (*means, *covariances)]
    if not size or shapes != [(size,), (size,), (size, size), (size, size)]:
        raise ValueError(
            "Two means [d] and two covariances [d, d] are needed, d > 0; found shapes"
            f" {', '.join(str(list(shape)) for shape in shapes)}."
        )
    for name, mean, matrix in zip("ab", means, covariances, strict=True):
        if not (np.isfinite(mean).all() and np.isfinite(matrix).all()):
            raise ValueError(f"Mean and covariance {name} must be finite; found nan or infinity.")
        if not np.allclose(matrix, matrix.T, rtol=0, atol=_TOLERANCE * np.abs(matrix).max()):
            raise ValueError(f"Covariance {name} must be symmetric; it differs from its transpose.")
    roots = [_root_of_covariance(n, matrix) for n, matrix in zip("ab", covariances, strict=True)]
    return _distance_of_roots(means[0] - means[1], roots)


def frechet_distance_of_samples(a: npt.ArrayLike, b: npt.ArrayLike) -> float:
    """As `frechet_distance`, with the means and covariances of two samples.

    Covariances are those of `numpy.cov` (ddof=1).

    Args:
      a: [m, d], m > 1: a row for each example.
      b: [n, d], n > 1.

    Raises:
      ValueError: Shapes do not fit, there are fewer than two rows, or a number is not finite.
    """
    samples = [np.asarray(sample) for sample in (a, b)]
    _check_features(samples, "Sample")
    samples = [sample.astype(np.float64) for sample in samples]
    means = [sample.mean(axis=0) for sample in samples]
    if not np.isfinite(means).all():
        raise ValueError(_NOT_FINITE)
    roots = [_root_of_sample(rows - mean) for rows, mean in zip(samples, means, strict=True)]
    return _distance_of_roots(means[0] - means[1], roots)


def average_frechet_distance(features: Sequence[npt.ArrayLike]) -> Distances:
    """Heterogeneity of features: Gamma of Rieger et al. 2020, eq. (3).

    A client's distance is that of its features from those of all other clients together, as
    `frechet_distance` has it, with covariances as `numpy.cov` (ddof=1). The paper's authors take a
    client's training and test examples together. 10 clients with 1,100 examples of 1,024 features
    take a few seconds.

    Args:
      features: For each client [n, d], n > 1: a row for each example.

    Returns:
      For each client its distance, in the squared unit of the features, and the mean, Gamma.

    Raises:
      ValueError: There are fewer than two clients or a client has fewer than two examples (one has
        no covariance), the clients' d differ, or a number is not finite.
    """
    arrays = [np.asarray(rows) for rows in features]
    _check_features(arrays, "Client")
    sizes = np.array([len(rows) for rows in arrays])
    total = int(sizes.sum())
    sums = np.stack([rows.sum(axis=0, dtype=np.float64) for rows in arrays])
    # About the mean of all, so that subtracting one client from the total below is not the
    # difference of two numbers that are large because the features lie far from 0.
    centre = sums.sum(axis=0) / total
    if not np.isfinite(centre).all():
        raise ValueError(_NOT_FINITE)
    if total < len(centre):
        # As many dimensions as examples hold them all: the same distances, in smaller matrices.
        centred = np.concatenate(list(_centred(arrays, centre)))
        rotated = scipy.linalg.qr(centred.T, mode="r")[0][:total].T
        arrays = np.split(rotated, np.cumsum(sizes)[:-1])
        centre = np.zeros(total)
    sums = np.stack([rows.sum(axis=0) for rows in _centred(arrays, centre)])
    scatter = sum(rows.T @ rows for rows in _centred(arrays, centre))

    distances = np.empty(len(arrays))
    for client, rows in enumerate(_centred(arrays, centre)):
        size, others = len(rows), total - len(rows)
        mean = sums[client] / size
        others_mean = (sums.sum(axis=0) - sums[client]) / others
        # Of the others, about their own mean.
        pooled = scatter - rows.T @ rows
        pooled -= others * np.outer(others_mean, others_mean)
        pooled /= others - 1
        root = _root_of_sample(rows - mean)
        # S_k S_others = root.T @ (root @ S_others) has the eigenvalues of root @ S_others @ root.T,
        # and zeros. That matrix is symmetric, and has the size of the client or of the features,
        # whichever is smaller.
        values = scipy.linalg.eigvalsh(root @ pooled @ root.T)
        distances[client] = _distance(
            mean - others_mean,
            np.square(root).sum() + np.trace(pooled),
            np.sqrt(np.maximum(values, 0)).sum(),
        )
    return Distances(distances, float(distances.mean()))


def earth_movers_distance(counts: npt.ArrayLike) -> Distances:
    """Heterogeneity of classes: earth mover's distance of Zhao et al. 2018, section 3.2.

    A client's distance is the sum over classes of |p_k(y) - p(y)|, p_k the shares of the classes in
    its examples and p those in all clients' examples: from 0 to 2.

    Args:
      counts: [K, classes], examples of each class at each client.

    Raises:
      ValueError: The shape is another, a count is negative, or a client has no examples.
    """
    counts = np.asarray(counts)
    if counts.ndim != 2 or not counts.size:
        raise ValueError(
            f"Counts must be [clients, classes], one or more; found {list(counts.shape)}."
        )
    if counts.min() < 0:
        raise ValueError(f"Counts must not be negative; found {counts.min()}.")
    if (empty := np.flatnonzero(counts.sum(axis=1) == 0)).size:
        raise ValueError(
            f"Each client needs an example; found none at {empty.size} of {len(counts)} clients,"
            f" first number {empty[0]}, counted from 0. Leave them out."
        )
    shares = counts / counts.sum(axis=1, keepdims=True)
    distances = np.abs(shares - counts.sum(axis=0) / counts.sum()).sum(axis=1)
    return Distances(distances, float(distances.mean()))


def _distance(difference: np.ndarray, traces: float, overlap: float) -> float:
    """Eq. (2); for equal distributions, rounding may give a value just below 0."""
    return max(0.0, float(difference @ difference + traces - 2 * overlap))


def _distance_of_roots(difference: np.ndarray, roots: Sequence[np.ndarray]) -> float:
    """Eq. (2) from roots [r, d] of the covariances: S = root.T @ root.

    The square roots of the eigenvalues of S_a S_b are the singular values of root_a @ root_b.T: no
    square root of a matrix is needed, which would fail for singular ones.
    """
    overlap = scipy.linalg.svdvals(roots[0] @ roots[1].T).sum()
    return _distance(difference, sum(np.square(root).sum() for root in roots), overlap)


def _root_of_covariance(name: str, covariance: np.ndarray) -> np.ndarray:
    values, vectors = scipy.linalg.eigh(covariance)
    if values[0] < -_TOLERANCE * max(values[-1], 0.0):
        raise ValueError(
            f"Covariance {name} must have no negative eigenvalues; found {values[0]:.3g} beside"
            f" {values[-1]:.3g}."
        )
    return np.sqrt(np.maximum(values, 0))[:, None] * vectors.T


def _root_of_sample(centred: np.ndarray) -> np.ndarray:
    """A square root of the covariance of [n, d], with at most d rows."""
    size, dimensions = centred.shape
    root = centred / np.sqrt(size - 1)
    if size > dimensions:
        # root = q @ r with q.T @ q = 1, so that root.T @ root = r.T @ r.
        root = scipy.linalg.qr(root, mode="r")[0][:dimensions]
    return root


def _centred(arrays: Sequence[np.ndarray], centre: np.ndarray) -> Iterator[np.ndarray]:
    """Each client's features about a common point; one after another, for the sake of memory."""
    for rows in arrays:
        yield rows - centre  # In float64, as the centre is.


def _check_features(arrays: Sequence[np.ndarray], what: str) -> None:
    if len(arrays) < 2:
        raise ValueError(f"Two clients or more are needed to compare; found {len(arrays)}.")
    for number, rows in enumerate(arrays):
        where = f"{what} {number} of {len(arrays)} (counted from 0)"
        if rows.ndim != 2 or rows.shape[1:] != arrays[0].shape[1:] or not rows.shape[1]:
            raise ValueError(
                f"{where}: features must be [n, d] with one d > 0 for all; found"
                f" {list(rows.shape)}, and {list(arrays[0].shape)} for number 0."
            )
        if len(rows) < 2:
            raise ValueError(
                f"{where}: a covariance needs two examples or more; found {len(rows)}. Leave it"
                " out, or ask for fewer clients."
            )
