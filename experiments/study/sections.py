"""A table or figure as it will be shown: the paper's numbers beside ours, all as text."""

import base64
import io
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from experiments.study import runner, statistics
from experiments.study.experiment import Check, Experiment, Figure, Form, Place, Table
from experiments.study.measures import Measure
from experiments.study.statistics import Estimate, Verdict
from experiments.study.store import Results, Status


class Entry(NamedTuple):
    """One place of a table; what is missing is empty.

    Attributes:
      ours: Our mean with its interval, or why there is none.
      paper: What the paper prints.
      difference: Ours minus the paper's.
      marked: What is wrong with the paper's value.
      found: Our mean and interval, in the unit of the table.
    """

    row: str
    column: str
    ours: str
    paper: str
    difference: str
    marked: str
    found: Estimate | None


class FilledTable(NamedTuple):
    """A table with its entries by (row, column)."""

    table: Table
    entries: dict[tuple[str, str], Entry]


class JudgedCheck(NamedTuple):
    """A check and what our runs say of it.

    Attributes:
      ours: Our mean with its interval, or why there is none.
      margin: What it has to exceed.
      p: Of the paired t test.
      excess: By how much our mean exceeds the margin; infinite without a mean.
      seeds: How many seeds the mean is of.
    """

    name: str
    ours: str
    margin: str
    p: str
    verdict: Verdict
    excess: float = math.inf
    seeds: int = 0

    @property
    def row(self) -> list[str]:
        """As it stands in a table, with the head `CHECK_HEAD`."""
        return [self.name, self.ours, self.margin, self.p, self.verdict.value]


NOT_HERE = "not at this scale"
CHECK_HEAD = ("check", "ours, with interval", "margin", "p (paired t test)", "verdict")


class Judged(NamedTuple):
    """A claim and what our runs say of it."""

    text: str
    checks: list[JudgedCheck]

    @property
    def verdict(self) -> Verdict:
        """That of all checks together."""
        return statistics.all_of([check.verdict for check in self.checks])

    @property
    def deciding(self) -> JudgedCheck:
        """The weakest of the checks that decide the verdict."""
        having = [check for check in self.checks if check.verdict is self.verdict] or self.checks
        return min(having, key=lambda check: check.excess)


class DrawnFigure(NamedTuple):
    """A figure beside what the paper's shows: SVG in base64; None while there is none yet."""

    title: str
    paper_shows: str
    svg: str | None


class Section(NamedTuple):
    """All that a page shows of one scale of a table or figure.

    Attributes:
      seeds: The seeds asked for.
      counts: How many runs have which outcome.
      made: With which commits, on what, and in how many hours the runs were made.
      results: The runs; None if they were not kept.
    """

    experiment: Experiment
    scale: str
    seeds: Sequence[int]
    tables: list[FilledTable]
    claims: list[Judged]
    figures: list[DrawnFigure]
    counts: str
    made: str
    results: Results | None = None

    @property
    def id(self) -> str:
        """A name for links and files."""
        return f"{self.experiment.paper}-{self.experiment.name}-{self.scale}"

    @property
    def command(self) -> str:
        """What makes its runs."""
        own = f"python -m experiments.{self.experiment.id} --scale={self.scale}"
        command = self.experiment.command or own
        if len(self.seeds) != self.experiment.scales[self.scale].num_seeds:
            command += f" --seeds={len(self.seeds)}"
        return f"{command} --data_dir=DATA_DIR --output_dir=OUTPUT_DIR"


def section(experiment: Experiment, results: Results) -> Section:
    """Compares one scale's runs with the paper."""
    return Section(
        experiment,
        results.scale,
        results.seeds,
        [_fill(table, experiment, results) for table in experiment.tables_of(results.scale)],
        [
            Judged(claim.text, [_check(check, experiment, results) for check in claim.checks])
            for claim in experiment.claims_of(results.scale)
        ],
        [_draw(figure, results) for figure in experiment.figures],
        _counts(experiment, results),
        _made(results),
        results,
    )


def as_published(experiment: Experiment, scale: str, known: Mapping[str, Any]) -> Section:
    """Makes a section of what a page said of it before runs were kept: `results.published`."""
    entries = {tuple(entry[:3]): entry[3:] for entry in known["entries"]}

    def filled(table: Table) -> FilledTable:
        shown = {}
        for place in table.places:
            if found := entries.get((table.title, *place[:2])):
                *numbers, more = found
                shown[place[:2]] = _entry(place, table, experiment, Estimate(*numbers), more)
        return FilledTable(table, shown)

    def judged(check: Check, found: Sequence[Any]) -> JudgedCheck:
        estimate, (margin, verdict, p, more) = Estimate(*found[:4]), found[4:]
        wanted, least = check.form.text(check.margin), check.margin * check.form.factor
        if wanted != margin:  # The claim has changed since.
            verdict = statistics.verdict(estimate, least).value
        ours = with_interval(estimate, Form(check.form.digits)) + more
        of = (Verdict(verdict), estimate.mean - least, estimate.num_seeds)
        return JudgedCheck(check.name, ours, wanted, p, *of)

    return Section(
        experiment,
        scale,
        known["seeds"],
        [filled(table) for table in experiment.tables_of(scale)],
        [
            Judged(c.text, list(map(judged, c.checks, known["claims"][c.text])))
            for c in experiment.claims_of(scale)
            if c.text in known["claims"]
        ],
        [DrawnFigure(f.title, f.paper_shows, None) for f in experiment.figures],
        known["counts"],
        f"commit {known['commit']} (as published)",
    )


