"""The page: one HTML file that needs nothing else, in light and dark, on paper and phone."""

import itertools
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path

from experiments.study.sections import DrawnFigure, Entry, FilledGrid, Judged, Section

_STYLE = """
:root { color-scheme: light dark; --ink: #1b1f24; --soft: #57606a; --paper: #ffffff;
  --line: #d0d7de; --shade: #f3f5f7; --good: #1a6e35; --bad: #b3261e; --open: #7a5200;
  --link: #0b5cad; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e9ec; --soft: #a2abb4; --paper: #14181c;
  --line: #3a424a; --shade: #1e2429; --good: #6fd08c; --bad: #ff9a90; --open: #e9bf6a;
  --link: #7db7f0; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 68rem; padding: 1rem; background: var(--paper);
  color: var(--ink); font: 1rem/1.5 system-ui, sans-serif; overflow-wrap: anywhere; }
h1 { font-size: 1.6rem; line-height: 1.2; } h2 { font-size: 1.3rem; margin-top: 3rem;
  border-top: 1px solid var(--line); padding-top: 1rem; } h3 { font-size: 1.05rem; }
a { color: var(--link); }
.scroll { overflow-x: auto; margin: .5rem 0 1rem; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; overflow-wrap: normal; }
th, td { border: 1px solid var(--line); padding: .35rem .6rem; text-align: left;
  vertical-align: top; }
th { background: var(--shade); font-weight: 600; }
td.number { white-space: nowrap; }
th:first-child { min-width: 8rem; }
.soft { color: var(--soft); font-size: .875rem; }
.scale { border: 1px solid currentColor; border-radius: .3rem; padding: 0 .4rem;
  font-size: .875rem; font-weight: 400; color: var(--open); white-space: nowrap; }
.note { border-left: .25rem solid var(--open); background: var(--shade); padding: .5rem .8rem; }
.holds { color: var(--good); } .contradicted, .failed { color: var(--bad); }
.undecided { color: var(--open); } .verdict { font-weight: 600; white-space: nowrap; }
code, pre { font: .875rem/1.45 ui-monospace, monospace; }
pre { background: var(--shade); padding: .6rem .8rem; overflow-x: auto; }
figure { margin: 1rem 0; } figure img { max-width: 100%; height: auto; background: #fff; }
details > summary { cursor: pointer; }
"""


def page(sections: Sequence[Section]) -> str:
    """Returns the page.

    Everything but the element with the id `times` is the same whenever the results are.
    """
    parts = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        "<title>Reproduced tables and figures</title>",
        f"<style>{_STYLE}</style></head><body>",
        "<h1>Reproduced tables and figures</h1>",
        "<p>Each entry is our mean over seeds with its 95 % t interval. Below it stand the paper's "
        "value and the difference. Absolute numbers depend on data and hardware, so claims are "
        "checked on differences between our own runs, paired by seed. A claim <em>holds</em> where "
        "the interval lies above its margin, is <em>contradicted</em> where it lies below, and is "
        "<em>undecided</em> otherwise, or with one seed.</p>",
        _contents(sections),
        *(_paper(list(group)) for _, group in itertools.groupby(sections, _paper_of)),
        _times(sections),
        "</body></html>",
    ]
    return "\n".join(parts) + "\n"


def _contents(sections: Sequence[Section]) -> str:
    items = []
    for section in sections:
        title = f"{section.experiment.paper}: {section.experiment.title}"
        claims = "".join(
            f"<li>{_verdict(claim.verdict.value)}: {escape(claim.text)}</li>"
            for claim in section.claims
        )
        items.append(
            f'<li><a href="#{escape(section.id)}">{escape(title)}</a> '
            f'<span class="scale">{escape(section.scale)}</span> '
            f'<span class="soft">runs: {escape(section.counts)}</span><ul>{claims}</ul></li>'
        )
    return f"<ul>{''.join(items)}</ul>"


def _paper_of(section: Section) -> str:
    return section.experiment.paper


def _paper(sections: Sequence[Section]) -> str:
    """A paper's sections, after what was found with the published runs."""
    path = Path(__file__).parents[1] / _paper_of(sections[0]) / "findings.md"
    parts = [_section(section) for section in sections]
    if path.exists():
        text = path.read_text().split("\n\n")[0].removeprefix("**In short.** ")
        label = f"{_paper_of(sections[0])}, in short, at scale quick."
        parts.insert(0, f"<p><strong>{escape(label)}</strong> {escape(text)}</p>")
    return "\n".join(parts)


