"""What a table or figure is: cells, places in tables, printed values, claims, figures.

Below the classes are the words that make many of them in one call.
"""

import dataclasses
import itertools
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from experiments.study.measures import Measure
from experiments.study.store import Results, Run
from tff_het import kinds

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing


class _Work:
    """What a cell runs, after `start` with the same seed, if there is one."""

    start: "Training | None"
    alone = False  # Whether it measures time, so that nothing else may run beside it.

    @property
    def chain(self) -> "tuple[Any, ...]":
        """The runs that it builds on, the first of them first, and itself."""
        return (*(() if self.start is None else self.start.chain), self)

    @property
    def uses_test_data(self) -> bool:
        """Whether test examples decided how long something was trained, or which model was kept."""
        selections = ("goal_selection", "ensemble_selection")
        trainings = [work for work in self.chain if isinstance(work, Training)]
        return any(work.flags.get(flag) == "test" for work in trainings for flag in selections)


@dataclasses.dataclass(frozen=True)
class Training(_Work):
    """A run of `experiments.train` with one method, without the flags that a study gives itself.

    It starts from the model of `start` with the same seed, which is made before.
    """

    flags: Mapping[str, Any]
    start: "Training | None" = None

    def __post_init__(self) -> None:
        flags = {k: str(v).lower() if isinstance(v, bool) else v for k, v in self.flags.items()}
        object.__setattr__(self, "flags", {k: kinds.text(v) for k, v in flags.items()})
        own = {"seed", "data_dir", "output_dir", "start_from", "save_initial_weights"}
        if taken := (own | {"runtime", "clients_in_parallel", "ray_deadline"}) & {*self.flags}:
            raise ValueError(f"A study itself gives its runs the flags {', '.join(sorted(taken))}.")
        if "," in self.flags.get("method", ""):
            raise ValueError(f"A run of a study has one method; found {self.flags['method']}.")
        if missing := {"dataset", "method"} - set(self.flags):
            raise ValueError(f"A cell has to name its {' and '.join(sorted(missing))}.")

    @property
    def data_sets(self) -> tuple[str, ...]:
        """The data sets that have to be there."""
        return (self.flags["dataset"],)


Function = Callable[..., Mapping[str, float]]
"""Takes `seed`, `folder` of its own and `data_dir` of data sets (None: download) by keyword, with
the call's further arguments and `start_from`, the folder of the run that it starts from, if there
is one; gives finite numbers by name."""


@dataclasses.dataclass(frozen=True)
class Call(_Work):
    """A call of a function, for what is no training."""

    function: Function  # Starts again in an empty folder whenever it is called.
    arguments: Mapping[str, Any] = dataclasses.field(default_factory=dict)  # JSON values.
    data_sets: tuple[str, ...] = ()  # Those that have to be there.
    start: Training | None = None  # The run with the same seed that it starts from.
    alone: bool = False
    # For plans of how long it takes: an argument, or a flag among its `flags`, with which its time
    # grows linearly; 'flags', if it is the training that these describe; empty, if it takes
    # seconds; None, if nothing can be said before it was made.
    scales_with: str | None = ""


Work = Training | Call


@dataclasses.dataclass(frozen=True)
class Cell:
    """A configuration that is run once for each seed, or for seeds below `num_seeds` alone."""

    name: str
    work: Work
    num_seeds: int | None = None

    def seeds(self, asked: Sequence[int]) -> list[int]:
        """Returns those of the seeds with which it is run."""
        return [seed for seed in asked if self.num_seeds is None or seed < self.num_seeds]


@dataclasses.dataclass(frozen=True)
class Scale:
    """One size of a table or figure; tables and claims whose cells it lacks are left out.

    By default `num_seeds` seeds are run. The note says what differs from the paper's settings.
    """

    cells: Sequence[Cell]
    num_seeds: int
    note: str


@dataclasses.dataclass(frozen=True)
class Form:
    """Format of a number: times `factor`, with `digits` after the point."""

    digits: int = 2
    factor: float = 1.0

    def text(self, value: float, *, sign: bool = False) -> str:
        """Returns the number as text."""
        return f"{value * self.factor:{'+' if sign else ''},.{self.digits}f}"


PERCENT = Form(digits=2, factor=100.0)


