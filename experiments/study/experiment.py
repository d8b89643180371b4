"""Describes a table or figure: cells, places in the table, printed values, claims."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from experiments.study.measures import Measure
from experiments.study.store import Results

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

SCALES = ("smoke", "quick", "paper")


@dataclasses.dataclass(frozen=True)
class Training:
    """A run of `experiments.train` with one method.

    Attributes:
      flags: Its flags by name, without seed, data_dir, output_dir and start_from.
      start: The run with the same seed from whose model it starts; it is made before.
    """

    flags: Mapping[str, str]
    start: "Training | None" = None

    def __post_init__(self) -> None:
        if taken := {"seed", "data_dir", "output_dir", "start_from"} & set(self.flags):
            raise ValueError(f"A study itself gives its runs the flags {', '.join(sorted(taken))}.")
        if missing := {"dataset", "method"} - set(self.flags):
            raise ValueError(f"A cell has to name its {' and '.join(sorted(missing))}.")

    @property
    def data_sets(self) -> tuple[str, ...]:
        """The data sets that have to be there."""
        return (self.flags["dataset"],)

    @property
    def chain(self) -> "tuple[Training, ...]":
        """The runs that it builds on, the first of them first, and itself."""
        return (*(() if self.start is None else self.start.chain), self)

    @property
    def uses_test_data(self) -> bool:
        """Whether test examples decided how long something was trained, or which model was kept."""
        return any(
            work.flags.get(flag) == "test"
            for work in self.chain
            for flag in ("goal_selection", "ensemble_selection")
        )


class Function(Protocol):
    """A function of `seed`, `folder` of its own and `data_dir` of data sets (None: download).

    It takes them by keyword, with the call's further arguments and `start_from`, the folder of the
    run that it starts from, if there is one; it gives finite numbers by name.
    """

    __module__: str
    __qualname__: str

    def __call__(self, *args: Any, **kwargs: Any) -> Mapping[str, float]: ...


@dataclasses.dataclass(frozen=True)
class Call:
    """A call of a function, for what is no training.

    Attributes:
      function: Starts again in an empty folder whenever it is called.
      arguments: Further arguments, JSON values.
      data_sets: The data sets that have to be there.
      start: The run with the same seed that it starts from; it is made before.
      alone: Whether it measures time, so that nothing else may run beside it.
    """

    function: Function
    arguments: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    data_sets: tuple[str, ...] = ()
    start: Training | None = None
    alone: bool = False

    @property
    def chain(self) -> "tuple[Training | Call, ...]":
        """The runs that it builds on, the first of them first, and itself."""
        return (*(() if self.start is None else self.start.chain), self)

    @property
    def uses_test_data(self) -> bool:
        """Whether test examples decided how long something that it starts from was trained."""
        return self.start is not None and self.start.uses_test_data


@dataclasses.dataclass(frozen=True)
class Cell:
    """A configuration that is run once for each seed.

    Attributes:
      name: Its name in the table or figure.
      work: What is run.
      seconds: About how long it takes on two cores, for the plan.
      num_seeds: Seeds 0, 1, ... up to which it is run at most; None: all that are asked for.
    """

    name: str
    work: Training | Call
    seconds: float
    num_seeds: int | None = None

    def seeds(self, asked: Sequence[int]) -> list[int]:
        """Returns those of the seeds with which it is run."""
        return [seed for seed in asked if self.num_seeds is None or seed < self.num_seeds]


@dataclasses.dataclass(frozen=True)
class Scale:
    """One size of a table or figure.

    Attributes:
      cells: What is run; tables and claims whose cells it lacks are left out.
      num_seeds: Seeds 0, 1, ... that are run unless others are asked for.
      note: What differs from the paper's settings, for the page.
    """

    cells: tuple[Cell, ...]
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


@dataclasses.dataclass(frozen=True)
class Position:
    """A place in a table, and the number of ours that stands there."""

    row: str
    column: str
    measure: Measure
    form: Form = PERCENT


@dataclasses.dataclass(frozen=True)
class Grid:
    """The table's form, filled with runs on one data set.

    Attributes:
      title: What the runs have in common.
      positions: Rows and columns follow in the order in which they first stand here.
      compare: Whether the paper's values belong beside these runs.
    """

    title: str
    positions: tuple[Position, ...]
    compare: bool = True

    @property
    def rows(self) -> list[str]:
        """The rows' names."""
        return list(dict.fromkeys(position.row for position in self.positions))

    @property
    def columns(self) -> list[str]:
        """The columns' names."""
        return list(dict.fromkeys(position.column for position in self.positions))


