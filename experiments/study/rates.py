"""How long runs take: as long as others took, else what short probes on this machine say.

A probe of a training is the same training with few rounds: its start counts once, and its rounds
and evaluations as often as the run has them. OUTPUT_DIR/rates.json keeps what was measured.
"""

import contextlib
import dataclasses
import functools
import math
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from experiments.run.config import RunConfig
from experiments.study import identity, runner, store
from experiments.study.experiment import Call, Cell, Training, Work
from experiments.study.runner import Task
from experiments.study.store import Status
from tff_het import kept
from tff_het.simulation import records, runtime

_ROUNDS = 4  # Of the probe of a training: the first one is to warm up.
_SHORT, _LONG = 2, 6  # The argument of a function's probes: some need more than one round.
_AT_HAND = {"digits", "digits_vqa"}  # They come with scikit-learn.
# No round or evaluation is longer for them, so that runs that differ in them share probes.
_WITHOUT_EFFECT = (
    *("rounds", "eval_every", "goal_accuracy", "goal_selection"),
    *("client_learning_rate", "shuffle_fraction"),
)


class Rate(NamedTuple):
    """How long a run takes if nothing runs beside it."""

    start: float  # Seconds, however long the run is.
    rest: float  # Seconds of its rounds and evaluations.
    cores: float  # How many these keep busy.

    def seconds(self, jobs: int) -> float:
        """Returns how long it takes as one of `jobs` that share all cores."""
        num_cores = len(os.sched_getaffinity(0))
        return self.start + self.rest * max(1.0, min(self.cores, num_cores) * jobs / num_cores)


class Probe(NamedTuple):
    """Seconds that a probe took, and of these on all cores together; of a training, medians."""

    seconds: float
    busy: float
    one_round: float = 0.0
    evaluation: float = 0.0


def recorded(task: Task) -> float | None:
    """Returns the seconds that a run, else another seed of it, took; None if there are none."""
    runs = map(store.read, (task.folder, *sorted(task.folder.parent.glob("seed*"))))
    return next((run.record["seconds"] for run in runs if run.status is Status.OK), None)


def expected(task: Task, jobs: int = 1) -> float | None:
    """Returns how many seconds a run may take as one of `jobs` at a time; None if nobody knows."""
    if (seconds := recorded(task)) is not None:
        return seconds
    rate = _read(task)[-1]["runs"].get(task.folder.parent.name)
    return Rate(*rate).seconds(jobs) if rate else None


def probe(tasks: Sequence[Task], *, data_dir: str | None) -> None:
    """Makes probes of the runs of which nothing is known, once for all seeds.

    Without a folder of data sets, what would have to be downloaded stays unknown.
    """
    cells = {
        task.folder.parent: task
        for task in tasks
        if (data_dir is not None or {*task.cell.work.data_sets} <= _AT_HAND)
        and recorded(task) is None
        and task.folder.parent.name not in _read(task)[-1]["runs"]
    }
    with runtime.use("in_process") if cells else contextlib.nullcontext():
        for number, (folder, task) in enumerate(cells.items(), start=1):
            print(f"Probe {number}/{len(cells)}: {task.cell.name}", file=sys.stderr, flush=True)
            path, rates, here = _read(task)
            # Next time the data may be there.
            with contextlib.suppress(runner.MissingDataError, _FailedError):
                for name in task.cell.work.data_sets:
                    runner.fingerprint(name, data_dir)  # To load them is no part of a run.
                kept.forget()  # To build is.
                measured = functools.partial(_measured, here["probes"], data_dir)
                here["runs"][folder.name] = rate(task.cell.work, measured)
            path.parent.mkdir(parents=True, exist_ok=True)
            records.write_json(path, rates)


class _FailedError(Exception):
    """A probe failed."""


