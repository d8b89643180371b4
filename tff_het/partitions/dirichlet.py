"""Label skew of adjustable strength: each class spread over the clients in random proportions."""

from typing import Annotated

import numpy as np

from tff_het.kinds import Whole
from tff_het.numbers import Number
from tff_het.partitions.assignment import Assignment, Examples, require_count

_MAX_TRIES = 100


def dirichlet(
    train: Examples,
    test: Examples,
    rng: np.random.Generator,
    *,
    num_clients: int | None,
    # NumPy's own draw never ends where powers of uniform numbers are all 0.
    alpha: Annotated[float, Number(1e-6)] = 0.5,
    min_examples: Whole = 10,
) -> Assignment:
    """Spreads each class in proportions drawn from a Dirichlet distribution.

    As in Li et al. 2022 (NIID-Bench), after Hsu et al. 2019: for each class, proportions over the
    clients p ~ Dirichlet(alpha, ..., alpha). They hold for train and test alike. They are drawn
    again until every client has `min_examples` training examples and one test example; where the
    tries run out, a draw that fails in test examples only is taken.

    Args:
      train: Training examples; `y` decides.
      test: Test examples.
      rng: Source of all random draws.
      num_clients: Number of clients.
      alpha: Concentration, from 1e-6 on (each class to a single client): small for few clients
        per class, large for nearly i.i.d.
      min_examples: Training examples that each client gets at least.

    Raises:
      ValueError: No draw gave every client `min_examples`.
    """
    num_train = len(train["y"])
    num_clients = require_count(num_clients, num_train, "training examples")
    if num_clients * min_examples > num_train:
        raise ValueError(
            f"{num_clients} clients with {min_examples} training examples or more need"
            f" {num_clients * min_examples}; found {num_train}. Lower num_clients or min_examples."
        )

    classes = np.unique(np.concatenate([train["y"], test["y"]]))
    train_totals = (train["y"] == classes[:, None]).sum(axis=1)  # [classes]
    test_totals = (test["y"] == classes[:, None]).sum(axis=1)  # [classes]
    best: np.ndarray | None = None
    most = 0
    for _ in range(_MAX_TRIES):
        proportions = rng.dirichlet(np.full(num_clients, alpha), size=len(classes))
        fewest = _counts(train_totals, proportions).sum(axis=0).min()
        most = max(most, int(fewest))
        if fewest >= min_examples:
            is_tested = _counts(test_totals, proportions).sum(axis=0).min() > 0
            best = proportions if is_tested or best is None else best
            if is_tested:
                break
    if best is None:
        raise ValueError(
            f"No draw of {_MAX_TRIES} gave each of {num_clients} clients {min_examples} of the"
            f" {num_train} training examples at alpha={alpha}: in the best one the smallest client"
            f" had {most}. Raise alpha, or lower num_clients or min_examples."
        )
    return Assignment(
        train=_deal(train["y"], classes, _counts(train_totals, best), rng),
        test=_deal(test["y"], classes, _counts(test_totals, best), rng),
    )


def _counts(totals: np.ndarray, proportions: np.ndarray) -> np.ndarray:
    """Examples of each class for each client: int [classes, clients], rows sum to `totals`."""
    bounds = np.rint(np.cumsum(proportions, axis=1) * totals[:, None]).astype(np.int64)
    bounds[:, -1] = totals  # The proportions' sum may miss 1 by a rounding error.
    return np.diff(bounds, axis=1, prepend=0)


def _deal(
    labels: np.ndarray, classes: np.ndarray, counts: np.ndarray, rng: np.random.Generator
) -> list[np.ndarray]:
    """Assigns the shuffled examples of each class according to `counts` [classes, clients]."""
    parts = []
    for label, sizes in zip(classes, counts, strict=True):
        rows = rng.permutation(np.flatnonzero(labels == label))
        parts.append(np.split(rows, np.cumsum(sizes)[:-1]))
    return [np.concatenate(own) for own in zip(*parts, strict=True)]
