"""Results as data: what pages need of finished runs, one text file a paper and scale.

experiments/results/<paper>_<scale>.jsonl has a line a run, after one for each machine and code.
"""

import dataclasses
import functools
import json
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from experiments.study import identity, jobs, runner, sections
from experiments.study.experiment import Call, Experiment, Scale, Work
from experiments.study.runner import Outdated
from experiments.study.store import FINISHED, Results, Run, Status
from tff_het.simulation import records

FOLDER = Path(__file__).parents[1] / "results"
# Of outdated results that `carry` tries: runs of each family; and what it compares beside numbers.
_TRIED, _FILES = 2, ("metrics.csv", "clients.csv")
# No longer measured: of methods with a schedule of their own it was wrong.
_GONE = {"steps_total", "steps_per_client_round"}
# What pages ask of a run's files, and what equal runs of one machine and code share.
_ASKED = ("curves", "tables", "contents")
_SHARED = ("commits", "hardware", "runtime", "versions", "code")
OfScales = Iterable[tuple[Experiment, Results]]


def read(experiment: Experiment, scale: str) -> Results | None:
    """Returns the kept runs of a scale, None without any; raises ValueError if they are damaged."""
    known = kept(experiment.paper, scale)
    names = {identity.name(cell.work) for cell in experiment.scales[scale].cells}
    # Other figures may share runs, and take more seeds of them.
    planned = range(experiment.scales[scale].num_seeds)
    seeds = sorted({seed for what, seed in known if what in names and seed in planned})

    def find(work: Work, seed: int) -> Run:
        return known.get((identity.name(work), seed), Run(Path(), Status.ABSENT))

    return experiment.results(scale, seeds, find) if seeds else None


def is_complete(results: Results) -> bool:
    """Whether every cell has its run with every seed."""
    return all(run.status in FINISHED for run in results.runs.values())


def merge(experiments: OfScales) -> str:
    """Adds finished runs on disk to the kept ones, in place of those of the same cell and seed.

    Returns how many runs were added, by file.
    """
    added: dict[tuple[str, str], dict[tuple[str, int], Run]] = {}
    for experiment, results in experiments:
        found = added.setdefault((experiment.paper, results.scale), {})
        works = {cell.name: cell.work for cell in experiment.scales[results.scale].cells}
        asked = dict(results.runs)
        for (cell, seed), run in results.runs.items():
            if run.status in FINISHED:
                name, content = identity.name(works[cell]), identity.content(works[cell])
                about = {**run.record, "run": name, "seed": seed, "work": content}
                own = dataclasses.replace(run, record=about)
                asked[cell, seed] = found.setdefault((name, seed), own)
        # Runs note what they are asked for: this asks for all that pages show.
        sections.section(experiment, dataclasses.replace(results, runs=asked))
    lines = []
    for place, found in added.items():
        if found:
            path, before = path_of(*place), kept(*place)
            for of, run in found.items():
                # What other figures ask of the same run is kept, if the run left the same files.
                if of in before and before[of].record["files"] == run.record["files"]:
                    for kind in _ASKED:
                        old, new = (one.record.get(kind, {}) for one in (before[of], run))
                        run.record[kind] = {**old, **new}
            write(path, {**before, **found})
            lines.append(f"{path.name}: {len(found)} runs")
    return "\n".join(lines) or "No finished runs to merge."


def write(path: Path, runs: Mapping[tuple[str, int], Run]) -> None:
    """Writes the runs of one paper and scale, whole or not at all."""
    shared: dict[str, int] = {}
    lines = []
    for _, run in sorted(runs.items()):
        apart = ("checksum", "made", *["status"] * (run.status is Status.OK))
        record = {k: v for k, v in run.record.items() if k not in apart}
        common = _line({name: record.pop(name) for name in _SHARED if name in record})
        made = shared.setdefault(common, len(shared))
        lines.append(_line({**{kind: {} for kind in _ASKED}, **record, "made": made}))
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
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        try:
            record = json.loads(line)
            if "run" not in record:
                shared.append(record)
                continue
            place = record["run"], record["seed"]
            status = Status(record.get("status", "ok"))
            found[place] = Run(Path(*map(str, place)), status, shared[record["made"]] | record)
        except (ValueError, KeyError, IndexError, TypeError) as error:
            why = "is damaged: take the file from the repository again."
            raise ValueError(f"{path}, line {number} {why}") from error
    return found


