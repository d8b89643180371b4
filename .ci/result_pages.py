"""Writes the beginning and the end of each paper's page of results, and the README's five rows.

python .ci/result_pages.py [--check]

Verdicts are read from the page's own sections. What people wrote stands in the paper's
`findings.md`: in short, data, and a table of where we differ and why.
"""

import argparse
import pathlib
import re
import sys
from collections import Counter
from typing import NamedTuple

ROOT = pathlib.Path(__file__).parents[1]
PAPERS = {
    "hdafl": "HDAFL (Yang et al. 2020)",
    "cgau": "CGAU (Rieger et al. 2020)",
    "lg_fedavg": "LG-FedAvg (Liang et al. 2019)",
    "edge_ensembles": "AveFL, OptFL and MixFL (Qian et al. 2019)",
    "waffle": "WAFFLe (Hao et al. 2020)",
}
# Verdict -> how one claim, and how several, are said to have it.
VERDICTS = {
    "holds": ("holds", "hold"),
    "contradicted": ("is contradicted", "are contradicted"),
    "undecided": ("is undecided", "are undecided"),
}
_DIFFERENCES = "## Where we differ and why"
_MARKS = ("<!-- verdicts -->", "<!-- /verdicts -->")
_OWN, _NEW = "Our own check", "Not in the paper"
_HEAD = "| claim | verdict | ours, with 95 % interval | claimed | seeds |\n|---|---|---|---|---|"
_CLAIM = re.compile(r"^\*\*(holds|contradicted|undecided)\*\*: (.*)$")


class Claim(NamedTuple):
    """A claim of a paper, as a section judges it.

    Attributes:
      text: The claim, after its table or figure; after `_OWN` where the paper has none.
      verdict: Of `VERDICTS`.
      ours: The check that decides, and its value with the interval.
      wanted: The threshold that the claim needs it to exceed.
      seeds: How many.
    """

    text: str
    verdict: str
    ours: str
    wanted: str
    seeds: int


def claims_of(sections: str) -> list[Claim]:
    """Returns the claims of a page's sections, in order."""
    found, seeds, table, heading, lines = [], 0, [], "", sections.splitlines()
    for place, line in enumerate(lines):
        if line.startswith("## "):
            heading = line.removeprefix("## ").split(":")[0]
        if line.startswith("Seeds "):
            seeds, table = len(re.findall(r"\d+", line.split(".")[0])), []
        table.append(line)
        if (match := _CLAIM.match(line)) is None:
            continue
        rows = []
        for row in lines[place + 4 :]:  # After a blank line and the table's head.
            if not row.startswith("|"):
                break
            rows.append([cell.strip() for cell in row.strip("|").split(" | ")])
        verdict = match[1]
        deciding = [row for row in rows if row[-1] == verdict] or rows
        ours = min(deciding, key=lambda row: _mean(row[1]) - _mean(row[2]))
        many = f" (weakest of {len(rows)})" if len(rows) > 1 else ""
        text, own = re.subn(r"^Ours[^:(]*:? ?", "", match[2])
        text = f"{_OWN if own or heading == _NEW else heading}: {text}"
        shown = f"{ours[0]}: {ours[1]}{many}"
        found.append(Claim(text, verdict, shown, ours[2], _seeds(text, table, seeds)))
    return found


def _seeds(claim: str, table: list[str], usual: int) -> int:
    """Returns the seeds behind a claim such as "(FMNIST) ...": table rows name fewer seeds."""
    about = re.search(r"\(([^,)]+)", claim)
    fewer = [
        int(number)
        for row in table
        if about and row.startswith((f"| {about[1]}, ", f"| {about[1]} |"))
        for number in re.findall(r"\((\d+) seeds\)", row)
    ]
    return min(fewer, default=usual)


def _mean(text: str) -> float:
    number = re.match(r"-?[\d.]+", text.replace(",", ""))
    return float(number[0]) if number else float("inf")


def summary(claims: list[Claim]) -> str:
    """Returns the paper's claims in words, as '8 claims hold, 4 are contradicted'."""
    counts = _counts(claims)
    parts = [f"{counts[v]} {words[counts[v] > 1]}" for v, words in VERDICTS.items() if counts[v]]
    noun = " claim " if parts[0].startswith("1 ") else " claims "
    return ", ".join(parts).replace(" ", noun, 1)


def _counts(claims: list[Claim]) -> Counter[str]:
    return Counter(claim.verdict for claim in claims if not claim.text.startswith(_OWN))


def answer(claims: list[Claim]) -> str:
    """Returns the short answer to whether a paper reproduces."""
    counts = _counts(claims)
    share = counts["holds"] / counts.total()
    return "Yes" if share == 1 else "Mostly" if share > 0.5 else "In part"


def page(paper: str, old: str, findings: str) -> str:
    """Returns a page with its beginning and its end written anew."""
    start = old.index("\n## ") + 1
    sections = old[start:].split(_DIFFERENCES)[0].rstrip()
    claims = sorted(claims_of(sections), key=lambda claim: claim.text.startswith(_OWN))
    rows = [
        f"| {claim.text} | {claim.verdict} | {claim.ours} | > {claim.wanted} | {claim.seeds} |"
        for claim in claims
    ]
    written, _, differences = findings.partition(_DIFFERENCES)
    parts = [
        f"# {PAPERS[paper]}",
        f"**Does it reproduce?** {answer(claims)}: {summary(claims)}.",
        "\n".join([_HEAD, *rows]),
        written.strip(),
        sections,
        f"{_DIFFERENCES}\n\n{differences.strip()}",
    ]
    return "\n\n".join(parts) + "\n"


def main() -> int:
    """Writes the pages; with --check, returns 1 where one is not what it would write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    check = parser.parse_args().check
    wanted, rows = {}, []
    for paper in PAPERS:
        folder = ROOT / "experiments" / paper
        path = folder / "README.md"
        wanted[path] = page(paper, path.read_text(), (folder / "findings.md").read_text())
        claims = claims_of(wanted[path])
        rows.append(
            f"| [{PAPERS[paper]}](experiments/{paper}/README.md) | {answer(claims)} |"
            f" {summary(claims)} |"
        )
    readme = ROOT / "README.md"
    before, _, rest = readme.read_text().partition(_MARKS[0])
    _, _, after = rest.partition(_MARKS[1])
    table = "\n".join(["| paper | does it reproduce? | claims |", "|---|---|---|", *rows])
    wanted[readme] = f"{before}{_MARKS[0]}\n{table}\n{_MARKS[1]}{after}"
    different = [path for path, text in wanted.items() if path.read_text() != text]
    for path in different:
        print(path.relative_to(ROOT))
        if not check:
            path.write_text(wanted[path])
    return 1 if check and different else 0


if __name__ == "__main__":
    sys.exit(main())
