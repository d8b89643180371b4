"""A table or figure as it will be shown: the paper's numbers beside ours, all as text."""

import io
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from experiments.study import runner, statistics
from experiments.study.experiment import Check, Experiment, Figure, Form, Place, Table
from experiments.study.measures import Measure
from experiments.study.statistics import Estimate, Verdict
from experiments.study.store import Results, Status

NOT_HERE = "not at this scale"


class Number(NamedTuple):
    """A number of ours, in the unit of its table or check."""

    found: Estimate | None  # None while there is none.
    more: str  # What is said of it, or why there is none.
    p: str = "-"  # Of the paired t test of a check.

    def text(self, digits: int) -> str:
        """Returns the mean with its interval, and what is said of it."""
        if self.found is None:
            return self.more
        mean, low, high = (Form(digits).text(x) if x is not None else "" for x in self.found[:3])
        return f"{mean} {f'[{low}, {high}]' if low else '(1 seed)'}{self.more}"


class Entry(NamedTuple):
    """One place of a table."""

    row: str
    column: str
    ours: str  # Our mean with its interval, or why there is none.
    found: Estimate | None  # The same as numbers.
    paper: str = ""  # What the paper prints; empty for nothing.
    difference: str = ""  # Ours minus the paper's.
    marked: str = ""  # What is wrong with the paper's value.


class FilledTable(NamedTuple):
    """A table with its entries by (row, column)."""

    title: str
    entries: dict[tuple[str, str], Entry]


class JudgedCheck(NamedTuple):
    """A check and our number."""

    check: Check
    number: Number

    @property
    def verdict(self) -> Verdict:
        """Whether the mean exceeds the margin, as far as its interval can tell."""
        return statistics.verdict(self.number.found, self.check.margin * self.check.form.factor)

    @property
    def excess(self) -> float:
        """By how much the mean exceeds the margin; infinite without a mean."""
        found, check = self.number.found, self.check
        return math.inf if found is None else found.mean - check.margin * check.form.factor

    @property
    def texts(self) -> list[str]:
        """Its name, our mean with its interval, the margin, p and the verdict."""
        (name, _, margin, form), number = self.check, self.number
        ours, verdict = number.text(form.digits), self.verdict.value
        return [name, ours, form.text(margin), number.p, verdict]


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


class Section(NamedTuple):
    """All that a page shows of one scale of a table or figure."""

    experiment: Experiment
    scale: str
    seeds: Sequence[int]  # Those asked for.
    tables: list[FilledTable]
    claims: list[Judged]
    pictures: list[bytes | None]  # As SVG; None where nothing was run to draw.
    counts: str  # How many runs have which outcome.
    made: str  # With which commits, on what, and in how many hours the runs were made.
    results: Results | None = None  # None if they were not kept.

    @property
    def id(self) -> str:
        """A name for links and files."""
        return f"{self.experiment.paper}-{self.experiment.name}-{self.scale}"

    @property
    def note(self) -> str:
        """What differs from the paper's settings."""
        return self.experiment.scales[self.scale].note

    @property
    def command(self) -> str:
        """What makes its runs."""
        own = f"python -m experiments.reproduce {self.experiment.id} --scale={self.scale}"
        command = self.experiment.command or own
        if len(self.seeds) != self.experiment.scales[self.scale].num_seeds:
            command += f" --seeds={len(self.seeds)}"
        return f"{command} --data_dir=DATA_DIR --output_dir=OUTPUT_DIR"


def section(experiment: Experiment, results: Results) -> Section:
    """Compares one scale's runs with the paper."""

    def numbers(of: Iterable[Place | Check]) -> list[Number]:
        return [_number(one, experiment, results) for one in of]

    return Section(
        experiment,
        results.scale,
        results.seeds,
        [_filled(t, numbers(t.places), experiment) for t in experiment.tables_of(results.scale)],
        [
            Judged(c.text, list(map(JudgedCheck, c.checks, numbers(c.checks))))
            for c in experiment.claims_of(results.scale)
        ],
        [_draw(figure, results) for figure in experiment.figures],
        _counts(experiment, results),
        _made(results),
        results,
    )


