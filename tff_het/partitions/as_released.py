"""Clients as the code of other suites splits them, where that is no partition of a paper.

PFLlib (Zhang et al. 2023), NIID-Bench (Li et al. 2022) in the form of Flower's baseline, and pFedMe
(Dinh et al. 2020), whose generator PerMFL (2024) uses too. Their Dirichlet splits are
`dirichlet` with `capped`.
"""

import numpy as np

from tff_het.kinds import Whole
from tff_het.partitions.assignment import Assignment, Examples, by_shares, require_count


def pfllib_classes(
    train: Examples,
    test: Examples,
    rng: np.random.Generator,
    *,
    num_clients: int | None,
    classes_per_client: Whole = 2,
) -> Assignment:
    """Gives neighbouring clients the same classes, in unequal parts ("pathological" in PFLlib).

    A class goes to the first clients with room for one more, as many as are needed on average. All
    but the last get a size drawn uniformly, from a tenth of an equal part to an equal part; the
    last gets the rest.

    Args:
      train: Training examples; `y` decides.
      test: Test examples, in the same shares.
      rng: Source of all random draws.
      num_clients: Number of clients.
      classes_per_client: Classes of each client.

    Raises:
      ValueError: There are too few classes or examples.
    """
    classes, totals, shares = _nothing(train, num_clients, classes_per_client)
    num_classes, num_clients = shares.shape
    free = np.full(num_clients, classes_per_client)
    holders = -(-num_clients * classes_per_client // num_classes)
    for row, total in zip(shares, totals, strict=True):
        chosen = np.flatnonzero(free)[:holders]
        if not len(chosen):
            continue
        part = total / len(chosen)
        # 40 examples are PFLlib's smallest client.
        low = int(min(max(part / 10, 40 / num_classes), part))
        sizes = rng.integers(low, max(int(part), low + 1), len(chosen) - 1)
        row[chosen] = np.append(sizes, total - sizes.sum()) / total
        free[chosen] -= 1
    return by_shares(train, test, rng, classes, shares)


def niid_bench_classes(
    train: Examples,
    test: Examples,
    rng: np.random.Generator,
    *,
    num_clients: int | None,
    classes_per_client: Whole = 2,
) -> Assignment:
    """Gives client i class i, modulo their number, and random others; holders get equal parts.

    Args:
      classes_per_client: Classes of each client. The rest is as `pfllib_classes` takes it.
    """
    classes, _, shares = _nothing(train, num_clients, classes_per_client)
    for client in range(shares.shape[1]):
        first = client % len(classes)
        others = np.setdiff1d(np.arange(len(classes)), first)
        own = [first, *rng.choice(others, classes_per_client - 1, replace=False)]
        shares[own, client] = 1
    shares /= np.maximum(shares.sum(axis=1, keepdims=True), 1)
    return by_shares(train, test, rng, classes, shares)


def p_fed_me_classes(
    train: Examples,
    test: Examples,
    rng: np.random.Generator,
    *,
    num_clients: int | None,
    classes_per_client: Whole = 2,
) -> Assignment:
    """Gives client i the classes i, i + 1, ... in sizes from a power law.

    Of each of its classes a client gets 10 examples. Then, in turn and as long as the class lasts,
    300 to 599 more and a lognormal(0, 2) share of the class.

    Args:
      classes_per_client: Classes of each client. The rest is as `pfllib_classes` takes it.
    """
    classes, totals, shares = _nothing(train, num_clients, classes_per_client)
    num_classes, num_clients = shares.shape
    own = (np.arange(num_clients)[:, None] + np.arange(classes_per_client)) % num_classes
    sizes = np.zeros(shares.shape, np.int64)
    np.add.at(sizes, (own, np.arange(num_clients)[:, None]), 10)
    if (sizes.sum(axis=1) > totals).any():
        raise ValueError(
            f"{num_clients} clients need 10 examples of each of their classes; the smallest class "
            f"has {totals.min()}. Ask for fewer clients."
        )
    groups = -(-num_clients // num_classes)
    drawn = rng.lognormal(0, 2, (num_classes, groups, classes_per_client))
    drawn *= (totals - num_clients)[:, None, None] / drawn.sum(axis=(1, 2), keepdims=True)
    for client, labels in enumerate(own):
        for place, label in enumerate(labels):
            more = int(drawn[label, client // num_classes, place]) + rng.integers(300, 600)
            if sizes[label].sum() + more < totals[label]:
                sizes[label, client] += more
    return by_shares(train, test, rng, classes, sizes / totals[:, None])


def _nothing(
    train: Examples, num_clients: int | None, classes_per_client: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Returns the classes, how many examples there are of each, and shares of 0."""
    classes, totals = np.unique(train["y"], return_counts=True)
    num_clients = require_count(num_clients, len(train["y"]), "training examples")
    if classes_per_client > len(classes):
        raise ValueError(
            f"classes_per_client must be from 1 to {len(classes)}, the number of classes; found "
            f"{classes_per_client}."
        )
    return classes, totals, np.zeros((len(classes), num_clients))
