"""Measures: numbers read off the runs of one seed."""

import dataclasses
from collections.abc import Callable, Mapping

from experiments.study.store import Run


@dataclasses.dataclass(frozen=True)
class Measure:
    """A number that the runs of one seed give, so that methods are paired by seed.

    Attributes:
      cells: Names of the cells whose runs it needs.
      compute: Gives the number, of the runs by cell; None where they do not determine it, as
        the round in which a target is reached that never is.
    """

    cells: tuple[str, ...]
    compute: Callable[[Mapping[str, Run]], float | None]


def metric(cell: str, name: str) -> Measure:
    """An entry of a run's metrics, for training of its `summary.json`; None where it has none.

    Data may have none: there is no AUC of test examples that are all of one class.
    """
    return Measure((cell,), lambda runs: runs[cell].metrics.get(name))


def difference(one: Measure, other: Measure) -> Measure:
    """`one` minus `other`."""
    return _combined(one, other, lambda a, b: a - b)


def ratio(one: Measure, other: Measure) -> Measure:
    """`one` divided by `other`; not determined where that is 0."""
    return _combined(one, other, lambda a, b: a / b if b else None)


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
