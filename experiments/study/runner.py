"""Makes the missing runs of a table or figure, one after another.

`jobs` makes several at the same time.
"""

import collections
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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import tensorflow as tf

from experiments.run import one
from experiments.run.config import RunConfig
from experiments.study import claims, code, data, identity, store
from experiments.study.experiment import Call, Cell, Experiment, Training
from experiments.study.store import Results, Run, Status
from tff_het.backend.names import tff
from tff_het.simulation import runtime

# Between two looks at runs that other programs are making.
PAUSE_SECONDS = 1.0


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


def folder_of(output_dir: Path, paper: str, work: Training | Call, seed: int) -> Path:
    """Returns the folder of a run."""
    return output_dir / paper / "runs" / identity.name(work) / f"seed{seed}"


def read(experiment: Experiment, scale: str, output_dir: Path) -> Results | None:
    """Reads the runs of one scale, whatever became of them; None where it was never begun."""
    seeds = store.read_seeds(output_dir / experiment.paper / experiment.name / scale)
    if seeds is None:
        return None

    def kept(work: Training | Call, seed: int) -> Run:
        return store.read(folder_of(output_dir, experiment.paper, work, seed))

    return experiment.results(scale, seeds, kept)


def is_done(task: Task, data_dir: str | None) -> bool:
    """Whether there is a result that neither flags, data nor code have left behind."""
    run = store.read(task.folder)
    if run.status is not Status.OK:
        return False
    try:
        found = _fingerprints(task, data_dir)
    except data.MissingDataError:
        return True  # Nobody can tell whether the data changed, and nothing better would come.
    except ValueError:
        return False
    return run.record["key"] == identity.key(task.cell.work, list(found.values()))


class Outdated(NamedTuple):
    """A result of earlier code or settings, and what has changed since."""

    cell: Cell
    seed: int
    run: Run
    why: str


def outdated(experiment: Experiment, results: Results) -> list[Outdated]:
    """Returns the results of one scale that come from other code or settings than there are now."""
    cells, found = {cell.name: cell for cell in experiment.scales[results.scale].cells}, []
    for (name, seed), run in results.runs.items():
        work = cells[name].work
        if run.status is not Status.OK:
            continue
        if run.record["key"] == identity.key(work, list(run.record["data"].values())):
            continue
        then, now = run.record.get("code", {}), code.short(identity.code_of(work))
        changed = sorted(file for file in {*then, *now} if then.get(file) != now.get(file))
        found.append(Outdated(cells[name], seed, run, ", ".join(changed) or "settings"))
    return found


def run_all(
    tasks: Sequence[Task],
    *,
    data_dir: str | None,
    failed: Mapping[Path, Mapping[str, Any]] | None = None,
    wants: Callable[[Task], bool] = lambda task: True,
) -> Iterator[tuple[Task, Run]]:
    """Makes the runs in order, giving each as it ends; those that are done are not made again.

    What fails is kept as failed, and tried again the next time. What another program is making is
    waited for, and taken over where that program is gone. `failed` is `already_failed` when the
    program began, by default now; `wants` says whether to make a run now, or to be asked again.
    """
    failed = already_failed(tasks) if failed is None else failed
    waiting, put_back = collections.deque(tasks), 0
    with runtime.use("in_process"):
        while waiting:
            task = waiting.popleft()
            is_ready = task.start not in {other.folder for other in waiting} and wants(task)
            run = make(task, failed, data_dir=data_dir) if is_ready else None
            if run is not None:
                put_back = 0
                yield task, run
                continue
            waiting.append(task)
            put_back += 1
            if put_back >= len(waiting):
                time.sleep(PAUSE_SECONDS)
                put_back = 0


def already_failed(tasks: Iterable[Task]) -> dict[Path, Mapping[str, Any]]:
    """Returns what is known of runs that have failed before: these are tried again."""
    runs = {task.folder: store.read(task.folder) for task in tasks}
    return {folder: run.record for folder, run in runs.items() if run.status is Status.FAILED}


def make(
    task: Task,
    failed: Mapping[Path, Mapping[str, Any]] | None = None,
    *,
    data_dir: str | None,
) -> Run | None:
    """Makes one run, or goes on with it, in the runtime that is installed.

    Returns None where another program is making it. Of the runs that have failed, those in `failed`
    are tried again, by default all.
    """
    with claims.claimed(task.folder) as claim:
        if claim is None:
            return None
        run = store.read(task.folder)
        known = run.record if failed is None else failed.get(task.folder)
        if (run.status is Status.FAILED and run.record != known) or is_done(task, data_dir):
            return run
        return _make(task, data_dir, claim)


