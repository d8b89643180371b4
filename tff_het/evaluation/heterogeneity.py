"""Heterogeneity of clients in features (Frechet distance) and in classes.

All sums are in float64, whatever the features come in.
"""

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import scipy.linalg

from tff_het.clients import Population


def of_population(
    population: Population, num_classes: int, *, scale: float = 1.0
) -> tuple[np.ndarray, np.ndarray]:
    """Heterogeneity of clients in features (x, flattened) and in classes (y), over all splits.

    Args:
      population: Two clients or more.
      num_classes: The number of classes.
      scale: What features are divided by, such as 255 for images.

    Returns:
      What `frechet_distances` and `earth_movers_distances` give, with their errors.
    """
    splits = [(client.train, client.validation, client.test) for client in population]
    x, y = ([np.concatenate([one[column] for one in own]) for own in splits] for column in "xy")
    features = [rows.reshape(len(rows), -1) / np.float32(scale) for rows in x]
    counts = [np.bincount(labels, minlength=num_classes) for labels in y]
    return frechet_distances(features), earth_movers_distances(counts)


def frechet_distances(features: Sequence[npt.ArrayLike]) -> np.ndarray:
    """Heterogeneity of features; the mean over clients is Gamma of Rieger et al. 2020, eq. (3).

    A client's distance is the squared Frechet distance (eq. 2) of its features, a, from those of
    all other clients together, b, both taken for normal distributions:

        d^2 = |mean_a - mean_b|^2 + Tr(S_a + S_b - 2 (S_a S_b)^(1/2))

    Covariances S are those of `numpy.cov` (ddof=1), and may be singular. The paper's authors take a
    client's training and test examples together. 10 clients with 1,100 examples of 1,024 features
    take a few seconds.

    Args:
      features: For each client [n, d], n > 1: a row for each example.

    Returns:
      float64 [K], not negative, in the squared unit of the features.

    Raises:
      ValueError: There are fewer than two clients or a client has fewer than two examples (one has
        no covariance), the clients' d differ, or a number is not finite.
    """
    arrays = [np.asarray(rows) for rows in features]
    _check_features(arrays)
    sizes = np.array([len(rows) for rows in arrays])
    total = int(sizes.sum())
    sums = np.stack([rows.sum(axis=0, dtype=np.float64) for rows in arrays])
    # About the mean of all, so that subtracting one client from the total below is not the
    # difference of two numbers that are large because the features lie far from 0.
    centre = sums.sum(axis=0) / total
    if not np.isfinite(centre).all():
        raise ValueError("Features must be finite; found nan or infinity. Drop such examples.")
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
        # A square root of the client's covariance, with at most d rows.
        root = (rows - mean) / np.sqrt(size - 1)
        if size > len(mean):
            # root = q @ r with q.T @ q = 1, so that root.T @ root = r.T @ r.
            root = scipy.linalg.qr(root, mode="r")[0][: len(mean)]
        # S_k S_others = root.T @ (root @ S_others) has the eigenvalues of root @ S_others @ root.T,
        # and zeros. That matrix is symmetric, and has the size of the client or of the features,
        # whichever is smaller.
        values = scipy.linalg.eigvalsh(root @ pooled @ root.T)
        difference, traces = mean - others_mean, np.square(root).sum() + np.trace(pooled)
        overlap = np.sqrt(np.maximum(values, 0)).sum()
        # For equal distributions, rounding may give a value just below 0.
        distances[client] = max(0.0, float(difference @ difference + traces - 2 * overlap))
    return distances


def earth_movers_distances(counts: npt.ArrayLike) -> np.ndarray:
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
    return np.abs(shares - counts.sum(axis=0) / counts.sum()).sum(axis=1)


def _centred(arrays: Sequence[np.ndarray], centre: np.ndarray) -> Iterator[np.ndarray]:
    """Each client's features about a common point; one after another, for the sake of memory."""
    for rows in arrays:
        yield rows - centre  # In float64, as the centre is.


def _check_features(arrays: Sequence[np.ndarray]) -> None:
    if len(arrays) < 2:
        raise ValueError(f"Two clients or more are needed to compare; found {len(arrays)}.")
    for number, rows in enumerate(arrays):
        where = f"Client {number} of {len(arrays)} (counted from 0)"
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
