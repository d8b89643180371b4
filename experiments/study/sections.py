"""A table or figure as it will be shown: the paper's numbers beside ours, all as text."""

import io
import math
from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

from experiments.study import runner, statistics
from experiments.study.experiment import Check, Experiment, Figure, Form, Place, Printed, Scale
from experiments.study.statistics import Estimate, Verdict
from experiments.study.store import FINISHED, Results, Status

NOT_HERE = "not at this scale"


class Number(NamedTuple):
    """A number of ours, in the unit of its table or check."""

    found: Estimate | None  # None while there is none.
    more: str  # What is said of it, or why there is none.
    p: str = "-"  # Of the paired t test of a check.
    lacks: bool = False  # Whether a run that it takes diverged, so that it is of the others alone.

    def text(self, digits: int) -> str:
        """Returns the mean, with its interval unless all seeds agree, and what is said of it."""
        if self.found is None:
            return self.more
        mean, low, high = (Form(digits).text(x) if x is not None else "" for x in self.found[:3])
        interval = f" [{low}, {high}]" if low else " (1 seed)"
        return mean + ("" if low == mean == high else interval) + self.more


class Entry(NamedTuple):
    """One place of a table."""

    row: str
    column: str
    ours: str  # Our mean with its interval, or why there is none.
    found: Estimate | None  # The same as numbers.
    paper: str = ""  # What the paper prints; empty for nothing.
    difference: str = ""  # Ours minus the paper's.
    marked: str = ""  # What is wrong with the paper's value.


class JudgedCheck(NamedTuple):
    """A check and our number."""

    check: Check
    number: Number

    @property
    def margin(self) -> float:
        """The margin, in the unit of our number."""
        return self.check.margin * self.check.form.factor

    @property
    def verdict(self) -> Verdict:
        """Whether the mean exceeds the margin, as far as its interval and all seeds can tell."""
        found = statistics.verdict(self.number.found, self.margin)
        unknown = self.number.lacks and found is Verdict.HOLDS
        return Verdict.UNDECIDED if unknown else found

    @property
    def texts(self) -> list[str]:
        """Its name, our mean with its interval, the margin, p and the verdict."""
        (name, _, margin, form), number = self.check, self.number
        return [name, number.text(form.digits), form.text(margin), number.p, self.verdict.value]


class Judged(NamedTuple):
    """A claim and what our runs say of it."""

    text: str
    checks: list[JudgedCheck]

    @property
    def verdict(self) -> Verdict:
        """That of all checks together."""
        weakest_first = (Verdict.CONTRADICTED, Verdict.UNDECIDED, Verdict.HOLDS)
        return min((check.verdict for check in self.checks), key=weakest_first.index)

    @property
    def deciding(self) -> JudgedCheck:
        """The weakest of the checks that decide the verdict."""

        def excess(check: JudgedCheck) -> float:
            found = check.number.found
            return math.inf if found is None else found.mean - check.margin

        having = [check for check in self.checks if check.verdict is self.verdict]
        return min(having or self.checks, key=excess)


class Section(NamedTuple):
    """All that a page shows of one scale of a table or figure."""

    experiment: Experiment
    results: Results
    tables: Mapping[str, list[Entry]]  # By title.
    claims: list[Judged]
    pictures: list[bytes | None]  # As SVG; None where nothing was run to draw.
    counts: str  # How many runs have which outcome.
    made: str  # With which commits, on what, and in how many hours the runs were made.

    @property
    def id(self) -> str:
        """A name for links and files."""
        return f"{self.experiment.paper}-{self.experiment.name}-{self.results.scale}"

    @property
    def scale(self) -> Scale:
        """What was run."""
        return self.experiment.scales[self.results.scale]

    @property
    def command(self) -> str:
        """What makes its runs."""
        of = f"{self.experiment.id} --scale={self.results.scale}"
        command = self.experiment.command or f"python -m experiments.reproduce {of}"
        if len(self.results.seeds) != self.scale.num_seeds:
            command += f" --seeds={len(self.results.seeds)}"
        return f"{command} --data_dir=DATA_DIR --output_dir=OUTPUT_DIR"


