"""What others' released code draws once for all seeds, and a network of theirs; a plugin.

Facts of adap/flower's `baselines/niid_bench` (`default_rng(42)`) and of sourasb05/PerMFL_1
(`random.seed(5)`, `numpy.random.seed(9)`): the number of examples of each class at each client. Our
seeds draw which examples these are.
"""

import random

import numpy as np

from tff_het.backend.names import keras
from tff_het.kinds import Positive, Whole
from tff_het.models import networks
from tff_het.models.layers import Layers
from tff_het.models.registry import NETWORKS
from tff_het.partitions import PARTITIONS, Assignment
from tff_het.partitions.assignment import Examples, by_shares


def flower_classes(
    train: Examples,
    test: Examples,
    rng: np.random.Generator,
    *,
    num_clients: int | None,
    classes_per_client: Whole = 2,
) -> Assignment:
    """Client i has class i and others as drawn in Flower's NIID-Bench; holders get equal parts."""
    classes = np.unique(train["y"])
    drawn, shares = np.random.default_rng(42), np.zeros((len(classes), num_clients or 0))
    for client in range(shares.shape[1]):
        own = [client % len(classes)]
        while len(own) < classes_per_client:
            (label,) = drawn.choice(len(classes), 1)
            own += [] if label in own else [label]
        shares[own, client] = 1
    shares /= np.maximum(shares.sum(axis=1, keepdims=True), 1)
    return by_shares(train, test, rng, classes, shares)


def flower_dirichlet(
    train: Examples,
    test: Examples,
    rng: np.random.Generator,
    *,
    num_clients: int | None,
    alpha: Positive = 0.5,
) -> Assignment:
    """Dirichlet shares of each class, clients at most an equal part, as drawn in Flower's code."""
    classes, totals = np.unique(train["y"], return_counts=True)
    number, drawn = num_clients or 0, np.random.default_rng(42)
    counts = np.zeros((len(classes), number), int)
    while counts.sum(axis=0).min() < 10:
        counts[:] = 0
        for row, total in zip(counts, totals, strict=True):
            drawn.shuffle(np.arange(total))  # Theirs does, and so comes to other draws below.
            share = drawn.dirichlet(np.full(number, alpha))
            share *= counts.sum(axis=0) < totals.sum() / number
            ends = (np.cumsum(share / share.sum()) * total).astype(int)[:-1]
            row[:] = np.diff([0, *ends, total])
    return by_shares(train, test, rng, classes, counts / totals[:, None])


def perm_fl_classes(
    train: Examples,
    test: Examples,
    rng: np.random.Generator,
    *,
    num_clients: int | None,
    classes_per_client: Whole = 2,
) -> Assignment:
    """`p_fed_me_classes` in the sizes that PerMFL's code draws."""
    classes, totals = np.unique(train["y"], return_counts=True)
    number, more = num_clients or 0, random.Random(5)
    size = (len(classes), number, classes_per_client)
    drawn = np.random.RandomState(9).lognormal(0, 2.0, size)
    drawn *= (totals - number)[:, None, None] / drawn.sum(axis=(1, 2), keepdims=True)
    sizes = np.zeros(size[:2], int)
    for client in range(number):
        for place in range(classes_per_client):
            sizes[(client + place) % len(classes), client] += 10
    for client in range(number):
        for place in range(classes_per_client):
            label = (client + place) % len(classes)
            share = int(drawn[label, client // max(1, number // 10), place])
            found = (share + more.randint(300, 600)) * (2 if number <= 20 else 1)
            if sizes[label].sum() + found < totals[label]:
                sizes[label, client] += found
    return by_shares(train, test, rng, classes, sizes / totals[:, None])


def logistic_centred(x, num_classes: int, layers: Layers):
    """Multinomial logistic regression on pixels that it scales from [0, 1] to [-1, 1]."""
    return networks.logistic(keras.layers.Rescaling(2.0, offset=-1.0)(x), num_classes, layers)


PARTITIONS.register("flower_classes", flower_classes)
PARTITIONS.register("flower_dirichlet", flower_dirichlet)
PARTITIONS.register("perm_fl_classes", perm_fl_classes)
NETWORKS.register("logistic_centred", logistic_centred)
