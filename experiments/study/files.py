"""A section as CSV, for machines, and as Markdown, for repositories."""

import itertools
import re
from collections.abc import Iterable, Sequence

from experiments.study.sections import NOT_HERE, Entry, Section
from tff_het.simulation import records

_CHECKS = ("check", "ours, with interval", "margin", "p (paired t test)", "verdict")
_SEEDS = re.compile(r" \(\d+ seeds?\)")
_COLUMNS = ("table", "row", "column", "paper", "ours", "low", "high", "seeds", "difference", "note")


def as_csv(section: Section) -> str:
    """Returns one line for each place of the tables, in the tables' units."""
    lines: list[Sequence[object]] = [_COLUMNS]
    for title, entries in section.tables.items():
        for entry in entries:
            # Why there is no number stands where the note does.
            numbers: tuple[object, ...] = ("", "", "", 0, "", entry.ours)
            if entry.found is not None:
                numbers = (*entry.found, entry.difference, entry.marked)
            lines.append([title, entry.row, entry.column, entry.paper, *numbers])
    return records.as_csv(lines)


def as_markdown(
    section: Section, heading: str = "", words: str | None = None, pictures: Sequence[str] = ()
) -> str:
    """Returns tables, figures and verdicts, below a heading and words.

    By default the title and the scale's note. `pictures` says where each figure stands, if it does.
    """
    experiment = section.experiment
    first, last = section.results.seeds[0], section.results.seeds[-1]
    seeds = f"Seed {first}" if last == first else f"Seeds {first} to {last}"
    parts = [
        f"## {heading or f'{experiment.title} ({section.results.scale})'}",
        section.scale.note if words is None else words,
        f"    {section.command}",
        f"{seeds}. Runs: {section.counts}.",
        *itertools.starmap(_filled, section.tables.items()),
        *_marked(itertools.chain(*section.tables.values())),
    ]
    for figure, picture in itertools.zip_longest(experiment.figures, pictures):
        theirs = figure.paper_shows and f" The paper's figure: {figure.paper_shows}"
        parts += [f"Figure: {figure.title}.{theirs}", picture and f"![{figure.title}]({picture})"]
    for claim in section.claims:
        parts.append(f"**{claim.verdict.value}**: {claim.text}")
        parts.append(as_table([_CHECKS, *(check.texts for check in claim.checks)]))
    return "\n\n".join(filter(None, parts)) + "\n"


def as_table(rows: Iterable[Sequence[str]]) -> str:
    """Returns a table in Markdown; the first row is its head."""
    head, *others = rows
    lines = [head, ["---"] * len(head), *others]
    escaped = ((text.replace("|", "\\|") for text in line) for line in lines)
    return "\n".join(f"| {' | '.join(line)} |" for line in escaped)


def _filled(title: str, entries: Sequence[Entry]) -> str:
    def names(axis: int) -> list[str]:
        # What a scale has no runs of has no column or row on its page.
        here = {place[axis] for place, entry in places.items() if entry.ours != NOT_HERE}
        return [name for name in dict.fromkeys(place[axis] for place in places) if name in here]

    def text(entry: Entry) -> str:
        paper = f"; paper {entry.paper}" if entry.paper else ""
        _, _, verdict = entry.difference.partition(", ")
        return entry.ours + paper + (f", {verdict}" if verdict else "") + "\\*" * bool(entry.marked)

    places = {(entry.row, entry.column): entry for entry in entries}
    texts = {place: text(entry) for place, entry in places.items()}
    rows, columns = names(0), names(1)
    shown = [[row, *(texts.get((row, column), "") for column in columns)] for row in rows]
    return f"### {title}\n\n{as_table([['', *columns], *map(_seeds_once, shown)])}"


def _seeds_once(row: list[str]) -> list[str]:
    """Moves the number of seeds that all places of a row share to its name."""
    name, *texts = row
    said = {found for text in texts if text for found in _SEEDS.findall(text) or [""]}
    of = said.pop() if len(said) == 1 else ""
    return [name + of, *(text.replace(of, "") if of else text for text in texts)]


def _marked(entries: Iterable[Entry]) -> list[str]:
    """Says which printed values contradict others."""
    places: dict[str, list[str]] = {}
    for entry in entries:
        if entry.marked:
            places.setdefault(entry.marked.rstrip("."), []).append(f"{entry.row}, {entry.column}")
    return [f"\\* {'; '.join(dict.fromkeys(of))}: {note}." for note, of in places.items()]
