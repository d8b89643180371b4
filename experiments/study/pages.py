"""Pages from kept results: the README of each paper, and the rows of the project's own.

What people write stands in the paper's `findings.md`: in short, settings, what each section shows,
and where we differ and why.
"""

import importlib
import itertools
import re
import string
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import experiments
from experiments.study import files, papers, results, sections, statistics
from experiments.study.experiment import Experiment
from experiments.study.sections import Judged, Section
from experiments.study.statistics import Verdict

ROOT = Path(__file__).parents[2]
# The scale that pages show, and the one that they prefer where its runs are complete.
_SCALES = ("paper", "quick")
# Verdict -> how one claim, and how several, are said to have it.
_WORDS = {
    Verdict.HOLDS: ("holds", "hold"),
    Verdict.CONTRADICTED: ("is contradicted", "are contradicted"),
    Verdict.UNDECIDED: ("is undecided", "are undecided"),
}
_SECTIONS, _SETTINGS, _DIFFERENCES = "Sections", "Settings", "Where we differ and why"
_OWN, _NEW = "Our own check", "Not in the paper"
_MARKS = ("<!-- verdicts -->", "<!-- /verdicts -->")
_CHECKS = (
    "`docs/reproducing.md` says how to read this page. Checks of accuracies are in percentage "
    "points. Our own checks are not counted above."
)
_HEAD = ("claim", "verdict", "ours, with 95 % interval", "claimed", "seeds")


class Findings(NamedTuple):
    """What people wrote about a paper's results."""

    in_short: str  # The first paragraph, without its label.
    beginning: str  # All that stands before the sections.
    # Module -> what its section shows, and what a reader has to know; in order.
    sections: Mapping[str, tuple[str, str]]
    settings: str
    differences: str


def findings(paper: str) -> Findings | None:
    """Reads a paper's `findings.md`; None where there is none."""
    path = Path(experiments.__path__[0]) / paper / "findings.md"
    if not path.exists():
        return None
    first, *rest = re.split(r"^## ", path.read_text(), flags=re.M)
    parts = {name: text for name, _, text in (part.partition("\n") for part in rest)}
    _, *found = re.split(r"^### `(\w+)`: (.*)$", parts.pop(_SECTIONS, ""), flags=re.M)
    shown = zip(found[0::3], found[1::3], found[2::3], strict=True)
    settings, differences = parts.pop(_SETTINGS, ""), parts.pop(_DIFFERENCES, "")
    more = [f"## {name}\n{text}" for name, text in parts.items()]
    return Findings(
        in_short=first.split("\n\n")[0].removeprefix("**In short.** ").replace("\n", " "),
        beginning="".join([first, *more]).strip(),
        sections={name: (heading, words.strip()) for name, heading, words in shown},
        settings=settings.strip(),
        differences=differences.strip(),
    )


def section(experiment: Experiment) -> Section | None:
    """Makes the section of a table or figure, of the first scale with all of its runs, if any."""
    for scale in (scale for scale in _SCALES if scale in experiment.scales):
        found = results.read(experiment, scale)
        if found is not None and results.is_complete(found):
            return sections.section(experiment, found)
    return None


def all_pages() -> dict[Path, bytes]:
    """Returns the pages and pictures that kept results give, by path."""
    found: dict[Path, bytes] = {}
    rows = [["paper", "does it reproduce?", "claims"]]
    for paper, names in papers.modules().items():
        known = findings(paper)
        if known is None:
            continue
        package = importlib.import_module(f"experiments.{paper}")
        folder = Path(str(package.__file__)).parent
        shown: dict[str, tuple[Section, list[str]]] = {}
        order = [*known.sections, *names]
        for name in sorted(names, key=order.index):
            made = section(importlib.import_module(f"experiments.{paper}.{name}").EXPERIMENT)
            if made is not None:
                drawn = {
                    folder / f"{name}{letter if len(made.pictures) > 1 else ''}.svg": svg
                    for letter, svg in zip(string.ascii_lowercase, made.pictures, strict=False)
                }
                found |= {path: svg for path, svg in drawn.items() if svg is not None}
                there = [p.name if svg else "" for p, svg in drawn.items()]
                shown[name] = made, there
        claims = [(_title(s, claim), claim) for s, _ in shown.values() for claim in s.claims]
        parts = [f"# {package.TITLE}"]
        if claims:
            answer = _answer(Counter(c.verdict for of, c in claims if not of.startswith(_OWN)))
            claims.sort(key=lambda pair: pair[0].startswith(_OWN))  # The paper's come first.
            parts += [
                f"**Does it reproduce?** {': '.join(answer)}.",
                files.as_table([_HEAD, *itertools.starmap(_row, claims)]),
                _CHECKS,
            ]
            rows.append([f"[{package.TITLE}](experiments/{paper}/README.md)", *answer])
        page = "\n\n".join([*parts, *_parts(known, shown)])
        found[folder / "README.md"] = f"{page}\n".encode()
    readme = ROOT / "README.md"
    before, _, rest = readme.read_text().partition(_MARKS[0])
    _, _, after = rest.partition(_MARKS[1])
    table = files.as_table(rows)
    found[readme] = f"{before}{_MARKS[0]}\n{table}\n{_MARKS[1]}{after}".encode()
    return found