def _make(task: Task, data_dir: str | None, claim: claims.Claim) -> Run:
    key = ""
    try:
        found = _fingerprints(task, data_dir)
        key = identity.key(task.cell.work, list(found.values()))
        about = _about(task, found)
        _prepare(task, key)
        earlier, began = _seconds_before(task), time.perf_counter()
        metrics = _work(task, data_dir, claim)
        seconds = earlier + time.perf_counter() - began
        return store.write(task.folder, Status.OK, key, metrics=metrics, seconds=seconds, **about)
    except data.MissingDataError as error:
        return store.write(task.folder, Status.MISSING_DATA, key, error=str(error))
    except Exception as error:
        text = f"{type(error).__name__}: {' '.join(str(error).split())}"
        return store.write(task.folder, Status.FAILED, key, error=text)


def _fingerprints(task: Task, data_dir: str | None) -> dict[str, str]:
    return {name: data.fingerprint(name, data_dir) for name in task.cell.work.data_sets}


def _prepare(task: Task, key: str) -> None:
    """Clears away what was begun with other flags, data or code, and says what is begun now."""
    run = store.read(task.folder)
    # A function begins anew; training goes on where it was.
    if run.record.get("key") != key or isinstance(task.cell.work, Call):
        shutil.rmtree(run.files, ignore_errors=True)
    store.write(task.folder, Status.UNFINISHED, key)
    run.files.mkdir(exist_ok=True)


def _work(task: Task, data_dir: str | None, claim: claims.Claim) -> dict[str, float]:
    work, folder = task.cell.work, task.folder / "files"
    start = _start_of(task)
    if isinstance(work, Training):
        values = {**work.flags, "seed": task.seed, "data_dir": data_dir}
        values |= {} if start is None else {"start_from": str(start)}
        with one.run(RunConfig.of(**values), folder, on_round=claim.note) as result:
            metrics = {k: v for k, v in result.summary.items() if isinstance(v, int | float)}
    else:
        place = data_dir if work.data_sets else None
        arguments = {**work.arguments} if start is None else {**work.arguments, "start_from": start}
        metrics = dict(work.function(seed=task.seed, folder=folder, data_dir=place, **arguments))
    if wrong := {name: value for name, value in metrics.items() if not math.isfinite(value)}:
        raise ValueError(f"Expected finite numbers, found {wrong}.")
    return metrics


def _start_of(task: Task) -> Path | None:
    """The folder of the run that this one starts from, if it does."""
    if task.start is None:
        return None
    start = store.read(task.start)
    # Its weights may be left from before it failed.
    if start.status is not Status.OK:
        raise ValueError(
            f"The run in {start.folder}, which this one starts from, is not there: "
            f"{start.status.value.replace('_', ' ')}."
        )
    return start.files


def _seconds_before(task: Task) -> float:
    """What an interrupted training has taken so far."""
    with contextlib.suppress(FileNotFoundError):
        lines = (task.folder / "files" / "times.csv").read_text().splitlines()[1:]
        return sum(float(value) for line in lines for value in line.split(",")[1:])
    return 0.0


def _about(task: Task, fingerprints: Mapping[str, str]) -> dict[str, Any]:
    return {
        "commits": [commit()],
        "code": code.short(identity.code_of(task.cell.work)),
        "data": fingerprints,
        "versions": {
            "Python": platform.python_version(),
            "TensorFlow": tf.__version__,
            "TensorFlow Federated": tff.__version__,
        },
        "runtime": runtime.fitting("in_process"),
        "hardware": hardware(),
    }


@functools.cache
def commit() -> str:
    """Returns the checkout's commit, with '+' where files differ; 'unknown' outside of one."""
    command = ("git", "describe", "--always", "--exclude=*", "--abbrev=7", "--dirty=+")
    done = subprocess.run(
        command, cwd=Path(__file__).parent, capture_output=True, text=True, check=False
    )
    return done.stdout.strip() or "unknown"


def hardware() -> str:
    """Returns the number of cores and the CPU type."""
    cores = len(os.sched_getaffinity(0))
    model, wide = platform.machine(), ""
    with contextlib.suppress(OSError), open("/proc/cpuinfo") as file:
        text = file.read()
        names = re.findall(r"model name\s*: (.*)", text)
        model = names[0] if names else model
        # Rounding depends on it.
        wide = " with AVX-512" if "avx512f" in text else " without AVX-512" if names else ""
    return f"{cores} cores of {model}{wide}"
