"""What programs that make many runs share: their settings, their plan, and making them.

The settings are few: those of a run belong to the cells.
"""

import contextlib
import dataclasses
import functools
import os
import signal
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from absl import logging

from experiments.run import command_line
from experiments.study import claims, jobs, rates, runner, store
from experiments.study.experiment import Experiment
from experiments.study.store import FINISHED, Status
from tff_het.backend import internals
from tff_het.kinds import Whole
from tff_het.simulation import runtime

_TELLING_SECONDS = 60.0


@dataclasses.dataclass(frozen=True)
class Making:
    """Settings of all programs that make runs.

    Attributes:
      data_dir: A folder with one folder for each data set. Runs whose data are missing are skipped,
        and marked on the page. Without it, data sets are downloaded where possible.
      output_dir: Where the results go. You may give the same command several times with one folder,
        also on several machines: each run is made once.
      seeds: How many: seeds 0, 1 and so on. Default: what the scale has.
      dry_run: Print the plan with the time it may take, and stop. Where nothing similar was run
        before, short probes say how fast this machine is; they need the data in --data_dir.
      jobs: Runs made at a time, each in a process; timed ones run alone. Default: one a core.
      engine: Where runs are made: in processes of this machine, or on the nodes of a Ray cluster
        that see --output_dir and --data_dir (docs/several_machines.md).
    """

    data_dir: str | None = None
    output_dir: str = "runs"
    seeds: Whole | None = None
    dry_run: bool = False
    jobs: Whole | None = None
    engine: Literal["processes", "ray"] = "processes"


def make_runs(experiment: Experiment, scale: str, settings: Making) -> int:
    """Makes the runs of one scale, or prints their plan; returns the exit code: 1 if some failed.

    Raises ValueError if settings do not fit, or a file of results is damaged.
    """
    logging.set_verbosity(logging.WARNING)
    if scale not in experiment.scales:
        known = ", ".join(experiment.scales)
        raise ValueError(f"{experiment.id} has no scale {scale}, only {known}.")
    can_fork = runtime.fitting("in_process") == "in_process" and not internals.has_started()
    count = (settings.jobs or len(os.sched_getaffinity(0))) if can_fork else 1
    output_dir = command_line.folder(settings.output_dir).absolute()  # Nodes are elsewhere.
    seeds = range(settings.seeds or experiment.scales[scale].num_seeds)
    tasks = runner.plan(experiment, scale, seeds, output_dir)
    if settings.dry_run:
        print(_plan(tasks, settings.data_dir, count))
        return 0
    for task in tasks:
        store.read(task.folder)  # What is damaged is refused before work starts.
    store.write_seeds(output_dir / experiment.paper / experiment.name / scale, seeds)
    engine: Any = jobs.on_ray(settings.jobs)
    if settings.engine == "processes":
        engine = contextlib.nullcontext(functools.partial(jobs.run_all, count=count))
    # Between two runs, where no training listens to it.
    before = signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    try:
        with engine as run_all, command_line.errors_in_one_line(exit_code=1):
            return _run(run_all, tasks, settings, count)
    finally:
        signal.signal(signal.SIGTERM, before)


def _run(run_all: Any, tasks: Sequence[runner.Task], settings: Making, count: int) -> int:
    bad, began = 0, time.perf_counter()
    left = {task.folder: task for task in tasks}
    threading.Thread(target=_tell, args=(left, count), daemon=True).start()
    try:
        made = run_all(tasks, data_dir=settings.data_dir)
        for number, (task, result) in enumerate(made, start=1):
            del left[task.folder]
            passed = time.perf_counter() - began
            print(
                f"[{number}/{len(tasks)}, {_duration(passed)}] {task.cell.name}, seed {task.seed}: "
                f"{result.status.value}{f' ({result.error})' if result.error else ''}",
                flush=True,
            )
            bad += result.status not in (*FINISHED, Status.MISSING_DATA)
    finally:
        left.clear()  # So that nothing is told of them any more.
    return 1 if bad else 0


def _tell(left: Mapping[Path, runner.Task], count: int) -> None:
    """Says now and then which runs are under way, here and in other programs, and what is left."""
    while True:
        time.sleep(_TELLING_SECONDS)
        if not (tasks := list(left.values())):
            return
        under_way = [
            f"{task.cell.name}, seed {task.seed}, round {claim['round'] or '-'}"
            for task in tasks
            if (claim := claims.read(task.folder))
        ]
        about = f"Runs left: {len(tasks)}, {_total(tasks, max(count, len(under_way)))}"
        print(f"{about}; under way: {'; '.join(under_way) or 'none'}", flush=True)


def _plan(tasks: Sequence[runner.Task], data_dir: str | None, count: int) -> str:
    """Says which runs there are to make, and about how long that takes, `count` at a time."""
    left = [task for task in tasks if not runner.is_done(task, data_dir)]
    rates.probe(left, data_dir=data_dir)
    at_once = min(count, len(left))
    lines = []
    for task in tasks:
        work, state = task.cell.work, "done"
        if task in left:
            state = _about(rates.expected(task, 1 if work.alone else at_once))
            if "goal_accuracy" in getattr(work, "flags", ()) and not rates.recorded(task):
                state = state.replace("about", "at most")
        if (status := store.read(task.folder).status) not in (Status.ABSENT, *FINISHED):
            state += f" ({status.value} before)"
        lines.append(f"{task.cell.name}, seed {task.seed}: {state}")
    return "\n".join([*lines, f"Runs: {len(tasks)}, {_total(left, at_once)}."])


def _total(tasks: Sequence[runner.Task], count: int) -> str:
    """What runs take together, `count` at a time."""
    shares = [1 if task.cell.work.alone else count for task in tasks]
    times = [rates.expected(*pair) for pair in zip(tasks, shares, strict=True)]
    known = [seconds / n for seconds, n in zip(times, shares, strict=True) if seconds is not None]
    text = _about(sum(known) if known or not times else None)
    if count > 1:
        text += f", {count} at a time on {len(os.sched_getaffinity(0))} cores"
    if known and len(known) < len(times):
        text += f", and {len(times) - len(known)} of unknown length"
    return text


def _about(seconds: float | None) -> str:
    return "unknown" if seconds is None else f"about {_duration(seconds)}"


def _duration(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"
