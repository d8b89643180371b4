"""Results as data: what pages need of finished runs, one text file a paper and scale.

experiments/results/<paper>_<scale>.jsonl has a line for each run, and before them one for each
machine and code that runs were made with. experiments/results/published.jsonl has what pages said
before runs were kept: a section's means with intervals, until all of its runs are there.
"""

import base64
import dataclasses
import functools
import json
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from experiments.study import identity
from experiments.study.experiment import Experiment
from experiments.study.store import Results, Run, Status
from tff_het.simulation import records

FOLDER = Path(__file__).parents[1] / "results"
# What equal runs of one machine and code share.
_SHARED = ("commits", "hardware", "runtime", "versions", "code")


class Kept(Run):
    """A run of which only what pages need was kept."""

    def file(self, name: str) -> Path:
        """As of `Run`; the file lies in a folder that ends with the program."""
        if name not in self.record["contents"]:
            raise ValueError(
                f"{name} of {self.folder} was not kept when its result was merged: make the run "
                "again and merge it."
            )
        path = Path(_temporary().name) / self.record["files"][name] / name
        if not path.exists():
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(base64.b64decode(self.record["contents"][name]))
        return path


@functools.cache
def _temporary() -> tempfile.TemporaryDirectory:
    return tempfile.TemporaryDirectory()  # Removed when the program ends.


def read(experiment: Experiment, scale: str) -> Results | None:
    """Returns the kept runs of a scale, None without any; raises ValueError if they are damaged."""
    known = kept(experiment.paper, scale)
    names = {identity.name(cell.work) for cell in experiment.scales[scale].cells}
    seeds = sorted({seed for what, seed in known if what in names})
    if not seeds:
        return None
    absent = Run(Path(), Status.ABSENT)
    return experiment.results(
        scale, seeds, lambda work, seed: known.get((identity.name(work), seed), absent)
    )


def is_complete(results: Results) -> bool:
    """Whether every cell has its run with every seed."""
    return all(run.status is Status.OK for run in results.runs.values())


def merge(experiments: Iterable[tuple[Experiment, Results]]) -> str:
    """Adds finished runs on disk to the kept ones, in place of those of the same cell and seed.

    Returns how many runs were added, by file.
    """
    added: dict[tuple[str, str], dict[tuple[str, int], Run]] = {}
    for experiment, results in experiments:
        found = added.setdefault((experiment.paper, results.scale), {})
        works = {cell.name: cell.work for cell in experiment.scales[results.scale].cells}
        asked = dict(results.runs)
        for (cell, seed), run in results.runs.items():
            if run.status is Status.OK:
                name, content = identity.name(works[cell]), identity.content(works[cell])
                about = {**run.record, "run": name, "seed": seed, "work": content}
                own = dataclasses.replace(run, record=about)
                asked[cell, seed] = found.setdefault((name, seed), own)
        _ask_all(experiment, dataclasses.replace(results, runs=asked))
    lines = []
    for place, found in added.items():
        if found:
            path = path_of(*place)
            write(path, {**kept(*place), **found})
            lines.append(f"{path.name}: {len(found)} runs")
    return "\n".join(lines) or "No finished runs to merge."


def _ask_all(experiment: Experiment, results: Results) -> None:
    """Makes all that pages show, so that the runs note what they were asked for."""
    measures = [p.measure for t in experiment.tables_of(results.scale) for p in t.places]
    measures += [c.measure for claim in experiment.claims_of(results.scale) for c in claim.checks]
    for measure in measures:
        measure.values(results)
    for figure in experiment.figures:
        figure.draw(results)


def write(path: Path, runs: Mapping[tuple[str, int], Run]) -> None:
    """Writes the runs of one paper and scale, whole or not at all."""
    shared: dict[str, int] = {}
    lines = []
    for _, run in sorted(runs.items()):
        record = {k: v for k, v in run.record.items() if k not in ("checksum", "status", "made")}
        common = _line({name: record.pop(name) for name in _SHARED if name in record})
        made = shared.setdefault(common, len(shared))
        for kind in ("curves", "tables", "contents"):
            record.setdefault(kind, {})
        lines.append(_line(record | {"made": made}))
    path.parent.mkdir(exist_ok=True)
    records.write_atomically(path, "".join(line + "\n" for line in (*shared, *lines)))


def _line(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def path_of(paper: str, scale: str) -> Path:
    """Returns the file of a paper's scale."""
    return FOLDER / f"{paper}_{scale}.jsonl"


@functools.lru_cache
def _read(path: Path, stamp: int) -> dict[tuple[str, int], Run]:
    del stamp  # Tells versions of the file apart.
    shared: list[Mapping[str, Any]] = []
    found: dict[tuple[str, int], Run] = {}
    for number, line in enumerate(path.read_text().splitlines(), start=1):
        try:
            record = json.loads(line)
            if "run" not in record:
                shared.append(record)
                continue
            place = record["run"], record["seed"]
            found[place] = Kept(Path(*map(str, place)), Status.OK, shared[record["made"]] | record)
        except (ValueError, KeyError, IndexError, TypeError) as error:
            raise ValueError(
                f"{path}, line {number} is damaged: take the file from the repository again."
            ) from error
    return found


def kept(paper: str, scale: str) -> Mapping[tuple[str, int], Run]:
    """Returns all kept runs of a paper's scale, by the name of what was run, and seed."""
    path = path_of(paper, scale)
    return _read(path, path.stat().st_mtime_ns) if path.exists() else {}


def published() -> Mapping[str, Mapping[str, Any]]:
    """Returns what pages said of sections before runs were kept, by the section's id."""
    path = FOLDER / "published.jsonl"
    lines = path.read_text().splitlines() if path.exists() else []
    return {(record := json.loads(line))["section"]: record for line in lines}