def kept(paper: str, scale: str) -> Mapping[tuple[str, int], Run]:
    """Returns all kept runs of a paper's scale, by the name of what was run, and seed."""
    path = path_of(paper, scale)
    return _read(path, path.stat().st_mtime_ns) if path.exists() else {}


def carry(experiments: OfScales, *, data_dir: str | None) -> Iterator[str]:
    """Carries kept results over a change of code that changes none of them.

    Of each family, one method or function, some runs are made again: where tables and numbers, to
    12 digits, are equal, all are stamped with the new commit as well. Says what became of each.
    """
    families: dict[tuple[str, str, str], dict[tuple[str, int], Outdated]] = {}
    for experiment, found in experiments:
        for one in runner.outdated(experiment, found):
            work = one.cell.work
            of = identity.function_name(work) if isinstance(work, Call) else work.flags["method"]
            family = families.setdefault((experiment.paper, found.scale, of), {})
            family[identity.name(work), one.seed] = one
    for (paper, scale, of), members in families.items():
        label = f"{paper}, {scale}, {of}: {len(members)} results"
        if why := _different(list(members.values()), data_dir):
            yield f"{label} not carried: {why}"
            continue
        runs = {**kept(paper, scale)}
        for place, (cell, _, run, _) in members.items():
            stamp = {
                "commits": [*run.record["commits"], runner.commit()],
                "key": identity.key(cell.work, list(run.record["data"].values())),
                "code": identity.short(identity.code_of(cell.work)),
                "settings": identity.settings(cell.work),
            }
            runs[place] = dataclasses.replace(run, record=run.record | stamp)
        write(path_of(paper, scale), runs)
        yield f"{label} carried to commit {runner.commit()}"


def _different(members: list[Outdated], data_dir: str | None) -> str:
    """Says why a family's results are not those of the code there is now; empty if they are."""
    if any(one.why == "settings" for one in members):
        return "settings have changed"
    if any(one.cell.work.alone for one in members):
        return "they measure time"
    comparable = [one for one in members if one.run.record["hardware"] == runner.hardware()]
    if not comparable:
        return "they were made on another CPU type, whose last digits differ"
    order = np.random.default_rng(0).permutation(len(comparable))
    with tempfile.TemporaryDirectory() as folder:
        for one in (comparable[place] for place in order[:_TRIED]):
            experiment = Experiment("carry.again", "", {"one": Scale([one.cell], one.seed + 1, "")})
            tasks = runner.plan(experiment, "one", [one.seed], Path(folder))
            *_, (_, again) = jobs.run_all(tasks, 1, data_dir=data_dir)
            name = f"{one.cell.name}, seed {one.seed}"
            if again.status is not one.run.status:
                return f"{name} cannot be made again: {again.error or again.status.value}"
            if wrong := _unequal(one.run, again):
                return f"{name} gives other results now ({wrong})"
    return ""


def _unequal(*both: Run) -> str:
    """Names what differs between two runs; LAPACK's last digits do between CPUs of one name."""
    numbers = ({name: f"{value:.12g}" for name, value in run.metrics.items()} for run in both)
    old, new = (next(numbers) | {f: run.record["files"].get(f) for f in _FILES} for run in both)
    for file in both[0].record.get("contents", {}):
        if not _same(*(np.load(run.file(file)) for run in both)):
            new[file] = "other arrays"
    names = {*old, *new} - _GONE
    return ", ".join(sorted(n for n in names if old.get(n) != new.get(n))[:3])


def _same(a: Any, b: Any) -> bool:
    """Whether two arrays, or archives of them, are equal to 12 digits."""
    if not isinstance(a, np.ndarray):
        return a.keys() == b.keys() and all(_same(a[name], b[name]) for name in a)
    is_float = a.dtype.kind == "f" and a.shape == b.shape
    return np.allclose(a, b, 1e-12, 0) if is_float else np.array_equal(a, b)
