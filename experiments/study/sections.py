"""A table or figure as it will be shown: the paper's numbers beside ours, all as text."""

import base64
import dataclasses
import io
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from experiments.study import identity, runner, statistics
from experiments.study.experiment import (
    Call,
    Cell,
    Check,
    Claim,
    Experiment,
    Figure,
    Form,
    Grid,
    Position,
    Printed,
    Training,
)
from experiments.study.measures import Measure
from experiments.study.statistics import Estimate, Verdict
from experiments.study.store import Results, Status


@dataclasses.dataclass(frozen=True)
class Entry:
    """One place of a table.

    Attributes:
      row: Its row.
      column: Its column.
      ours: Our mean with its interval, or why there is none.
      paper: What the paper prints; empty where it prints nothing.
      difference: Ours minus the paper's; empty where one of them is missing.
      marked: What is wrong with the paper's value; empty if nothing is known.
      found: Our mean and interval, in the unit of the table.
    """

    row: str
    column: str
    ours: str
    paper: str
    difference: str
    marked: str
    found: Estimate | None


@dataclasses.dataclass(frozen=True)
class FilledGrid:
    """A table with its entries by (row, column)."""

    grid: Grid
    entries: dict[tuple[str, str], Entry]


@dataclasses.dataclass(frozen=True)
class Judged:
    """A claim and what our runs say of it; `rows` has (check, ours, margin, p, verdict)."""

    text: str
    verdict: Verdict
    rows: list[tuple[str, str, str, str, str]]


@dataclasses.dataclass(frozen=True)
class DrawnFigure:
    """A figure beside what the paper's shows: SVG in base64; None while there is none yet."""

    title: str
    paper_shows: str
    svg: str | None


@dataclasses.dataclass(frozen=True)
class CellLine:
    """A cell and the outcome of each of its seeds."""

    name: str
    work: str
    data: str
    outcomes: str
    errors: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class TimeLine:
    """Time and machine of a run: the only things that two equal runs do not share."""

    run: str
    seconds: str
    hardware: str


@dataclasses.dataclass(frozen=True)
class Section:
    """All that the page shows of one scale of a table or figure."""

    experiment: Experiment
    scale: str
    seeds: Sequence[int]
    command: str
    grids: list[FilledGrid]
    claims: list[Judged]
    figures: list[DrawnFigure]
    cells: list[CellLine]
    counts: str
    versions: str
    times: list[TimeLine]

    @property
    def id(self) -> str:
        """A name for links and files."""
        return f"{self.experiment.paper}-{self.experiment.name}-{self.scale}"


def section(experiment: Experiment, scale: str, output_dir: Path) -> Section | None:
    """Reads one scale's runs and compares them; None where nothing was ever run."""
    results = runner.read(experiment, scale, output_dir)
    if results is None:
        return None
    return Section(
        experiment=experiment,
        scale=scale,
        seeds=results.seeds,
        command=_command(experiment, scale, results),
        grids=[_fill(grid, experiment, results) for grid in experiment.grids_of(scale)],
        claims=[_judge(claim, experiment, results) for claim in experiment.claims_of(scale)],
        figures=[_draw(figure, results) for figure in experiment.figures],
        cells=[_cell_line(cell, results) for cell in experiment.scales[scale].cells],
        counts=_counts(experiment, results),
        versions=_versions(results),
        times=_times(results),
    )


def values(measure: Measure, results: Results) -> list[float]:
    """Returns a measure's values, for the seeds that determine it."""
    found = []
    for seed in results.seeds:
        runs = results.ok(measure.cells, seed)
        if runs is not None and (value := measure.compute(runs)) is not None:
            found.append(value)
    return found


def with_interval(found: Estimate, form: Form) -> str:
    """Returns a mean with its interval as text."""
    text = form.text(found.mean)
    if found.low is None or found.high is None:
        return f"{text} (1 seed)"
    return f"{text} [{form.text(found.low)}, {form.text(found.high)}]"


def _fill(grid: Grid, experiment: Experiment, results: Results) -> FilledGrid:
    printed = {(p.row, p.column): p for p in experiment.printed} if grid.compare else {}
    return FilledGrid(
        grid,
        {
            (position.row, position.column): _entry(
                position,
                printed.get((position.row, position.column)),
                results,
                chosen=_chosen_by_test(position.measure, experiment, results.scale),
            )
            for position in grid.positions
        },
    )


def _entry(position: Position, printed: Printed | None, results: Results, *, chosen: str) -> Entry:
    found, form = values(position.measure, results), position.form
    paper = "" if printed is None else _as_printed(printed, form)
    if not found:
        ours, scaled, difference = _why_not(position.measure, results), None, ""
    else:
        estimate = statistics.estimate(found)
        ours = with_interval(estimate, form)
        planned = _planned(position.measure, results)
        if estimate.num_seeds < planned:
            ours += f", {estimate.num_seeds} of {planned} seeds"
        elif planned < len(results.seeds):
            ours += f" ({planned} seeds)" if planned > 1 else ""
        ours += chosen
        scaled = statistics.estimate([value * form.factor for value in found])
        unscaled = Form(form.digits)
        difference = (
            "" if printed is None else unscaled.text(scaled.mean - printed.value, sign=True)
        )
    note = "" if printed is None else printed.note
    return Entry(position.row, position.column, ours, paper, difference, note, scaled)