def as_published(experiment: Experiment, scale: str, known: Mapping[str, Any]) -> Section:
    """Makes a section of what a page said of it before runs were kept: `results.published`."""
    entries = {tuple(one[:3]): Number(Estimate(*one[3:7]), one[7]) for one in known["entries"]}
    claims = {
        text: [Number(Estimate(*one[:4]), more, p) for *one, p, more in checks]
        for text, checks in known["claims"].items()
    }
    tables = experiment.tables_of(scale)
    return Section(
        experiment,
        scale,
        known["seeds"],
        [
            _filled(t, [entries.get((t.title, *p[:2])) for p in t.places], experiment)
            for t in tables
        ],
        [
            Judged(c.text, list(map(JudgedCheck, c.checks, claims[c.text])))
            for c in experiment.claims_of(scale)
            if c.text in claims
        ],
        [None for _ in experiment.figures],
        known["counts"],
        f"commit {known['commit']} (as published)",
    )


def _filled(table: Table, numbers: Iterable[Number | None], experiment: Experiment) -> FilledTable:
    printed = {(p.row, p.column): p for p in experiment.printed if table.compare}
    entries = {}
    for place, number in zip(table.places, numbers, strict=True):
        if number is None:
            continue
        unit, found = Form(place.form.digits), number.found
        entry = Entry(*place[:2], number.text(unit.digits), found)
        if paper := printed.get(place[:2]):
            interval = f" ± {unit.text(paper.interval)}" if paper.interval else ""
            gap = "" if found is None else unit.text(found.mean - paper.value, sign=True)
            text = unit.text(paper.value) + interval
            entry = entry._replace(paper=text, difference=gap, marked=paper.note)
        entries[place[:2]] = entry
    return FilledTable(table.title, entries)


def _number(one: Place | Check, experiment: Experiment, results: Results) -> Number:
    values = [value * one.form.factor for value in one.measure.values(results)]
    if not values:
        return Number(None, _why_not(one.measure, results))
    found = statistics.estimate(values)
    cells = experiment.scales[results.scale].cells
    by_test = any(c.work.uses_test_data for c in cells if c.name in one.measure.cells)
    more = ", chosen by test data" if by_test else ""
    if isinstance(one, Place):
        return Number(found, _of_seeds(found, one.measure, results) + more)
    p = statistics.paired_t_test(values, one.margin * one.form.factor)
    return Number(found, more, "-" if p is None else "< 0.001" if p < 0.001 else f"{p:.3f}")


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


def _draw(figure: Figure, results: Results) -> bytes | None:
    drawing = figure.draw(results)
    if drawing is None:
        return None
    import matplotlib as mpl

    buffer = io.BytesIO()
    # The same bytes for the same figure.
    with mpl.rc_context({"svg.hashsalt": figure.title}):
        drawing.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    return buffer.getvalue()


def _counts(experiment: Experiment, results: Results) -> str:
    counts = Counter(run.status for run in results.runs.values())
    parts = [f"{counts[s]} {s.value.replace('_', ' ')}" for s in Status if counts[s]]
    if earlier := len(runner.outdated(experiment, results)):
        parts.append(f"{earlier} of them of earlier code")
    return ", ".join(parts)


def _made(results: Results) -> str:
    """Says where and with which commits the runs were made, and how long they took."""
    found = [run.record for run in results.runs.values() if run.status is Status.OK]
    commits = sorted({" = ".join(record.get("commits", ["unknown"])) for record in found})
    machines = sorted({record["hardware"] for record in found})
    hours = sum(record["seconds"] for record in found) / 3600
    return f"commit {', '.join(commits)}; {', '.join(machines)}; {hours:.1f} hours"