def section(experiment: Experiment, results: Results) -> Section:
    """Compares one scale's runs with the paper."""
    tables: dict[str, list[Entry]] = {}
    cells = {cell.name for cell in experiment.scales[results.scale].cells}
    for table in experiment.tables:
        if not any(cells & {*place.measure.cells} for place in table.places):
            continue
        printed = {(p.row, p.column): p for p in experiment.printed if table.compare}
        notes, entries = table.notes(results), tables.setdefault(table.title, [])
        for place in table.places:
            number = _number(place, experiment, results)
            number = number._replace(more=number.more + notes.get(place[:2], ""))
            paper = printed.get(place[:2])
            entries.append(_entry(place, number, paper, place.row in table.judged))
    claims = [
        Judged(
            claim.text,
            [JudgedCheck(check, _number(check, experiment, results)) for check in claim.checks],
        )
        for claim in experiment.claims_of(results.scale)
    ]
    return Section(
        experiment,
        results,
        tables,
        claims,
        pictures=[_draw(figure, results) for figure in experiment.figures],
        counts=_counts(experiment, results),
        made=_made(results),
    )


def _entry(place: Place, number: Number, paper: Printed | None, judged: bool) -> Entry:
    unit, found = Form(place.form.digits), number.found
    entry = Entry(place.row, place.column, number.text(unit.digits), found)
    if paper is None:
        return entry
    interval = f" ± {unit.text(paper.interval)}" if paper.interval else ""
    gap = "" if found is None else unit.text(found.mean - paper.value, sign=True)
    if judged and found is not None and found.high is not None:
        widened = found.high - found.mean + (paper.interval or 0.0)
        gap += ", agrees" if abs(found.mean - paper.value) <= widened else ", differs"
    text = unit.text(paper.value) + interval
    return entry._replace(paper=text, difference=gap, marked=paper.note)


def _number(one: Place | Check, experiment: Experiment, results: Results) -> Number:
    values = [value * one.form.factor for value in one.measure.values(results)]
    there = {r.status for (cell, _), r in results.runs.items() if cell in one.measure.cells}
    if not values:
        why = [status.value.replace("_", " ") for status in Status if status in there - {Status.OK}]
        return Number(None, [*why, "not determined" if there else NOT_HERE][0])
    found = statistics.estimate(values)
    cells = experiment.scales[results.scale].cells
    by_test = any(c.work.uses_test_data for c in cells if c.name in one.measure.cells)
    more = ", chosen by test data" if by_test else ""
    planned = sum(all((c, s) in results.runs for c in one.measure.cells) for s in results.seeds)
    if isinstance(one, Place):
        return Number(found, _of_seeds(found, planned, results) + more)
    lacks = found.num_seeds < planned  # Some diverged, say, in a function that ended well or not.
    more = (_of_seeds(found, planned, results) if lacks else "") + more
    p = statistics.paired_t_test(values, one.margin * one.form.factor)
    return Number(found, more, "-" if p is None else p_text(p), lacks)


def p_text(p: float) -> str:
    """Returns a p-value as text."""
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def _of_seeds(found: Estimate, planned: int, results: Results) -> str:
    """Says how many seeds a number has, where these are not all."""
    if found.num_seeds < planned:
        return f", {found.num_seeds} of {planned} seeds"
    return f" ({planned} seeds)" if 1 < planned < len(results.seeds) else ""


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
    found = [run.record for run in results.runs.values() if run.status in FINISHED]
    commits = sorted({" = ".join(record.get("commits", ["unknown"])) for record in found})
    machines = sorted({record["hardware"] for record in found})
    hours = sum(record["seconds"] for record in found) / 3600
    return f"commit {', '.join(commits)}; {', '.join(machines)}; {hours:.1f} hours"