class Place(NamedTuple):
    """A place in a table, and the number of ours that stands there."""

    row: str
    column: str
    measure: Measure
    form: Form = PERCENT


@dataclasses.dataclass(frozen=True)
class Table:
    """A table of our numbers; rows and columns follow in the order of the places.

    Without `compare`, the paper's values do not belong beside these runs. Those of the rows in
    `judged` agree or differ: they lie within our interval widened by their own, or not. `notes`
    gives what else is said of its numbers, by row and column.
    """

    title: str
    places: tuple[Place, ...]
    compare: bool = True
    judged: Collection[str] = ()
    notes: Callable[[Results], Mapping[tuple[str, str], str]] = lambda _: {}


@dataclasses.dataclass(frozen=True)
class Printed:
    """A value that the paper prints, with its place in our table."""

    row: str
    column: str
    value: float  # As printed, in the unit of the table.
    quote: str  # The words of the paper's text that hold it, with white space as it may.
    place: str  # Where these stand.
    interval: float | None = None  # Half the width of the interval printed with it.
    note: str = ""  # What it contradicts: another printed value, or the arithmetic.


class Check(NamedTuple):
    """One measurable part of a claim: the mean of a measure lies above a margin."""

    name: str
    measure: Measure
    margin: float = 0.0
    form: Form = PERCENT


@dataclasses.dataclass(frozen=True)
class Claim:
    """A statement of the paper and the checks that must all hold."""

    text: str
    checks: Sequence[Check]


class Figure(NamedTuple):
    """A picture of the runs there are, None where none are, beside what the paper's shows."""

    title: str
    paper_shows: str
    draw: Callable[[Results], "Drawing | None"]


@dataclasses.dataclass(frozen=True)
class Experiment:
    """One table or figure.

    Its id is its paper, the package in `experiments`, and the module there: 'hdafl.table3'.
    `experiments.reproduce` makes it, where `command` names nothing else.
    """

    id: str
    title: str
    scales: Mapping[str, Scale]
    tables: Sequence[Table] = ()
    printed: Sequence[Printed] = ()
    claims: Sequence[Claim] = ()
    figures: Sequence[Figure] = ()
    command: str = ""

    def __post_init__(self) -> None:
        names = {scale: [cell.name for cell in one.cells] for scale, one in self.scales.items()}
        for scale, own in names.items():
            if len(set(own)) < len(own):
                raise ValueError(f"{self.id}: cells of scale {scale} share names: {own}.")
        measures = [place.measure for table in self.tables for place in table.places]
        measures += [check.measure for claim in self.claims for check in claim.checks]
        if unknown := {c for m in measures for c in m.cells}.difference(*names.values()):
            raise ValueError(f"{self.id}: no scale has the cells {sorted(unknown)}.")
        places = {place[:2] for table in self.tables for place in table.places}
        if outside := [p for p in self.printed if (p.row, p.column) not in places]:
            raise ValueError(f"{self.id}: printed values have no place in a table: {outside}.")

    @property
    def paper(self) -> str:
        """The short name of its paper."""
        return self.id.partition(".")[0]

    @property
    def name(self) -> str:
        """Its name within the paper."""
        return self.id.partition(".")[2]

    @property
    def label(self) -> str:
        """What the paper calls it: 'Table 3'."""
        return self.title.partition(":")[0]

    def results(self, scale: str, seeds: Sequence[int], run: Callable[[Work, int], Run]) -> Results:
        """Returns the runs of one scale: what a function finds for what is run and a seed."""
        cells = self.scales[scale].cells
        runs = {(c.name, seed): run(c.work, seed) for c in cells for seed in c.seeds(seeds)}
        return Results(scale, seeds, runs)

    def claims_of(self, scale: str) -> list[Claim]:
        """The claims that a scale has the runs for."""
        cells = {cell.name for cell in self.scales[scale].cells}
        return [c for c in self.claims if all(cells >= {*k.measure.cells} for k in c.checks)]


Labels = Mapping[str, Any] | Iterable[str]
"""Labels, each with what it stands for; by default for itself."""
Measures = Mapping[str, Measure]
Fill = Callable[[Any, Any], Measure | None]
"""Gives the measure for what a row and a column stand for; None leaves the place empty."""
Notes = Mapping[str, Mapping[str, str]]


