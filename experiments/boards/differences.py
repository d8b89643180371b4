"""Tests of many differences at once."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

import experiments.study as s
from experiments.study import sections, statistics


def p_values(places: Iterable[s.Place], results: s.Results) -> Mapping[tuple[str, str], str]:
    """Returns texts by row and column: p-values of t tests, each corrected for its column."""
    columns: dict[str, dict[str, float]] = {}
    for row, column, measure, _ in places:
        values = measure.values(results)
        if values and (p := statistics.paired_t_test(values)) is not None:
            columns.setdefault(column, {})[row] = p
    return {
        (row, column): f", p {sections.p_text(p)}"
        for column, tests in columns.items()
        for row, p in zip(tests, holm([*tests.values()]), strict=True)
    }


def holm(p_values: Sequence[float]) -> list[float]:
    """Returns p-values corrected for the number of tests (Holm 1979).

    Rejecting all that lie below a level keeps the probability of any false rejection below it.
    """
    corrected, least = [0.0] * len(p_values), 0.0
    for rank, k in enumerate(np.argsort(p_values, kind="stable")):
        least = max(least, min(1.0, (len(p_values) - rank) * p_values[k]))
        corrected[k] = least
    return corrected