def _parts(known: Findings, shown: Mapping[str, tuple[Section, Sequence[str]]]) -> Iterator[str]:
    """Gives what stands below the verdicts, if there are any."""
    yield known.beginning
    notes: dict[str, list[str]] = {}
    for made, _ in shown.values():
        notes.setdefault(made.scale.note, []).append(made.experiment.label)
    for name, (made, pictures) in shown.items():
        heading, words = known.sections.get(name, ("", ""))
        heading = f"{made.experiment.label}: {heading}" if heading else ""
        note = made.scale.note
        own = note if len(notes[note]) == 1 else ""  # Shared ones stand with the settings.
        words = "\n\n".join(filter(None, [own, words, f"Made with {made.made}."]))
        yield files.as_markdown(made, heading, words, pictures).strip()
    shared = [f"{', '.join(of)}: {note}" for note, of in notes.items() if len(of) > 1]
    runs = _runs(made for made, _ in shown.values())
    yield "\n\n".join(filter(None, [f"## {_SETTINGS}", *shared, runs, known.settings])).strip()
    yield f"## {_DIFFERENCES}\n\n{known.differences}"


def _runs(shown: Iterable[Section]) -> str:
    """Says what all runs of a page took; sections share runs."""
    of_all = [run.record for made in shown for run in made.results.runs.values()]
    hours = {(record["run"], record["seed"]): record["seconds"] / 3600 for record in of_all}
    if not hours:
        return ""
    return (
        f"The {len(hours):,} runs sum to {sum(hours.values()):.1f} hours, two at the same time; "
        "sections share runs. A + marks uncommitted changes; = joins commits with which a repeated "
        "sample gave equal numbers, to 12 digits. Later commits have what a clone lacks."
    )


def _title(made: Section, claim: Judged) -> str:
    label = _OWN if made.experiment.label == _NEW else made.experiment.label
    ours = label != _OWN and claim.text.startswith("Ours")
    return f"{_OWN}, {label}" if ours else label


def _row(title: str, claim: Judged) -> list[str]:
    text = re.sub(r"^Ours[^:(]*:? ?", "", claim.text)
    name, ours, margin, *_ = claim.deciding.texts
    found, many = claim.deciding.number.found, len(claim.checks)
    weakest = f"{name}: {ours}" + (f" (weakest of {many})" if many > 1 else "")
    seeds = str(found.num_seeds if found else 0)
    if claim.verdict is Verdict.UNDECIDED and found and found.high is not None:
        open_ = [c for c in claim.checks if c.verdict is Verdict.UNDECIDED]
        # One check below its margin contradicts a claim; for it to hold, all must lie above.
        below = [c for c in open_ if c.number.found and c.number.found.mean < c.margin]
        of, first = (below, min) if below else (open_, max)
        needed = first(statistics.seeds_to_decide(c.number.found, c.margin) or 100_000 for c in of)
        enough = f"{'about' if needed < 100_000 else 'over'} {needed:,} would decide"
        seeds += f"; {'a run diverged' if any(c.number.lacks for c in open_) else enough}"
    return [f"{title}: {text}", claim.verdict.value, weakest, f"> {margin}", seeds]


def _answer(counts: Counter[Verdict]) -> tuple[str, str]:
    """Whether a paper reproduces, and its claims, as '8 claims hold, 4 are contradicted'."""
    share = counts[Verdict.HOLDS] / max(counts.total(), 1)
    parts = [f"{counts[v]} {words[counts[v] > 1]}" for v, words in _WORDS.items() if counts[v]]
    noun = " claim " if parts and parts[0].startswith("1 ") else " claims "
    short = "Yes" if share == 1 else "Mostly" if share > 0.5 else "In part"
    return short, ", ".join(parts).replace(" ", noun, 1)