def _planned(measure: Measure, results: Results) -> int:
    """How many of the seeds all of a measure's cells are run with."""
    return sum(
        all((cell, seed) in results.runs for cell in measure.cells) for seed in results.seeds
    )


def _as_printed(printed: Printed, form: Form) -> str:
    unscaled = Form(form.digits)
    text = unscaled.text(printed.value)
    return text if printed.interval is None else f"{text} ± {unscaled.text(printed.interval)}"


def _why_not(measure: Measure, results: Results) -> str:
    runs = [
        results.runs[cell, seed]
        for cell in measure.cells
        for seed in results.seeds
        if (cell, seed) in results.runs
    ]
    for status in (Status.FAILED, Status.MISSING_DATA, Status.UNFINISHED, Status.ABSENT):
        if any(run.status is status for run in runs):
            return status.value.replace("_", " ")
    return "not determined" if runs else "not at this scale"


def _chosen_by_test(measure: Measure, experiment: Experiment, scale: str) -> str:
    """What is said of a number for which test examples decided how long something was trained."""
    used = any(
        cell.work.uses_test_data
        for cell in experiment.scales[scale].cells
        if cell.name in measure.cells
    )
    return ", chosen by test data" if used else ""


def _judge(claim: Claim, experiment: Experiment, results: Results) -> Judged:
    judged = [
        _check(check, results, chosen=_chosen_by_test(check.measure, experiment, results.scale))
        for check in claim.checks
    ]
    return Judged(
        claim.text, statistics.all_of([verdict for verdict, _ in judged]), [r for _, r in judged]
    )


def _check(
    check: Check, results: Results, *, chosen: str
) -> tuple[Verdict, tuple[str, str, str, str, str]]:
    found, form = values(check.measure, results), check.form
    margin = form.text(check.margin)
    if not found:
        why = _why_not(check.measure, results)
        return Verdict.UNDECIDED, (check.name, why, margin, "-", Verdict.UNDECIDED.value)
    estimate = statistics.estimate(found)
    verdict = statistics.verdict(estimate, check.margin)
    p = statistics.paired_t_test(found, check.margin)
    shown = "-" if p is None else "< 0.001" if p < 0.001 else f"{p:.3f}"
    ours = with_interval(estimate, form) + chosen
    return verdict, (check.name, ours, margin, shown, verdict.value)


def _draw(figure: Figure, results: Results) -> DrawnFigure:
    drawing = figure.draw(results)
    svg = None
    if drawing is not None:
        import matplotlib as mpl

        buffer = io.BytesIO()
        # The same bytes for the same figure.
        with mpl.rc_context({"svg.hashsalt": figure.title}):
            drawing.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
        svg = base64.b64encode(buffer.getvalue()).decode()
    return DrawnFigure(figure.title, figure.paper_shows, svg)


def _cell_line(cell: Cell, results: Results) -> CellLine:
    work = ", then ".join(_command_of(one) for one in cell.work.chain)
    runs = {seed: results.runs[cell.name, seed] for seed in cell.seeds(results.seeds)}
    prints = sorted(
        {f"{k} ({v[:12]})" for run in runs.values() for k, v in run.record.get("data", {}).items()}
    )
    return CellLine(
        cell.name,
        work,
        ", ".join(prints or cell.work.data_sets) or "none",
        ", ".join(f"{seed}: {run.status.value}" for seed, run in runs.items()),
        tuple(dict.fromkeys(run.error for run in runs.values() if run.error)),
    )


def _command_of(work: Training | Call) -> str:
    if isinstance(work, Training):
        return " ".join(f"--{name}={value}" for name, value in sorted(work.flags.items()))
    arguments = ", ".join(f"{k}={v!r}" for k, v in work.arguments.items())
    return f"{identity.function_name(work)}({arguments})"


def _counts(experiment: Experiment, results: Results) -> str:
    counts = Counter(run.status for run in results.runs.values())
    parts = [f"{counts[s]} {s.value.replace('_', ' ')}" for s in Status if counts[s]]
    outdated = sum(
        bool(runner.why_outdated(cell, results.runs[cell.name, seed]))
        for cell in experiment.scales[results.scale].cells
        for seed in cell.seeds(results.seeds)
    )
    if outdated:
        parts.append(f"{outdated} of them of earlier code")
    return ", ".join(parts)


def _versions(results: Results) -> str:
    found = {
        f"{name} {version}"
        for run in results.runs.values()
        for name, version in run.record.get("versions", {}).items()
    }
    return ", ".join(sorted(found))


def _times(results: Results) -> list[TimeLine]:
    return [
        TimeLine(
            f"{cell}, seed {seed}",
            f"{run.record['seconds']:.1f}",
            f"{run.record['hardware']}, runtime {run.record['runtime']}",
        )
        for (cell, seed), run in results.runs.items()
        if run.status is Status.OK
    ]


def _command(experiment: Experiment, scale: str, results: Results) -> str:
    command = experiment.command or f"python -m experiments.{experiment.id} --scale={scale}"
    if len(results.seeds) != experiment.scales[scale].num_seeds:
        command += f" --seeds={len(results.seeds)}"
    return f"{command} --data_dir=DATA_DIR --output_dir=OUTPUT_DIR"
