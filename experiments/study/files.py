"""A section as CSV, for machines, and as Markdown, for repositories."""

import csv
import io
from collections.abc import Iterable, Sequence

from experiments.study.sections import Entry, FilledGrid, Section

_COLUMNS = ("table", "row", "column", "paper", "ours", "low", "high", "seeds", "difference", "note")


def as_csv(section: Section) -> str:
    """Returns one line for each place of the tables, in the tables' units."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(_COLUMNS)
    for filled in section.grids:
        for entry in filled.entries.values():
            writer.writerow([filled.grid.title, *_line(entry)])
    return buffer.getvalue()


def _line(entry: Entry) -> list[object]:
    place = [entry.row, entry.column, entry.paper]
    if entry.found is None:  # Why there is no number stands where the note does.
        return [*place, "", "", "", 0, "", entry.ours]
    return [*place, *entry.found, entry.difference, entry.marked]


def as_markdown(section: Section) -> str:
    """Returns tables and verdicts."""
    experiment = section.experiment
    parts = [
        f"# {experiment.paper}: {experiment.title} ({section.scale})",
        experiment.scales[section.scale].note,
        *experiment.notes,
        f"    {section.command}",
        f"Seeds {', '.join(map(str, section.seeds))}. Runs: {section.counts}.",
        *(_grid(filled) for filled in section.grids),
        *(f"Figure: {f.title}. The paper's figure: {f.paper_shows}" for f in section.figures),
    ]
    for claim in section.claims:
        parts.append(f"**{claim.verdict.value}**: {claim.text}")
        head = ("check", "ours, with interval", "margin", "p (paired t test)", "verdict")
        parts.append(_table(head, claim.rows))
    return "\n\n".join(parts) + "\n"


def _grid(filled: FilledGrid) -> str:
    columns = filled.grid.columns
    rows = [
        [row, *(_entry(filled.entries.get((row, column))) for column in columns)]
        for row in filled.grid.rows
    ]
    return f"## {filled.grid.title}\n\n{_table(['', *columns], rows)}"


def _entry(entry: Entry | None) -> str:
    if entry is None:
        return ""
    return f"{entry.ours}; paper {entry.paper}" if entry.paper else entry.ours


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    escaped = ((text.replace("|", "\\|") for text in line) for line in lines)
    return "\n".join(f"| {' | '.join(line)} |" for line in escaped)
