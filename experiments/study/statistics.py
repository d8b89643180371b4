"""Statistics over seeds: means with intervals, and verdicts on claims."""

import enum
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy import stats


class Verdict(enum.Enum):
    """Verdict of our runs on a claim."""

    HOLDS = "holds"
    CONTRADICTED = "contradicted"
    UNDECIDED = "undecided"


class Estimate(NamedTuple):
    """A mean over seeds, with its 95 % t interval; a single seed has none."""

    mean: float
    low: float | None
    high: float | None
    num_seeds: int


def estimate(values: Sequence[float]) -> Estimate:
    """Returns the mean of one or more values with its 95 % interval after Student's t."""
    if not values:
        raise ValueError("A mean needs at least one value, found none.")
    n, mean = len(values), float(np.mean(values))
    if n == 1:
        return Estimate(mean, None, None, n)
    half = stats.t.ppf(0.975, n - 1) * np.std(values, ddof=1) / np.sqrt(n)
    return Estimate(mean, float(mean - half), float(mean + half), n)


def paired_t_test(differences: Sequence[float], margin: float = 0.0) -> float | None:
    """Returns the two-sided p-value of a paired t test of a mean difference.

    There is none (None) with one seed, or where all differences are the same but for rounding.
    """
    if len(differences) < 2 or np.ptp(differences) <= 1e-12 * np.max(np.abs(differences)):
        return None
    return float(stats.ttest_1samp(differences, margin).pvalue)


def verdict(found: Estimate | None, margin: float = 0.0) -> Verdict:
    """Says whether a value lies above a margin, as far as its interval can tell."""
    if found is None or found.low is None or found.high is None:
        return Verdict.UNDECIDED
    if found.low > margin:
        return Verdict.HOLDS
    return Verdict.CONTRADICTED if found.high < margin else Verdict.UNDECIDED


def seeds_to_decide(found: Estimate | None, margin: float) -> int | None:
    """How many seeds of the same mean and spread would decide; None if none, or for one seed."""
    if found is None or found.high is None or found.mean == margin:
        return None
    n, half = found.num_seeds, found.high - found.mean
    spread = half * np.sqrt(n) / stats.t.ppf(0.975, n - 1)
    numbers = np.arange(2, 100_000)
    enough = stats.t.ppf(0.975, numbers - 1) * spread / np.sqrt(numbers) < abs(found.mean - margin)
    return int(numbers[enough.argmax()]) if enough.any() else None