def rate(work: Work, measured: Callable[..., Probe]) -> Rate | None:
    """Returns a run's rate by probes that `measured` makes; None where there is nothing to probe.

    `measured` is given what is run, and a text that tells probes of the same apart.
    """
    if isinstance(work, Training):
        return _of_training(work.flags, measured)
    if work.scales_with == "flags":
        flags, given = Training(work.arguments["flags"]).flags, work.arguments
        one = _of_training(flags, measured)
        trials = len(given.get("trials", ())) + bool(given.get("last_trial"))
        more = trials * given["trial_rounds"] / int(flags["rounds"]) if trials else 0
        return one._replace(start=(1 + trials) * one.start, rest=(1 + more) * one.rest)
    if work.scales_with is None or work.start is not None:
        return None
    return _of_call(work, work.scales_with, measured)


def _of_training(flags: Mapping[str, str], measured: Callable[..., Probe]) -> Rate:
    config = RunConfig.of(**flags)
    rounds, probed = config.run.rounds, {k: flags[k] for k in flags if k not in _WITHOUT_EFFECT}
    evaluations = math.ceil(rounds / config.run.eval_every)
    if config.training.acquisitions_per_round is not None:
        # A round of several acquisitions takes as long as several rounds of one.
        rounds *= config.training.acquisitions_per_round
        probed["acquisitions_per_round"] = "1"
    few = min(_ROUNDS, rounds)
    found = measured(Training({**probed, "rounds": few, "eval_every": 1}))
    rest = few * (found.one_round + found.evaluation)
    start = max(0.0, found.seconds - rest)
    # A start keeps little more than one core busy; beside a long one, that would count.
    cores = found.busy / found.seconds if start > 2 * rest else (found.busy - start) / rest
    return Rate(start, rounds * found.one_round + evaluations * found.evaluation, cores)


def _of_call(call: Call, name: str, measured: Callable[..., Probe]) -> Rate:
    if not name:
        return Rate(measured(call).seconds, 0.0, 1.0)
    given, flags = call.arguments, call.arguments.get("flags", {})
    most = int(given[name] if name in given else flags[name])

    def made(length: int, key: str = "") -> Probe:
        own = {name: length} if name in given else {"flags": {**flags, name: str(length)}}
        return measured(dataclasses.replace(call, arguments={**given, **own}), key)

    first = made(_SHORT, ", first")  # It builds what the others find built.
    short, long = made(_SHORT), made(_LONG)
    slope = max(0.0, long.seconds - short.seconds) / (_LONG - _SHORT)
    start = max(0.0, first.seconds - _SHORT * slope)
    return Rate(start, most * slope, long.busy / long.seconds)


def _measured(made: dict[str, Any], data_dir: str | None, work: Work, key: str = "") -> Probe:
    """Makes a probe, unless it is among those that were made before, by what was run."""
    key = identity.name(work) + key
    if key not in made:
        with tempfile.TemporaryDirectory() as folder:
            began = time.process_time()
            task = Task(Cell("probe", work), 0, Path(folder, "probe"))
            run = runner.make(task, data_dir=data_dir)
            busy = time.process_time() - began
            if run is None or run.status is not Status.OK:
                print(f"  {run and run.error}", file=sys.stderr)
                raise _FailedError
            medians = []
            if isinstance(work, Training):
                rows = records.read_table(run.files / "times.csv")
                for name in ("training_seconds", "evaluation_seconds"):
                    medians.append(statistics.median(float(r[name]) for r in rows[1:] or rows))
            made[key] = Probe(run.record["seconds"], busy, *medians)
    return Probe(*made[key])


def _read(task: Task) -> tuple[Path, dict[str, Any], dict[str, dict[str, Any]]]:
    """Returns the file of rates, all that stands in it, and of that what this machine measured."""
    path = task.folder.parents[3] / "rates.json"
    rates = records.read_json(path) if path.exists() else {}
    return path, rates, rates.setdefault(runner.hardware(), {"probes": {}, "runs": {}})