def _section(section: Section) -> str:
    experiment, scale = section.experiment, section.experiment.scales[section.scale]
    parts = [
        f'<section id="{escape(section.id)}"><h2>{escape(experiment.paper)}: '
        f'{escape(experiment.title)} <span class="scale">{escape(section.scale)}</span></h2>',
        f'<p class="note"><strong>Scale {escape(section.scale)}.</strong> {escape(scale.note)}</p>',
        f"<p><strong>The paper's settings.</strong> {escape(experiment.settings)}</p>",
        *(f"<p>{escape(note)}</p>" for note in experiment.notes),
        *(_grid(grid) for grid in section.grids),
        *(_figure(figure) for figure in section.figures),
        _claims(section.claims),
        _marked(section.grids),
        "<h3>How it was made</h3>",
        f"<p>Seeds {escape(', '.join(map(str, section.seeds)))}. Runs: {escape(section.counts)}. "
        f"{escape(section.versions)}.</p>",
        f"<pre>{escape(section.command)}</pre>",
        _cells(section),
        "</section>",
    ]
    return "\n".join(part for part in parts if part)


def _grid(filled: FilledGrid) -> str:
    columns = filled.grid.columns
    rows = [
        [f"<th>{escape(row)}</th>", *(_entry(filled.entries.get((row, c))) for c in columns)]
        for row in filled.grid.rows
    ]
    title = f"<h3>{escape(filled.grid.title)}</h3>"
    return title + _table(["", *columns], rows, number=True)


def _entry(entry: Entry | None) -> str:
    if entry is None:
        return ""
    kind = "" if entry.found else ' class="failed"'
    text = f"<span{kind}>{escape(entry.ours)}</span>"
    if entry.paper:
        mark = " *" if entry.marked else ""
        gap = f"<br>difference {escape(entry.difference)}" if entry.difference else ""
        text += f'<br><span class="soft">paper {escape(entry.paper)}{mark}{gap}</span>'
    return text


def _claims(claims: Sequence[Judged]) -> str:
    if not claims:
        return ""
    parts = ["<h3>Claims</h3>"]
    for claim in claims:
        parts.append(f"<p>{_verdict(claim.verdict.value)}: {escape(claim.text)}</p>")
        rows = [[*map(escape, row[:-1]), _verdict(row[-1])] for row in claim.rows]
        head = ["Check", "Ours, with interval", "Margin", "p (paired t test)", "Verdict"]
        parts.append(_table(head, rows))
    return "\n".join(parts)


def _marked(grids: Sequence[FilledGrid]) -> str:
    notes = {
        f"{entry.row}, {entry.column}: {entry.marked}": None
        for filled in grids
        for entry in filled.entries.values()
        if entry.marked
    }
    if not notes:
        return ""
    items = "".join(f"<li>{escape(note)}</li>" for note in notes)
    return f"<p>* Printed values that contradict others, or the arithmetic:</p><ul>{items}</ul>"


def _figure(figure: DrawnFigure) -> str:
    if figure.svg is None:
        picture = "<p>Nothing has been run to draw.</p>"
    else:
        source = f"data:image/svg+xml;base64,{figure.svg}"
        picture = f'<img src="{source}" alt="{escape(figure.title)}">'
    words = f"<strong>The paper's figure:</strong> {escape(figure.paper_shows)}"
    return (
        f"<h3>{escape(figure.title)}</h3><figure>{picture}<figcaption>{words}</figcaption></figure>"
    )


def _cells(section: Section) -> str:
    rows = []
    for cell in section.cells:
        errors = "".join(f'<br><span class="failed">{escape(e)}</span>' for e in cell.errors)
        rows.append(
            [
                escape(cell.name),
                f"{escape(cell.outcomes)}{errors}",
                escape(cell.data),
                f"<code>{escape(cell.work)}</code>",
            ]
        )
    table = _table(["Cell", "By seed", "Data (fingerprint)", "Flags"], rows)
    return f"<details><summary>Cells: {len(rows)}</summary>{table}</details>"


def _times(sections: Sequence[Section]) -> str:
    rows = [
        [escape(f"{s.experiment.id}, {s.scale}"), *map(escape, (t.run, t.seconds, t.hardware))]
        for s in sections
        for t in s.times
    ]
    table = _table(["Table or figure", "Run", "Seconds", "Hardware"], rows)
    return (
        '<section id="times"><h2>Run times</h2>'
        f"<details><summary>{len(rows)} runs</summary>{table}</details></section><!-- times -->"
    )


def _verdict(verdict: str) -> str:
    return f'<span class="verdict {escape(verdict)}">{escape(verdict)}</span>'


def _table(head: Sequence[str], rows: Iterable[Sequence[str]], *, number: bool = False) -> str:
    """A table that scrolls in a box of its own; the entries are HTML, the head is text."""
    kind = ' class="number"' if number else ""
    lines = ["<tr>" + "".join(f"<th>{escape(name)}</th>" for name in head) + "</tr>"]
    for row in rows:
        cells = (c if c.startswith("<th>") else f"<td{kind}>{c}</td>" for c in row)
        lines.append(f"<tr>{''.join(cells)}</tr>")
    return f'<div class="scroll" tabindex="0"><table>{"".join(lines)}</table></div>'
