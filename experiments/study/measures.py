"""Measures: numbers read off the runs of one seed."""

import dataclasses
from collections.abc import Callable, Mapping

from experiments.study.store import Run


@dataclasses.dataclass(frozen=True)
class Measure:
    """A number that the runs of one seed give, so that methods are paired by seed.

    Measures are subtracted and divided like numbers, also from and by them.

    Attributes:
      cells: Names of the cells whose runs it needs.
      compute: Gives the number, of the runs by cell; None where they do not determine it, as
        the round in which a target is reached that never is.
    """

    cells: tuple[str, ...]
    compute: Callable[[Mapping[str, Run]], float | None]

    def __sub__(self, other: "Measure | float") -> "Measure":
        return _combined(self, _as_measure(other), lambda a, b: a - b)

    def __rsub__(self, other: float) -> "Measure":
        return _as_measure(other) - self

    def __abs__(self) -> "Measure":
        return _combined(self, _as_measure(0.0), lambda a, _: abs(a))

    def __truediv__(self, other: "Measure") -> "Measure":
        """Not determined where `other` is 0."""
        return _combined(self, other, lambda a, b: a / b if b else None)


def metric(cell: str, name: str) -> Measure:
    """An entry of a run's metrics, for training of its `summary.json`; None where it has none.

    Data may have none: there is no AUC of test examples that are all of one class.
    """
    return Measure((cell,), lambda runs: runs[cell].metrics.get(name))


def _as_measure(value: Measure | float) -> Measure:
    return value if isinstance(value, Measure) else Measure((), lambda runs: value)


def _combined(
    one: Measure, other: Measure, function: Callable[[float, float], float | None]
) -> Measure:
    def compute(runs: Mapping[str, Run]) -> float | None:
        a, b = one.compute(runs), other.compute(runs)
        return None if a is None or b is None else function(a, b)

    return Measure(tuple(dict.fromkeys((*one.cells, *other.cells))), compute)


def first_round(run: Run, column: str, value: float) -> int | None:
    """The first measured round with at least this value in a column; None where none has it."""
    reached = [n for n, found in zip(*run.curve(column), strict=True) if found >= value]
    return reached[0] if reached else None


def bytes_until(run: Run, round_num: int) -> float:
    """Total traffic of all clients up to the end of a round."""
    sent = (run.curve(column) for column in ("bytes_up", "bytes_down"))
    return sum(b for curve in sent for n, b in zip(*curve, strict=True) if n <= round_num)
