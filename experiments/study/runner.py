"""Plans, reads and makes the runs of a table or figure; `jobs` makes all that are missing."""

import contextlib
import dataclasses
import functools
import math
import os
import platform
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import tensorflow as tf

from experiments.run import data, one
from experiments.run.config import RunConfig
from experiments.study import claims, identity, store
from experiments.study.experiment import Call, Cell, Experiment, Training, Work
from experiments.study.store import FINISHED, Results, Run, Status
from tff_het.backend.names import tff
from tff_het.simulation import loop, records, runtime


@dataclasses.dataclass(frozen=True)
class Task:
    """A run to be made: one cell with one seed."""

    cell: Cell
    seed: int
    folder: Path  # Where the run is kept.
    start: Path | None = None  # Where the run is kept that it starts from, if it does.


def plan(experiment: Experiment, scale: str, seeds: Sequence[int], output_dir: Path) -> list[Task]:
    """Returns the runs of one scale, those that others start from before them, each once."""
    tasks: dict[Path, Task] = {}
    for cell in experiment.scales[scale].cells:
        for seed in cell.seeds(seeds):
            before: Path | None = None
            for work in cell.work.chain:
                folder = folder_of(output_dir, experiment.paper, work, seed)
                one = cell if work is cell.work else Cell(f"{cell.name}, start", work)
                tasks.setdefault(folder, Task(one, seed, folder, before))
                before = folder
    return list(tasks.values())


def folder_of(output_dir: Path, paper: str, work: Work, seed: int) -> Path:
    """Returns the folder of a run."""
    return output_dir / paper / "runs" / identity.name(work) / f"seed{seed}"


def read(experiment: Experiment, scale: str, output_dir: Path) -> Results | None:
    """Reads the runs of one scale, whatever became of them; None where it was never begun."""

    def find(work: Work, seed: int) -> Run:
        return store.read(folder_of(output_dir, experiment.paper, work, seed))

    seeds = store.read_seeds(output_dir / experiment.paper / experiment.name / scale)
    return None if seeds is None else experiment.results(scale, seeds, find)


def is_done(task: Task, data_dir: str | None) -> bool:
    """Whether there is a result that neither flags, data nor code have left behind."""
    run = store.read(task.folder)
    if run.status not in FINISHED:
        return False
    try:
        found = _fingerprints(task, data_dir)
    except MissingDataError:
        return True  # Nobody can tell whether the data changed, and nothing better would come.
    except ValueError:
        return False
    return run.record["key"] == identity.key(task.cell.work, list(found.values()))


class MissingDataError(Exception):
    """A data set is neither in the folder nor to be fetched."""


def fingerprint(name: str, data_dir: str | None) -> str:
    """Returns a data set's fingerprint, read from its folder; without one, it is downloaded.

    Raises MissingDataError if it is not there, ValueError if its files are damaged.
    """
    found, missing = _find(name, data_dir)
    if missing:
        raise MissingDataError(missing)
    return found


@functools.cache  # Also what is missing is looked for once: a download may take long to fail.
def _find(name: str, data_dir: str | None) -> tuple[str, str]:
    try:
        return data.load(name, data_dir).fingerprint(), ""
    except (FileNotFoundError, RuntimeError) as error:
        return "", " ".join(str(error).split())


class Outdated(NamedTuple):
    """A result of earlier code or settings, and what has changed since."""

    cell: Cell
    seed: int
    run: Run
    why: str


def outdated(experiment: Experiment, results: Results) -> list[Outdated]:
    """Returns the results of one scale that come from other code or settings than there are now."""
    cells, found = {cell.name: cell for cell in experiment.scales[results.scale].cells}, []
    done = {of: run for of, run in results.runs.items() if run.status in FINISHED}
    for (name, seed), run in done.items():
        work = cells[name].work
        if run.record["key"] == identity.key(work, list(run.record["data"].values())):
            continue
        then, now = run.record.get("code", {}), identity.short(identity.code_of(work))
        changed = sorted(file for file in {*then, *now} if then.get(file) != now.get(file))
        settings = identity.settings(work)
        if run.record.get("settings", settings) != settings:  # Older results lack it.
            changed = []
        found.append(Outdated(cells[name], seed, run, ", ".join(changed) or "settings"))
    return found


def make(
    task: Task, failed: Mapping[Path, Mapping[str, Any]] | None = None, *, data_dir: str | None
) -> Run | None:
    """Makes one run, or goes on with it, in the runtime that is installed.

    Returns None where another program is making it. Of the runs that have failed, those in `failed`
    are tried again, by default all.
    """
    with claims.claimed(task.folder) as note:
        if note is None:
            return None
        run = store.read(task.folder)
        known = run.record if failed is None else failed.get(task.folder)
        if (run.status is Status.FAILED and run.record != known) or is_done(task, data_dir):
            return run
        return _make(task, data_dir, note)


