"""The page: one HTML file that needs nothing else, in light and dark, on paper and phone."""

import base64
import itertools
import re
from collections.abc import Sequence
from html import escape
from pathlib import Path

from markdown import markdown

from experiments.study import files, identity, pages
from experiments.study.sections import Section

_STYLE = Path(__file__).with_name("page.css")
_INTRODUCTION = """# Tables and figures of runs

Each entry is our mean over seeds with its 95 % t interval; then what a paper prints. Absolute
numbers depend on data and hardware, so claims are checked on differences between our own runs,
paired by seed. A claim *holds* where the interval lies above its margin, is *contradicted* where it
lies below, and is *undecided* otherwise, or with one seed.
"""


def page(sections: Sequence[Section]) -> str:
    """Returns the page, which is the same whenever the results are."""
    contents = []
    for one in sections:
        contents.append(f"- [{_title(one)}](#{one.id}), runs: {one.counts}")
        contents += [f"    - **{c.verdict.value}**: {c.text}" for c in one.claims]
    parts = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        "<title>Tables and figures of runs</title>",
        f"<style>\n{_STYLE.read_text()}</style></head><body>",
        _html("\n".join([_INTRODUCTION, *contents])),
    ]
    for paper, of_paper in itertools.groupby(sections, lambda one: one.experiment.paper):
        if found := pages.findings(paper):
            parts.append(_html(f"**{paper}: the project's runs in short.** {found.in_short}"))
        words = found.sections if found else {}
        parts += (_section(one, words.get(one.experiment.name, ("", ""))[1]) for one in of_paper)
    return "\n".join([*parts, "</body></html>"]) + "\n"


def _title(section: Section) -> str:
    return f"{section.experiment.paper}: {section.experiment.title} ({section.results.scale})"


def _section(section: Section, words: str) -> str:
    pictures = [
        f"data:image/svg+xml;base64,{base64.b64encode(svg).decode()}" if svg else "nothing"
        for svg in section.pictures
    ]
    text = files.as_markdown(section, _title(section), f"{section.scale.note}\n\n{words}", pictures)
    text = re.sub(r'<img [^>]*src="nothing"[^>]*>', "Nothing has been run to draw.", _html(text))
    return f'<section id="{section.id}">{text}{_cells(section)}</section>'


def _cells(section: Section) -> str:
    rows: list[Sequence[str]] = [("cell", "by seed", "data (fingerprint)", "settings")]
    versions: set[str] = set()
    results = section.results
    for cell in section.scale.cells:
        runs = {seed: results.runs[cell.name, seed] for seed in cell.seeds(results.seeds)}
        outcomes = ", ".join(f"{seed}: {run.status.value}" for seed, run in runs.items())
        errors = dict.fromkeys(run.error for run in runs.values() if run.error)
        records = [run.record for run in runs.values()]
        data = {f"{k} ({v[:12]})" for r in records for k, v in r.get("data", {}).items()}
        versions |= {f"{k} {v}" for r in records for k, v in r.get("versions", {}).items()}
        work = f"`{identity.shown(cell.work)}`"
        rows.append((cell.name, " ".join([outcomes, *errors]), ", ".join(sorted(data)), work))
    about, table = escape(", ".join(sorted(versions))), _html(files.as_table(rows))
    summary = f"<summary>Cells: {len(rows) - 1}</summary>"
    return f"<p>{about}</p><details>{summary}{table}</details>"


def _html(text: str) -> str:
    """HTML of Markdown; tables scroll in boxes of their own, and verdicts have colours."""
    # What stands in angle brackets is text.
    found = markdown(text.replace("<", "&lt;"), extensions=["tables"], output_format="html")
    found = found.replace("<table>", '<div class="scroll" tabindex="0"><table>')
    found = found.replace("</table>", "</table></div>")
    return re.sub(
        r"<(td|strong)>(holds|contradicted|undecided|failed)</\1>",
        r'<\1 class="verdict \2">\2</\1>',
        found,
    )
