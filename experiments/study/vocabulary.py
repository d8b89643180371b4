"""The words in which a paper's modules are written: many cells, tables, claims in one call each."""

import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from experiments.study.experiment import (
    PERCENT,
    Call,
    Cell,
    Check,
    Claim,
    Form,
    Function,
    Place,
    Printed,
    Table,
    Training,
)
from experiments.study.measures import Measure

Labels = Mapping[str, Any] | Iterable[str]
"""Labels, each with what it stands for; by default for itself."""


def cells(
    name: str,
    flags: Mapping[str, Any],
    *,
    start: Training | None = None,
    num_seeds: int | None = None,
    **axes: Mapping[str, Mapping[str, Any]],
) -> tuple[Cell, ...]:
    """Returns trainings: one for each combination of labels.

    Args:
      name: Of a cell, with the axes in braces: 'cough/{level}/{method}'.
      flags: Of all cells. A flag of an axis is over these; None takes a flag away.
      start: The run that all of them start from.
      num_seeds: As in `Cell`.
      **axes: Axis -> label -> flags; the last axis varies first.
    """
    found = []
    for labels in itertools.product(*axes.values()):
        chosen = dict(zip(axes, labels, strict=True))
        merged = dict(flags)
        for axis, label in chosen.items():
            merged |= axes[axis][label]
        kept = {k: v for k, v in merged.items() if v is not None}
        found.append(Cell(name.format(**chosen), Training(kept, start), num_seeds))
    return tuple(found)


def call(
    name: str,
    function: Function,
    data_sets: str | Sequence[str] = (),
    *,
    start: Training | None = None,
    alone: bool = False,
    num_seeds: int | None = None,
    scales_with: str | None = "",
    **arguments: Any,
) -> Cell:
    """Returns a cell that calls a function; see `Call`."""
    needed = (data_sets,) if isinstance(data_sets, str) else tuple(data_sets)
    return Cell(name, Call(function, arguments, needed, start, alone, scales_with), num_seeds)


def places(
    rows: Labels,
    columns: Labels,
    measure: Callable[[Any, Any], Measure | None],
    form: Form = PERCENT,
) -> tuple[Place, ...]:
    """Returns the places of rows and columns.

    Args:
      rows: Label -> what the measure is asked for.
      columns: Likewise; (what, form) for a form of its own.
      measure: Of a row and a column; None leaves the place empty.
      form: Of all other columns.
    """
    found = []
    for row, of in _pairs(rows):
        for column, what in _pairs(columns):
            own = isinstance(what, tuple) and isinstance(what[-1], Form)
            value = measure(of, what[0] if own else what)
            if value is not None:
                found.append(Place(row, column, value, what[1] if own else form))
    return tuple(found)


def table(
    title: str,
    rows: Labels,
    columns: Labels,
    measure: Callable[[Any, Any], Measure | None],
    form: Form = PERCENT,
    *,
    compare: bool = True,
) -> Table:
    """Returns a table; see `places` and `Table`."""
    return Table(title, places(rows, columns, measure, form), compare)


def claim(
    text: str, checks: Mapping[str, Measure], above: float = 0.0, form: Form = PERCENT
) -> Claim:
    """Returns a claim that holds where each measure is above a margin."""
    return Claim(text, tuple(Check(name, m, above, form) for name, m in checks.items()))


def better(
    text: str,
    measure: Callable[[Any], Measure],
    one: Labels,
    others: Labels,
    *,
    by: str = "accuracy",
    above: float = 0.0,
    form: Form = PERCENT,
) -> Claim:
    """Returns a claim that one, or each of several, is better than each of the others.

    The measure is given what a label stands for; `by` says what it measures, in the checks' names,
    and `above` by how much the one has to be better.
    """
    checks = {
        f"{by} of {a} - {b}": measure(x) - measure(y)
        for a, x in _pairs(one)
        for b, y in _pairs(others)
    }
    return claim(text, checks, above, form)


def rises(
    text: str, along: Mapping[str, Measure], *, by: str = "accuracy", form: Form = PERCENT
) -> Claim:
    """Returns a claim that measures rise from each label to the next."""
    checks = {f"{by}, {b} - {a}": along[b] - along[a] for a, b in itertools.pairwise(along)}
    return claim(text, checks, form=form)


_NUMBER = re.compile(r"(-?\d[\d,]*\.?\d*)(?:\s*(?:±|\\pm)\s*(\d+\.?\d*))?")


def printed(
    row: str,
    columns: Sequence[str],
    quote: str,
    place: str,
    notes: Mapping[str, str] | None = None,
) -> Iterator[Printed]:
    """Gives the values of one printed row.

    Args:
      columns: In the order of the numbers.
      quote: The paper's words, with these numbers, each possibly with its +-, and no others after
        the first word.
      notes: What a value contradicts, by column.
    """
    found = list(_NUMBER.finditer(quote))[-len(columns) :]
    for column, number in zip(columns, found, strict=True):
        value, interval = number.groups()
        yield Printed(
            row,
            column,
            float(value.replace(",", "")),
            # Up to the value: the next one may be a misprint away from it.
            quote[: number.end()],
            place,
            None if interval is None else float(interval),
            (notes or {}).get(column, ""),
        )


def _pairs(labels: Labels) -> list[tuple[str, Any]]:
    if isinstance(labels, str):
        return [(labels, labels)]
    return list(labels.items()) if isinstance(labels, Mapping) else [(x, x) for x in labels]
