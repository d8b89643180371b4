"""Label skew of adjustable strength: each class spread over the clients in random proportions."""

from typing import Annotated

import numpy as np

from tff_het.kinds import Whole
from tff_het.numbers import Number
from tff_het.partitions.assignment import (
    Assignment,
    Examples,
    by_shares,
    counts_of,
    require_count,
)

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
    capped: bool = False,
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
      capped: Give nothing of the next class to a client that already has the average number of
        training examples, as the code of NIID-Bench and PFLlib does.

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
        if capped:
            proportions = _capped(train_totals, proportions)
        fewest = counts_of(train_totals, proportions).sum(axis=0).min()
        most = max(most, int(fewest))
        if fewest >= min_examples:
            is_tested = counts_of(test_totals, proportions).sum(axis=0).min() > 0
            best = proportions if is_tested or best is None else best
            if is_tested:
                break
    if best is None:
        raise ValueError(
            f"No draw of {_MAX_TRIES} gave each of {num_clients} clients {min_examples} of the"
            f" {num_train} training examples at alpha={alpha}: in the best one the smallest client"
            f" had {most}. Raise alpha, or lower num_clients or min_examples."
        )
    return by_shares(train, test, rng, classes, best)


def _capped(totals: np.ndarray, proportions: np.ndarray) -> np.ndarray:
    """Takes classes from clients that have the average number; all 0 where a class is left over."""
    held = np.zeros(proportions.shape[1])
    rows = []
    for total, row in zip(totals, proportions, strict=True):
        open_ = row * (held < totals.sum() / len(held))
        if not open_.any():
            return np.zeros_like(proportions)
        rows.append(open_ / open_.sum())
        held += rows[-1] * total
    return np.array(rows)
