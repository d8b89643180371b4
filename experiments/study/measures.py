"""Measures: numbers read off the runs of one seed."""

import dataclasses
from collections.abc import Callable, Iterable, Mapping

import numpy as np

from experiments.study.store import Results, Run

# Gives a number of a run and one of its rounds.
OfRound = Callable[[Run, int], float]
# Gives a number of the rounds in which a column was measured, and its values: arrays [measured].
OfCurve = Callable[[np.ndarray, np.ndarray], float | None]


@dataclasses.dataclass(frozen=True)
class Measure:
    """A number that the runs of one seed give, so that methods are paired by seed.

    Measures are calculated with like numbers. `compute` gives one of the runs of the `cells`, by
    name; None where they do not determine it, as the round in which a target is never reached.
    """

    cells: tuple[str, ...]
    compute: Callable[[Mapping[str, Run]], float | None]

    def values(self, results: Results) -> list[float]:
        """Returns its values, for the seeds that determine it."""
        runs = (results.ok(self.cells, seed) for seed in results.seeds)
        found = (self.compute(of_seed) for of_seed in runs if of_seed is not None)
        return [value for value in found if value is not None]

    def __add__(self, other: "Measure | float") -> "Measure":
        return combined(lambda a, b: a + b, self, other)

    __radd__ = __add__

    def __sub__(self, other: "Measure | float") -> "Measure":
        return combined(lambda a, b: a - b, self, other)

    def __rsub__(self, other: float) -> "Measure":
        return combined(lambda a, b: b - a, self, other)

    def __abs__(self) -> "Measure":
        return combined(abs, self)

    def __truediv__(self, other: "Measure | float") -> "Measure":
        """Not determined where `other` is 0."""
        return combined(lambda a, b: a / b if b else None, self, other)


def combined(function: Callable[..., float | None], *of: Measure | float) -> Measure:
    """Returns a function of measures and numbers; not determined where one of them is not."""
    cells = dict.fromkeys(c for one in of if isinstance(one, Measure) for c in one.cells)

    def compute(runs: Mapping[str, Run]) -> float | None:
        found = [one.compute(runs) if isinstance(one, Measure) else one for one in of]
        return None if any(value is None for value in found) else function(*found)

    return Measure(tuple(cells), compute)


def total(of: Iterable[Measure]) -> Measure:
    """Returns the sum of measures."""
    return combined(lambda *values: sum(values), *of)


def metric(cell: str, name: str, default: float | None = None) -> Measure:
    """An entry of a run's metrics, for training of its `summary.json`; None where it has none.

    Data may have none: there is no AUC of test examples that are all of one class.
    """
    return of_run(cell, lambda run: run.metrics.get(name, default))


def of_run(cell: str, function: Callable[[Run], float | None]) -> Measure:
    """A number that a function reads off one run."""
    return Measure((cell,), lambda runs: function(runs[cell]))


def of_curve(cell: str, column: str, function: OfCurve) -> Measure:
    """A number that a function reads off a column of `metrics.csv`."""

    def compute(run: Run) -> float | None:
        found = function(*map(np.array, run.curve(column)))
        return None if found is None else float(found)

    return of_run(cell, compute)


def last_rounds(cell: str, column: str, count: int = 10) -> Measure:
    """The mean over what was measured in the last `count` rounds."""
    return of_curve(cell, column, lambda n, y: sum(last := y[n > n[-1] - count]) / len(last))


def in_round(cell: str, column: str, round_num: int) -> Measure:
    """What was measured in one round."""
    return of_curve(cell, column, lambda rounds, values: values[list(rounds).index(round_num)])


def over_rounds(cell: str, column: str) -> Measure:
    """The mean over all rounds that were measured."""
    return of_curve(cell, column, lambda _, values: np.mean(values))


def best_round(cell: str, column: str) -> Measure:
    """The highest value that was measured."""
    return of_curve(cell, column, lambda _, values: max(values))


def roughness(cell: str, column: str) -> Measure:
    """Mean change from one measurement to the next, over the second half of a run."""

    def compute(_: np.ndarray, values: np.ndarray) -> float | None:
        moves = np.abs(np.diff(values))
        return np.mean(moves[len(moves) // 2 :]) if len(moves) else None

    return of_curve(cell, column, compute)


def until(cell: str, column: str, goal: Measure, what: OfRound) -> Measure:
    """What a function gives of a run and of the first measured round with a goal in a column.

    Not determined where the column never reaches the goal.
    """

    def compute(runs: Mapping[str, Run]) -> float | None:
        value, run = goal.compute(runs), runs[cell]
        if value is None:
            return None
        measured = zip(*run.curve(column), strict=True)
        return next((what(run, n) for n, found in measured if found >= value), None)

    return Measure(tuple(dict.fromkeys((*goal.cells, cell))), compute)


def rounds_until(_: Run, round_num: int) -> float:
    """The round itself."""
    return round_num


def bytes_until(run: Run, round_num: int) -> float:
    """Total traffic of all clients up to the end of a round."""
    sent = (run.curve(column) for column in ("bytes_up", "bytes_down"))
    return sum(b for curve in sent for n, b in zip(*curve, strict=True) if n <= round_num)
