"""A section as CSV, for machines, and as Markdown, for repositories."""

import csv
import io
import itertools
from collections.abc import Iterable, Sequence

from experiments.study.sections import (
    CHECK_HEAD,
    NOT_HERE,
    DrawnFigure,
    Entry,
    FilledTable,
    Section,
)

_COLUMNS = ("table", "row", "column", "paper", "ours", "low", "high", "seeds", "difference", "note")


def as_csv(section: Section) -> str:
    """Returns one line for each place of the tables, in the tables' units."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(_COLUMNS)
    for filled in section.tables:
        for entry in filled.entries.values():
            # Why there is no number stands where the note does.
            numbers: tuple[object, ...] = ("", "", "", 0, "", entry.ours)
            if entry.found is not None:
                numbers = (*entry.found, entry.difference, entry.marked)
            place = (filled.table.title, entry.row, entry.column, entry.paper)
            writer.writerow([*place, *numbers])
    return buffer.getvalue()


def as_markdown(
    section: Section, heading: str = "", words: str | None = None, pictures: Sequence[str] = ()
) -> str:
    """Returns tables, verdicts and the figures' files under a heading, by default the title."""
    experiment = section.experiment
    shown = itertools.zip_longest(section.figures, pictures)
    first, last = section.seeds[0], section.seeds[-1]
    seeds = f"Seeds {first} to {last}" if len(section.seeds) > 1 else f"Seed {first}"
    parts = [
        f"## {heading or f'{experiment.title} ({section.scale})'}",
        experiment.scales[section.scale].note if words is None else words,
        f"    {section.command}",
        f"{seeds}. Runs: {section.counts}.",
        *(_filled(filled) for filled in section.tables),
        *_marked(section.tables),
        *(_figure(figure, picture) for figure, picture in shown),
    ]
    for claim in section.claims:
        parts.append(f"**{claim.verdict.value}**: {claim.text}")
        parts.append(as_table([CHECK_HEAD, *(check.row for check in claim.checks)]))
    return "\n\n".join(filter(None, parts)) + "\n"


def as_table(rows: Iterable[Sequence[str]]) -> str:
    """Returns a table in Markdown; the first row is its head."""
    head, *others = rows
    lines = [head, ["---"] * len(head), *others]
    escaped = ((text.replace("|", "\\|") for text in line) for line in lines)
    return "\n".join(f"| {' | '.join(line)} |" for line in escaped)


def _filled(filled: FilledTable) -> str:
    # What a scale has no runs of has no column or row on its page.
    having = [e for e in filled.entries.values() if e.found or e.ours != NOT_HERE]
    columns = [c for c in filled.table.columns if any(e.column == c for e in having)]
    rows = [
        [row, *(_entry(filled.entries.get((row, column))) for column in columns)]
        for row in filled.table.rows
        if any(e.row == row for e in having)
    ]
    return f"### {filled.table.title}\n\n{as_table([['', *columns], *rows])}"


def _entry(entry: Entry | None) -> str:
    if entry is None:
        return ""
    mark = "\\*" if entry.marked else ""
    return f"{entry.ours}; paper {entry.paper}{mark}" if entry.paper else entry.ours


def _marked(tables: Iterable[FilledTable]) -> list[str]:
    """Says which printed values contradict others."""
    entries = [
        entry
        for filled in tables
        for entry in filled.entries.values()
        if entry.marked and entry.paper
    ]
    places: dict[str, list[str]] = {}
    for entry in entries:
        places.setdefault(entry.marked.rstrip("."), []).append(f"{entry.row}, {entry.column}")
    return [f"\\* {'; '.join(dict.fromkeys(of))}: {note}." for note, of in places.items()]


def _figure(figure: DrawnFigure, picture: str | None) -> str:
    words = f"Figure: {figure.title}. The paper's figure: {figure.paper_shows}"
    return f"{words}\n\n![{figure.title}]({picture})" if picture else words
