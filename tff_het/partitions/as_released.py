"""Label-skewed partitions as the public code of PFLlib, NIID-Bench and pFedMe makes them.

PFLlib: Zhang et al. 2023. NIID-Bench: Li et al. 2022. pFedMe: Dinh et al. 2020, its script for
CIFAR-10, which PerMFL (2024) uses for MNIST. Their Dirichlet splits are `dirichlet` with `capped`.
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

    Each class goes to the first clients that still lack classes, as many as are needed on average.
    All but the last of them get a size drawn uniformly, from a tenth of an equal part to an equal
    part; the last gets the rest. A class that no client lacks belongs to nobody.

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
    """Gives client i class i modulo their number, and others at random; holders get equal parts.

    A class that no client drew belongs to nobody. Other arguments are as in `pfllib_classes`.

    Args:
      classes_per_client: Classes of each client.
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

    Each client gets 10 examples of each of its classes. Then, client by client, it gets 300 to 600
    more and its share of the class, lognormal(0, 2) among all clients; twice that where there are
    20 clients or fewer. What would use up the class is skipped. Other arguments are as in
    `pfllib_classes`.

    Args:
      classes_per_client: Classes of each client.
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
    drawn = rng.lognormal(0, 2, (num_classes, num_clients, classes_per_client))
    left = np.maximum(totals - num_clients, 0)
    drawn *= left[:, None, None] / drawn.sum(axis=(1, 2), keepdims=True)
    for client, labels in enumerate(own):
        for place, label in enumerate(labels):
            more = int(drawn[label, client, place]) + rng.integers(300, 601)
            more *= 2 if num_clients <= 20 else 1
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