@dataclasses.dataclass(frozen=True)
class Printed:
    """A value that the paper prints.

    Attributes:
      row: Its row in our table.
      column: Its column.
      value: As printed, in the unit of the table.
      quote: The words of the paper's text that hold it, with white space as it may.
      place: Where it stands.
      interval: Half the width of the interval printed with it.
      note: What it contradicts: another printed value, or the arithmetic. Empty: nothing known.
    """

    row: str
    column: str
    value: float
    quote: str
    place: str
    interval: float | None = None
    note: str = ""


@dataclasses.dataclass(frozen=True)
class Check:
    """One measurable part of a claim: the mean of a measure lies above a margin.

    Attributes:
      name: What is compared, for the page.
      measure: The number, one a seed; a difference or ratio is paired by seed.
      margin: What it has to exceed.
      form: How it is printed.
    """

    name: str
    measure: Measure
    margin: float = 0.0
    form: Form = PERCENT


@dataclasses.dataclass(frozen=True)
class Claim:
    """A statement of the paper and the checks that must all hold."""

    text: str
    checks: tuple[Check, ...]


@dataclasses.dataclass(frozen=True)
class Figure:
    """A picture beside what the paper's shows.

    Attributes:
      title: Its title.
      paper_shows: What the paper's figure shows, in words.
      draw: Makes ours of the runs there are; None where there are none to draw.
    """

    title: str
    paper_shows: str
    draw: Callable[[Results], "Drawing | None"]


@dataclasses.dataclass(frozen=True)
class Experiment:
    """One table or figure.

    Attributes:
      paper: Short name of the paper, the package in `experiments`.
      name: The module there, such as 'table3'.
      title: What it shows.
      settings: The paper's settings, in words.
      scales: By name.
      grids: Our tables.
      printed: What the paper prints in them.
      claims: What is checked.
      figures: What is drawn.
      notes: What a reader has to know beside it.
      command: What makes it; by default its own module.
    """

    paper: str
    name: str
    title: str
    settings: str
    scales: Mapping[str, Scale]
    grids: tuple[Grid, ...] = ()
    printed: tuple[Printed, ...] = ()
    claims: tuple[Claim, ...] = ()
    figures: tuple[Figure, ...] = ()
    notes: tuple[str, ...] = ()
    command: str = ""

    def __post_init__(self) -> None:
        known: set[str] = set()
        for scale in self.scales:
            names = self.cells(scale)
            known |= set(names)
            if len(set(names)) < len(names):
                raise ValueError(f"{self.id}: cells of scale {scale} share names: {names}.")
        measures = [p.measure for grid in self.grids for p in grid.positions]
        measures += [check.measure for claim in self.claims for check in claim.checks]
        if unknown := {cell for measure in measures for cell in measure.cells} - known:
            raise ValueError(f"{self.id}: no scale has the cells {sorted(unknown)}.")
        places = {(p.row, p.column) for grid in self.grids for p in grid.positions}
        if outside := [p for p in self.printed if (p.row, p.column) not in places]:
            raise ValueError(f"{self.id}: printed values have no place in a table: {outside}.")

    @property
    def id(self) -> str:
        """Paper and name: 'hdafl.table3'."""
        return f"{self.paper}.{self.name}"

    def cells(self, scale: str) -> list[str]:
        """The names of a scale's cells."""
        return [cell.name for cell in self.scales[scale].cells]

    def grids_of(self, scale: str) -> list[Grid]:
        """The tables that a scale fills, wholly or in part."""
        cells = set(self.cells(scale))
        return [g for g in self.grids if any(cells & {*p.measure.cells} for p in g.positions)]

    def claims_of(self, scale: str) -> list[Claim]:
        """The claims that a scale has the runs for."""
        cells = set(self.cells(scale))
        return [c for c in self.claims if all(cells >= {*k.measure.cells} for k in c.checks)]
