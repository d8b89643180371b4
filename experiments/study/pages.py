"""Pages from kept results: the README of each paper, and the rows of the project's own.

What people write stands in the paper's `findings.md`: in short, settings, what each section shows,
and where we differ and why.
"""

import base64
import importlib
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import experiments
from experiments.study import files, papers, results, sections
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
_PUBLISHED = (
    'Sections made "as published" show what this page said before runs were kept; '
    "`experiments/results/` has the runs of all others."
)
_UNITS = "Checks of accuracies are in percentage points. Our own checks are not counted above."
_HEAD = ("claim", "verdict", "ours, with 95 % interval", "claimed", "seeds")


class Findings(NamedTuple):
    """What people wrote about a paper's results.

    Attributes:
      in_short: The first paragraph, without its label.
      beginning: All that stands before the sections.
      sections: Module -> what its section shows, and what a reader has to know; in order.
    """

    in_short: str
    beginning: str
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
    found = re.split(r"^### `(\w+)`: (.*)$", parts.pop(_SECTIONS, ""), flags=re.M)[1:]
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
    """Makes the section of a table or figure: of kept runs, else of what was published."""
    for scale in _SCALES:
        if scale in experiment.scales:
            found = results.read(experiment, scale)
            if found is not None and results.is_complete(found):
                return sections.section(experiment, found)
    for scale in _SCALES:
        known = results.published().get(f"{experiment.id}-{scale}")
        if known is not None:
            return sections.as_published(experiment, scale, known)
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
        shown: dict[str, Section] = {}
        pictures: dict[str, list[str]] = {}
        order = [*known.sections, *names]
        for name in sorted(names, key=order.index):
            made = section(importlib.import_module(f"experiments.{paper}.{name}").EXPERIMENT)
            if made is None:
                continue
            shown[name], pictures[name] = made, []
            for place, figure in enumerate(made.figures):
                letter = chr(ord("a") + place) if len(made.figures) > 1 else ""
                path = folder / f"{name}{letter}.svg"
                if figure.svg is not None:
                    found[path] = base64.b64decode(figure.svg)
                if figure.svg is not None or path.exists():
                    pictures[name].append(path.name)
        claims = [(s.experiment.label, claim) for s in shown.values() for claim in s.claims]
        found[folder / "README.md"] = _page(package.TITLE, known, shown, pictures, claims).encode()
        link = f"[{package.TITLE}](experiments/{paper}/README.md)"
        rows.append([link, _answer(claims), _summary(claims)])
    readme = ROOT / "README.md"
    before, _, rest = readme.read_text().partition(_MARKS[0])
    _, _, after = rest.partition(_MARKS[1])
    table = files.as_table(rows)
    found[readme] = f"{before}{_MARKS[0]}\n{table}\n{_MARKS[1]}{after}".encode()
    return found


def _page(
    title: str,
    known: Findings,
    shown: Mapping[str, Section],
    pictures: Mapping[str, Sequence[str]],
    claims: Sequence[tuple[str, Judged]],
) -> str:
    # The paper's claims first.
    rows = sorted((_row(*one) for one in claims), key=lambda row: row[0].startswith(_OWN))
    parts = [
        f"# {title}",
        f"**Does it reproduce?** {_answer(claims)}: {_summary(claims)}.",
        files.as_table([_HEAD, *rows]),
        _UNITS,
        known.beginning,
    ]
    notes = Counter(made.experiment.scales[made.scale].note for made in shown.values())
    if any(made.results is None for made in shown.values()):
        parts.append(_PUBLISHED)
    for name, made in shown.items():
        heading, words = known.sections.get(name, ("", ""))
        heading = f"{made.experiment.label}: {heading}" if heading else ""
        note = made.experiment.scales[made.scale].note
        own = note if notes[note] == 1 else ""  # What several share stands with the settings.
        words = "\n\n".join(filter(None, [own, words, f"Made with {made.made}."]))
        parts.append(files.as_markdown(made, heading, words, pictures[name]).strip())
    shared = [f"Of several sections: {note}" for note, times in notes.items() if times > 1]
    parts += ["\n\n".join([f"## {_SETTINGS}", *shared, known.settings]).strip()]
    parts.append(f"## {_DIFFERENCES}\n\n{known.differences}")
    return "\n\n".join(parts) + "\n"


def _is_own(label: str, claim: Judged) -> bool:
    return label == _NEW or claim.text.startswith("Ours")


def _row(title: str, claim: Judged) -> list[str]:
    text = re.sub(r"^Ours[^:(]*:? ?", "", claim.text)
    deciding, many = claim.deciding, len(claim.checks)
    ours = f"{deciding.name}: {deciding.ours}" + (f" (weakest of {many})" if many > 1 else "")
    return [
        f"{_OWN if _is_own(title, claim) else title}: {text}",
        claim.verdict.value,
        ours,
        f"> {deciding.margin}",
        str(deciding.seeds),
    ]


def _counts(claims: Iterable[tuple[str, Judged]]) -> Counter[Verdict]:
    return Counter(claim.verdict for label, claim in claims if not _is_own(label, claim))


def _summary(claims: Iterable[tuple[str, Judged]]) -> str:
    """The paper's claims in words, as '8 claims hold, 4 are contradicted'."""
    counts = _counts(claims)
    parts = [f"{counts[v]} {words[counts[v] > 1]}" for v, words in _WORDS.items() if counts[v]]
    noun = " claim " if parts and parts[0].startswith("1 ") else " claims "
    return ", ".join(parts).replace(" ", noun, 1)


def _answer(claims: Iterable[tuple[str, Judged]]) -> str:
    """The short answer to whether a paper reproduces."""
    counts = _counts(claims)
    share = counts[Verdict.HOLDS] / max(counts.total(), 1)
    return "Yes" if share == 1 else "Mostly" if share > 0.5 else "In part"