def cells(
    name: str,
    flags: Mapping[str, Any],
    *,
    num_seeds: int | None = None,
    **axes: Mapping[str, Mapping[str, Any]],
) -> tuple[Cell, ...]:
    """Returns trainings: one for each combination of labels.

    Args:
      name: Of a cell, with the axes in braces: 'cough/{level}/{method}'.
      flags: Of all cells. A flag of an axis is over these; None takes a flag away.
      num_seeds: As in `Cell`.
      **axes: Axis -> label -> flags; the last axis varies first.
    """
    found = []
    for labels in itertools.product(*axes.values()):
        chosen = dict(zip(axes, labels, strict=True))
        layers = (flags, *(axes[axis][label] for axis, label in chosen.items()))
        merged = {name: value for layer in layers for name, value in layer.items()}
        kept = {k: v for k, v in merged.items() if v is not None}
        found.append(Cell(name.format(**chosen), Training(kept), num_seeds))
    return tuple(found)


def call(
    name: str,
    function: Function,
    data_sets: str | Sequence[str] = (),
    *,
    alone: bool = False,
    num_seeds: int | None = None,
    scales_with: str | None = "",
    **arguments: Any,
) -> Cell:
    """Returns a cell that calls a function; see `Call`."""
    needed = (data_sets,) if isinstance(data_sets, str) else tuple(data_sets)
    return Cell(name, Call(function, arguments, needed, None, alone, scales_with), num_seeds)


def places(rows: Labels, columns: Labels, measure: Fill, form: Form = PERCENT) -> tuple[Place, ...]:
    """Returns the places of rows and columns; (what, form) gives a column a form of its own."""
    found = []
    for row, of in _pairs(rows):
        for column, what in _pairs(columns):
            own = isinstance(what, tuple) and isinstance(what[-1], Form)
            value = measure(of, what[0] if own else what)
            if value is not None:
                found.append(Place(row, column, value, what[1] if own else form))
    return tuple(found)


def table(
    title: str, rows: Labels, columns: Labels, measure: Fill, form: Form = PERCENT, **more: Any
) -> Table:
    """Returns a table; see `places`, and `Table` for more."""
    return Table(title, places(rows, columns, measure, form), **more)


def claim(text: str, checks: Measures, above: float = 0.0, form: Form = PERCENT) -> Claim:
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
    pairs = itertools.product(_pairs(one), _pairs(others))
    checks = {f"{by} of {a} - {b}": measure(x) - measure(y) for (a, x), (b, y) in pairs}
    return claim(text, checks, above, form)


def rises(text: str, along: Measures, *, by: str = "accuracy", form: Form = PERCENT) -> Claim:
    """Returns a claim that measures rise from each label to the next."""
    checks = {f"{by}, {b} - {a}": along[b] - along[a] for a, b in itertools.pairwise(along)}
    return claim(text, checks, form=form)


_NUMBER = re.compile(r"(-?\d[\d,]*\.?\d*)(?:\s*(?:±|\\pm)\s*(\d+\.?\d*))?")


def printed(
    quotes: Mapping[str, str], columns: Sequence[str], place: str, notes: Notes | None = None
) -> list[Printed]:
    """Returns the values of printed rows; notes say by row and column what a value contradicts.

    A row's quote is the paper's words, with a number for each column, possibly with its +-, and no
    others after the first word. The place may have the row in braces.
    """
    found = []
    for row, quote in quotes.items():
        numbers = list(_NUMBER.finditer(quote))[-len(columns) :]
        for column, number in zip(columns, numbers, strict=True):
            digits, interval = number.groups()
            value, note = float(digits.replace(",", "")), (notes or {}).get(row, {}).get(column, "")
            # Up to the value: the next one may be a misprint away from it.
            words, half = quote[: number.end()], None if interval is None else float(interval)
            found.append(Printed(row, column, value, words, place.format(row=row), half, note))
    return found


def _pairs(labels: Labels) -> list[tuple[str, Any]]:
    if isinstance(labels, str):
        return [(labels, labels)]
    return list(labels.items()) if isinstance(labels, Mapping) else [(x, x) for x in labels]