def with_interval(found: Estimate, form: Form) -> str:
    """Returns a mean with its interval as text."""
    text = form.text(found.mean)
    if found.low is None or found.high is None:
        return f"{text} (1 seed)"
    return f"{text} [{form.text(found.low)}, {form.text(found.high)}]"


def _fill(table: Table, experiment: Experiment, results: Results) -> FilledTable:
    entries = {}
    for place in table.places:
        if found := place.measure.values(results):
            estimate = statistics.estimate([value * place.form.factor for value in found])
            more = _of_seeds(estimate, place.measure, results)
            more += _chosen_by_test(place.measure, experiment, results.scale)
        else:
            estimate, more = None, _why_not(place.measure, results)
        entries[place[:2]] = _entry(place, table, experiment, estimate, more)
    return FilledTable(table, entries)


def _entry(
    place: Place, table: Table, experiment: Experiment, found: Estimate | None, more: str
) -> Entry:
    """An entry of a mean in the unit of the table and what is said of it; or why there is none."""
    unit = Form(place.form.digits)
    ours = more if found is None else with_interval(found, unit) + more
    papers = [p for p in experiment.printed if (p.row, p.column) == place[:2]]
    if not papers or not table.compare:
        return Entry(*place[:2], ours, "", "", "", found)
    (paper,) = papers
    text = unit.text(paper.value) + (f" ± {unit.text(paper.interval)}" if paper.interval else "")
    gap = "" if found is None else unit.text(found.mean - paper.value, sign=True)
    return Entry(*place[:2], ours, text, gap, paper.note, found)


def _of_seeds(found: Estimate, measure: Measure, results: Results) -> str:
    """Says how many seeds a number has, where these are not all."""
    planned = sum(
        all((cell, seed) in results.runs for cell in measure.cells) for seed in results.seeds
    )
    if found.num_seeds < planned:
        return f", {found.num_seeds} of {planned} seeds"
    return f" ({planned} seeds)" if 1 < planned < len(results.seeds) else ""


def _why_not(measure: Measure, results: Results) -> str:
    statuses = {run.status for (cell, _), run in results.runs.items() if cell in measure.cells}
    for status in (Status.FAILED, Status.MISSING_DATA, Status.UNFINISHED, Status.ABSENT):
        if status in statuses:
            return status.value.replace("_", " ")
    return "not determined" if statuses else NOT_HERE


def _chosen_by_test(measure: Measure, experiment: Experiment, scale: str) -> str:
    """What is said of a number for which test examples decided how long something was trained."""
    works = [c.work for c in experiment.scales[scale].cells if c.name in measure.cells]
    return ", chosen by test data" if any(work.uses_test_data for work in works) else ""


def _check(check: Check, experiment: Experiment, results: Results) -> JudgedCheck:
    found, form = check.measure.values(results), check.form
    margin = form.text(check.margin)
    if not found:
        why = _why_not(check.measure, results)
        return JudgedCheck(check.name, why, margin, "-", Verdict.UNDECIDED)
    estimate = statistics.estimate(found)
    p = statistics.paired_t_test(found, check.margin)
    return JudgedCheck(
        check.name,
        with_interval(estimate, form) + _chosen_by_test(check.measure, experiment, results.scale),
        margin,
        "-" if p is None else "< 0.001" if p < 0.001 else f"{p:.3f}",
        statistics.verdict(estimate, check.margin),
        (estimate.mean - check.margin) * form.factor,
        estimate.num_seeds,
    )


def _draw(figure: Figure, results: Results) -> DrawnFigure:
    drawing = figure.draw(results)
    if drawing is None:
        return DrawnFigure(figure.title, figure.paper_shows, None)
    import matplotlib as mpl

    buffer = io.BytesIO()
    # The same bytes for the same figure.
    with mpl.rc_context({"svg.hashsalt": figure.title}):
        drawing.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    svg = base64.b64encode(buffer.getvalue()).decode()
    return DrawnFigure(figure.title, figure.paper_shows, svg)


def _counts(experiment: Experiment, results: Results) -> str:
    counts = Counter(run.status for run in results.runs.values())
    parts = [f"{counts[s]} {s.value.replace('_', ' ')}" for s in Status if counts[s]]
    cells = {cell.name: cell for cell in experiment.scales[results.scale].cells}
    reasons = (runner.why_outdated(cells[name], run) for (name, _), run in results.runs.items())
    if outdated := sum(map(bool, reasons)):
        parts.append(f"{outdated} of them of earlier code")
    return ", ".join(parts)


def _made(results: Results) -> str:
    """Says where and with which commits the runs were made, and how long they took."""
    found = [run.record for run in results.runs.values() if run.status is Status.OK]
    commits = sorted({" = ".join(record.get("commits", ["unknown"])) for record in found})
    machines = sorted({record["hardware"] for record in found})
    hours = sum(record["seconds"] for record in found) / 3600
    return f"commit {', '.join(commits)}; {', '.join(machines)}; {hours:.1f} hours"
