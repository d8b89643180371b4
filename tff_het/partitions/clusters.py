"""Clients that express the same class differently: clusters of each class's features."""

import math
import warnings
from typing import Literal

import numpy as np
import threadpoolctl
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning
from sklearn.manifold import TSNE
from sklearn.metrics import pairwise_distances_argmin

from tff_het.kinds import Share, Whole
from tff_het.partitions.assignment import Assignment, Examples, indices_by_owner, require_count

_STARTS = 10  # Of each K-means; scikit-learn's default when the paper was written.
_MAX_TSNE_COMPONENTS = 3  # Of the Barnes-Hut algorithm; the exact one takes hours.
_PERPLEXITY = 30.0  # scikit-learn's default.
_MAX_TRIES = 100  # Of shuffling.
_SEEDS = 2**31  # scikit-learn takes seeds below.


def clusters(
    train: Examples,
    test: Examples,
    rng: np.random.Generator,
    *,
    num_clients: int | None,
    projection: Literal["pca", "none", "tsne"] = "pca",
    num_components: Whole = 2,
    assignment: Literal["own_class", "nearest"] = "own_class",
    shuffle_fraction: Share = 0.0,
) -> Assignment:
    """Gives each client one cluster of the features of every class.

    As in Rieger et al. 2020 (CGAU), section 3.3: features are projected, and each class's training
    examples are clustered with K-means, K the number of clients; client k gets cluster k of every
    class. Clusters of two classes are paired at random. Where training examples of a class have
    fewer different features than there are clients, its surplus clusters stay empty.

    Clusters need not reach into the test examples: clients may be left without any.

    Args:
      train: Training examples: features in `x` (any shape, flattened; best are embeddings of a
        pre-trained network, as in the paper), classes in `y`.
      test: Test examples.
      rng: Source of all random draws.
      num_clients: Number of clients.
      projection: What K-means sees. 'pca': the first principal components of the training examples
        (the paper's); 'none': `x` itself; 'tsne': t-SNE's map, which cannot take in new points, so
        that train and test are mapped together: test examples then have a part in the clusters.
      num_components: Dimensions that are projected to; of no meaning for 'none'.
      assignment: What an example belongs to. 'own_class': the nearest cluster of its own class, as
        in the authors' code; a class with fewer training examples than clients is spread at random,
        train and test. 'nearest': the nearest of all classes' clusters, the text's wording; no test
        label is looked at, and classes with fewer training examples than clients have no clusters.
      shuffle_fraction: In [0, 1]: this share of all examples, train and test together, is drawn,
        and their clients are permuted among them (section 4), again where a small client would be
        left without training examples. 1 leaves nothing of the clusters but the clients' sizes.
        The clusters of a seed do not depend on it.

    Raises:
      ValueError: An option is out of range, no class has an example for each client ('nearest'), or
        a client is left without training examples.
    """
    num_train = len(train["y"])
    num_clients = require_count(num_clients, num_train, "training examples")
    # On several threads scikit-learn adds in the order in which they end: other bits each time.
    with threadpoolctl.threadpool_limits(1), warnings.catch_warnings():
        # Fewer different points than clusters: what comes of it is checked below.
        warnings.simplefilter("ignore", ConvergenceWarning)
        points = _project(_flat(train["x"]), _flat(test["x"]), projection, num_components, rng)
        labels = np.concatenate([train["y"], test["y"]])
        deal = _to_own_class if assignment == "own_class" else _to_nearest
        clustered = deal(points, labels, num_train, num_clients, rng)
    for _ in range(_MAX_TRIES if shuffle_fraction else 1):
        drawn = rng.permutation(len(clustered))[: round(shuffle_fraction * len(clustered))]
        owners = clustered.copy()
        owners[drawn] = clustered[rng.permutation(drawn)]
        own_train = indices_by_owner(owners[:num_train], num_clients)
        if all(map(len, own_train)):
            break
    if empty := [f"client_{client}" for client, own in enumerate(own_train) if not len(own)]:
        some = ", ".join(empty[:5]) + (", ..." if len(empty) > 5 else "")
        other = ", or for assignment='own_class'" if assignment == "nearest" else ""
        raise ValueError(
            f"The clusters leave {len(empty)} of {num_clients} clients without training examples"
            f" ({some}). Ask for fewer clients or another seed{other}."
        )
    return Assignment(train=own_train, test=indices_by_owner(owners[num_train:], num_clients))


def _flat(x: np.ndarray) -> np.ndarray:
    """Features [n, d], float32 unless they are float64: half the memory for images."""
    dtype = np.float64 if x.dtype == np.float64 else np.float32
    return np.asarray(x, dtype).reshape(len(x), math.prod(x.shape[1:]))


def _project(
    train: np.ndarray,
    test: np.ndarray,
    projection: str,
    num_components: int,
    rng: np.random.Generator,
) -> np.ndarray:
    """What K-means sees: [num_train + num_test, components], training examples first."""
    if projection == "none":
        return np.concatenate([train, test])
    most = _MAX_TSNE_COMPONENTS if projection == "tsne" else min(train.shape)
    if not 1 <= num_components <= most:
        raise ValueError(
            f"num_components must be from 1 to {most} for projection={projection!r} and training"
            f" features of shape {list(train.shape)}; found {num_components}."
        )
    seed = int(rng.integers(_SEEDS))
    if projection == "tsne":
        together = np.concatenate([train, test])
        # It must be below the number of points, and is best well below.
        perplexity = min(_PERPLEXITY, max(1.0, (len(together) - 1) / 3))
        # Not scikit-learn's default start, the first components: it divides by their variance.
        tsne = TSNE(num_components, perplexity=perplexity, init="random", random_state=seed)
        return tsne.fit_transform(together)
    pca = PCA(num_components, random_state=seed)
    with np.errstate(invalid="ignore"):  # Shares of the variance, where there is none.
        projected = [pca.fit_transform(train)]
    if len(test):
        projected.append(pca.transform(test))
    return np.concatenate(projected)


def _centres(points: np.ndarray, num_clients: int, rng: np.random.Generator) -> np.ndarray:
    """The clusters of one class's training examples [n, c]: [clients, c]."""
    kmeans = KMeans(num_clients, n_init=_STARTS, random_state=int(rng.integers(_SEEDS)))
    return kmeans.fit(points).cluster_centers_


def _to_own_class(points, labels, num_train, num_clients, rng) -> np.ndarray:
    """The client of each example [n, c] with labels [n], the training examples first: int64 [n]."""
    owners = np.empty(len(points), np.int64)
    for label in np.unique(labels):
        own = labels == label
        known = own[:num_train]
        if np.count_nonzero(known) < num_clients:
            owners[own] = rng.integers(num_clients, size=np.count_nonzero(own))
        else:
            centres = _centres(points[:num_train][known], num_clients, rng)
            owners[own] = pairwise_distances_argmin(points[own], centres)
    return owners


def _to_nearest(points, labels, num_train, num_clients, rng) -> np.ndarray:
    """As `_to_own_class`, without a look at the test labels."""
    known, train_labels = points[:num_train], labels[:num_train]
    classes, counts = np.unique(train_labels, return_counts=True)
    if counts.max() < num_clients:
        raise ValueError(
            f"assignment='nearest' needs a class with a training example for each of {num_clients}"
            f" clients; found at most {counts.max()}. Ask for fewer clients."
        )
    centres = [
        _centres(known[train_labels == label], num_clients, rng)
        for label in classes[counts >= num_clients]
    ]
    return pairwise_distances_argmin(points, np.concatenate(centres)) % num_clients