def _make(task: Task, data_dir: str | None, note: Callable[[int], None]) -> Run:
    key = ""
    try:
        found = _fingerprints(task, data_dir)
        key = identity.key(task.cell.work, list(found.values()))
        about = _about(task, found)
        run = store.read(task.folder)
        # What other flags, data or code began is cleared away. Training goes on, functions begin.
        if run.record.get("key") != key or isinstance(task.cell.work, Call):
            shutil.rmtree(run.files, ignore_errors=True)
        store.write(task.folder, Status.UNFINISHED, key)
        run.files.mkdir(exist_ok=True)
        times = run.files / "times.csv"  # Of a training that was interrupted.
        rows, began = records.read_table(times) if times.exists() else [], time.perf_counter()
        metrics = _work(task, data_dir, note)
        seconds = sum(float(row[name] or 0) for row in rows for name in row if name != "round")
        seconds += time.perf_counter() - began
        return store.write(task.folder, Status.OK, key, metrics=metrics, seconds=seconds, **about)
    except loop.DivergedError as error:  # It would again: a result, without numbers.
        about |= {"metrics": {}, "seconds": time.perf_counter() - began, "error": str(error)}
        return store.write(task.folder, Status.DIVERGED, key, **about)
    except MissingDataError as error:
        return store.write(task.folder, Status.MISSING_DATA, key, error=str(error))
    except Exception as error:
        text = f"{type(error).__name__}: {' '.join(str(error).split())}"
        return store.write(task.folder, Status.FAILED, key, error=text)


def _fingerprints(task: Task, data_dir: str | None) -> dict[str, str]:
    return {name: fingerprint(name, data_dir) for name in task.cell.work.data_sets}


def _work(task: Task, data_dir: str | None, note: Callable[[int], None]) -> dict[str, float]:
    work, folder, start = task.cell.work, task.folder / "files", None
    if task.start is not None:
        run = store.read(task.start)
        if run.status is not Status.OK:  # Its weights may be left from before it failed.
            kind = loop.DivergedError if run.status is Status.DIVERGED else ValueError
            why = run.status.value.replace("_", " ")
            raise kind(f"The run in {run.folder}, which this one starts from, is not there: {why}.")
        start = run.files
    if isinstance(work, Training):
        values = {**work.flags, "seed": task.seed, "data_dir": data_dir}
        values |= {} if start is None else {"start_from": str(start)}
        with one.run(RunConfig.of(**values), folder, on_round=note) as result:
            metrics = {k: v for k, v in result.summary.items() if isinstance(v, int | float)}
    else:
        place = data_dir if work.data_sets else None
        arguments = {**work.arguments} if start is None else {**work.arguments, "start_from": start}
        metrics = dict(work.function(seed=task.seed, folder=folder, data_dir=place, **arguments))
    if wrong := {name: value for name, value in metrics.items() if not math.isfinite(value)}:
        raise ValueError(f"Expected finite numbers, found {wrong}.")
    return metrics


def _about(task: Task, fingerprints: Mapping[str, str]) -> dict[str, Any]:
    versions = {"TensorFlow": tf.__version__, "TensorFlow Federated": tff.__version__}
    return {
        "commits": [commit()],
        "code": identity.short(identity.code_of(task.cell.work)),
        "settings": identity.settings(task.cell.work),
        "data": fingerprints,
        "versions": {"Python": platform.python_version(), **versions},
        "runtime": runtime.fitting("in_process"),
        "hardware": hardware(),
    }


@functools.cache
def commit() -> str:
    """Returns the checkout's commit, with '+' where files differ; 'unknown' outside of one."""
    command = ("git", "describe", "--always", "--exclude=*", "--abbrev=7", "--dirty=+")
    done = subprocess.run(command, cwd=Path(__file__).parent, capture_output=True, text=True)
    return done.stdout.strip() or "unknown"


def hardware() -> str:
    """Returns the number of cores, the CPU type, and oneDNN where TensorFlow's default differs."""
    cores = len(os.sched_getaffinity(0))
    model, wide, text = platform.machine(), "", ""
    with contextlib.suppress(OSError), open("/proc/cpuinfo", encoding="utf-8") as file:
        text = file.read()
        names = re.findall(r"model name\s*: (.*)", text)
        model = names[0] if names else model
        # Rounding depends on it.
        wide = " with AVX-512" if "avx512f" in text else " without AVX-512" if names else ""
    on = os.environ["TF_ENABLE_ONEDNN_OPTS"] != "0"
    if on != ("avx512_vnni" in text):
        wide += ", with oneDNN" if on else ", without oneDNN"
    return f"{cores} cores of {model}{wide}"
