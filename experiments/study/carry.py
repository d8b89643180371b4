"""Carries kept results over a change of code that changes no byte of them.

Of each family of outdated results, one method or function, some runs are made again. Where all of
them give the same bytes, the family's results are stamped with the new commit as well.
"""

import dataclasses
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

from experiments.study import code, identity, results, runner
from experiments.study.experiment import Call, Cell, Experiment, Scale
from experiments.study.runner import Outdated
from experiments.study.store import Run, Status

_TRIED = 2  # Of each family.
# What is compared of a run: its numbers, and these files of it.
_FILES = ("metrics.csv", "clients.csv")


def carry(experiments: Iterable[Experiment], *, data_dir: str | None) -> Iterator[str]:
    """Tries the families of outdated results, and says of each what became of it."""
    families: dict[tuple[str, ...], dict[tuple[str, int], Outdated]] = {}
    for experiment in experiments:
        for scale in experiment.scales:
            found = results.read(experiment, scale)
            for one in runner.outdated(experiment, found) if found else []:
                own = families.setdefault((experiment.paper, scale, _family(one.cell)), {})
                own[identity.name(one.cell.work), one.seed] = one
    for (paper, scale, family), members in families.items():
        label = f"{paper}, {scale}, {family}: {len(members)} results"
        if why := _different(list(members.values()), data_dir):
            yield f"{label} not carried: {why}"
            continue
        stamped = {place: _stamped(one) for place, one in members.items()}
        path = results.path_of(paper, scale)
        results.write(path, {**results.kept(paper, scale), **stamped})
        yield f"{label} carried to commit {runner.commit()}"


def _family(cell: Cell) -> str:
    work = cell.work
    return identity.function_name(work) if isinstance(work, Call) else work.flags["method"]


def _different(members: list[Outdated], data_dir: str | None) -> str:
    """Says why a family's results are not those of the code there is now; empty if they are."""
    if any(one.why == "settings" for one in members):
        return "settings have changed"
    if any(isinstance(one.cell.work, Call) and one.cell.work.alone for one in members):
        return "they measure time"
    comparable = [one for one in members if one.run.record["hardware"] == runner.hardware()]
    if not comparable:
        return "they were made on another CPU type, whose last digits differ"
    order = np.random.default_rng(0).permutation(len(comparable))
    with tempfile.TemporaryDirectory() as folder:
        for one in (comparable[place] for place in order[:_TRIED]):
            again = _again(one, Path(folder), data_dir)
            name = f"{one.cell.name}, seed {one.seed}"
            if again.status is not Status.OK:
                return f"{name} cannot be made again: {again.error or again.status.value}"
            if wrong := _unequal(one.run, again):
                return f"{name} gives other bytes now ({wrong})"
    return ""


def _again(one: Outdated, folder: Path, data_dir: str | None) -> Run:
    experiment = Experiment("carry.again", "", {"one": Scale([one.cell], one.seed + 1, "")})
    tasks = runner.plan(experiment, "one", [one.seed], folder)
    made = list(runner.run_all(tasks, data_dir=data_dir))
    return made[-1][1]


def _unequal(*both: Run) -> str:
    """Names what differs between two runs."""
    old, new = ({**run.metrics, **{f: run.record["files"].get(f) for f in _FILES}} for run in both)
    return ", ".join(sorted(n for n in {*old, *new} if old.get(n) != new.get(n))[:3])


def _stamped(one: Outdated) -> Run:
    record = {
        **one.run.record,
        "commits": [*one.run.record["commits"], runner.commit()],
        "key": identity.key(one.cell.work, list(one.run.record["data"].values())),
        "code": code.short(identity.code_of(one.cell.work)),
    }
    return dataclasses.replace(one.run, record=record)
