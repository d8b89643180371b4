"""How long runs take: as long as others took, else what short probes on this machine say.

A run has a start, with the warm-up of its first round, and then takes its time by rounds, steps
and evaluations. Probes are runs with few of them. OUTPUT_DIR/rates.json keeps what they measured.
"""

import contextlib
import dataclasses
import math
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from experiments.run import processes, setup
from experiments.study import identity, runner, store
from experiments.study.experiment import Call, Cell, Training
from experiments.study.runner import Task
from experiments.study.store import Run, Status
from tff_het import kept
from tff_het.simulation import records, runtime

_ROUNDS, _LONGER_ROUNDS = 8, 4  # Of the first probe, and of those with more steps in a round.
_AT_HAND = {"digits", "digits_vqa"}  # They come with scikit-learn.
_FEW_STEPS = 100  # In a round of the first probe, of all clients together.
_FEW = 2  # Rounds or the like of a function's first probe: some need more than one.
_DIFFERENCE_SECONDS = 0.5  # Between a round of the first probe and of the last: more than noise.
# No round, step or evaluation is longer for them.
_WITHOUT_EFFECT = (
    *("rounds", "eval_every", "checkpoint_every", "goal_accuracy", "goal_selection"),
    *("client_learning_rate", "shuffle_fraction", "local_epochs", "local_steps"),
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


class _Probe(NamedTuple):
    """What a probe measured."""

    length: float  # Steps in a round; of a function, the argument with which its time grows.
    seconds: float  # Of such a round, or of the function.
    cores: float  # How many it keeps busy.
    evaluation: float = 0.0  # Seconds of one.
    start: float = 0.0  # Seconds of all else.


def recorded(task: Task) -> float | None:
    """Returns the seconds that a run, else another seed of it, took; None if there are none."""
    runs = map(store.read, (task.folder, *sorted(task.folder.parent.glob("seed*"))))
    return next((run.record["seconds"] for run in runs if run.status is Status.OK), None)


def expected(task: Task, jobs: int = 1) -> float | None:
    """Returns how many seconds a run may take as one of `jobs` at a time; None if nobody knows.

    What is recorded counts as it is.
    """
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
            with contextlib.suppress(runner.MissingDataError):  # Next time they may be there.
                here["runs"][folder.name] = Probing(here["probes"], data_dir).rate(task.cell.work)
            path.parent.mkdir(parents=True, exist_ok=True)
            records.write_json(path, rates)


class _FailedError(Exception):
    """A probe failed."""


class Probing:
    """Makes probes, each once; `made` has those of before, by what was run."""

    def __init__(self, made: dict[str, Any], data_dir: str | None):
        self._made, self._data_dir = made, data_dir

    def rate(self, work: Training | Call) -> Rate | None:
        """Returns a run's rate; None where there is nothing to probe, or probes fail.

        Raises MissingDataError if its data are not there.
        """
        for name in work.data_sets:
            runner.fingerprint(name, self._data_dir)  # To load them is no part of a run.
        kept.forget()  # To build is.
        with contextlib.suppress(_FailedError):
            if isinstance(work, Training):
                return self._of_training(work.flags)
            if work.scales_with == "flags":
                return self._of_training(Training(work.arguments["flags"]).flags)
            if work.scales_with is not None and work.start is None:
                return self._of_call(work, work.scales_with)
        return None

    def _of_training(self, flags: Mapping[str, str]) -> Rate:
        made = setup.of_flags(flags, seed=0, data_dir=self._data_dir)
        trainers, rounds = processes.trainers(made, flags["method"]), made.settings.rounds
        steps, clients = trainers.steps(range(rounds), made.training), len(trainers.schedule(0))
        evaluations = math.ceil(rounds / made.settings.eval_every)
        probed = {name: value for name, value in flags.items() if name not in _WITHOUT_EFFECT}
        if made.training.acquisition is not None:
            # A round of several acquisitions takes as long as several rounds of one.
            rounds *= made.training.acquisition.per_round
            probed["acquisitions_per_round"] = "1"
        most = max(1, math.ceil(steps / rounds / clients))  # Steps of a client in a round.
        least = min(most, max(1, _FEW_STEPS // clients))

        def measure(local_steps: int) -> _Probe:
            more = {"rounds": _ROUNDS if local_steps == least else _LONGER_ROUNDS}
            more |= {"eval_every": more["rounds"] // 2, "local_steps": local_steps}
            if local_steps > least and "new_test" in probed:
                more["new_test"] = False  # It is part of the first one's start.
            return self._measured(Training({**probed, **more}))

        first, last, step = _lengthened(measure, least, most)
        rest = rounds * (first.seconds - step * first.length) + steps * step
        return Rate(first.start, rest + evaluations * first.evaluation, last.cores)

    def _of_call(self, call: Call, name: str) -> Rate:
        if not name:
            return Rate(self._measured(call).seconds, 0.0, 1.0)
        given, flags = call.arguments, call.arguments.get("flags", {})
        most = int(given[name] if name in given else flags[name])
        least = min(_FEW, most)

        def measure(length: int, key: str = "") -> _Probe:
            own = {name: length} if name in given else {"flags": {**flags, name: str(length)}}
            probed = dataclasses.replace(call, arguments={**given, **own})
            return self._measured(probed, length, key)

        first = measure(least, ", first")  # It builds what the others find built.
        _, last, slope = _lengthened(measure, least, most)
        return Rate(first.seconds - least * slope, most * slope, last.cores)

    def _measured(self, work: Training | Call, length: float = 0.0, key: str = "") -> _Probe:
        """Makes a probe, of this length if it is of a function, unless it was made."""
        key = identity.name(work) + key
        if key not in self._made:
            with tempfile.TemporaryDirectory() as folder:
                task = Task(Cell("probe", work), 0, Path(folder, "probe"))
                began = time.process_time()
                run = runner.make(task, data_dir=self._data_dir)
                busy = time.process_time() - began
                if run is None or run.status is not Status.OK:
                    print(f"  {run and run.error}", file=sys.stderr)
                    raise _FailedError
                seconds = run.record["seconds"]
                found = _Probe(length, seconds, busy / seconds)
                self._made[key] = _of_rounds(run, found) if isinstance(work, Training) else found
        return _Probe(*self._made[key])


def _of_rounds(run: Run, whole: _Probe) -> _Probe:
    """Returns what the probe of a training says of its rounds."""
    rows = records.read_table(run.files / "times.csv")
    # The start includes the warm-up of the first round and of the first of two evaluations.
    seconds = statistics.mean(float(row["training_seconds"]) for row in rows[1:])
    evaluation = float(rows[-1]["evaluation_seconds"])
    rest = len(rows) * seconds + 2 * evaluation
    start, cores = max(0.0, whole.seconds - rest), whole.cores
    if rest > start / 2:  # A start keeps little more than one core busy; for less it would count.
        cores = (cores * whole.seconds - start) / rest
    length = run.metrics["steps_total"] / len(rows)
    return _Probe(length, seconds, cores, evaluation, start)


def _lengthened(
    measure: Callable[[int], _Probe], least: int, most: int
) -> tuple[_Probe, _Probe, float]:
    """Makes longer and longer probes, until what more steps take is more than noise.

    Returns the first probe, the last one, and the seconds that one more step adds.
    """
    length, first = least, measure(least)
    last = first
    while length < most and last.seconds < first.seconds + _DIFFERENCE_SECONDS:
        length = min(most, length * int(min(16, max(4, 1 / last.seconds))))
        last = measure(length)
    more = last.length - first.length
    return first, last, max(0.0, last.seconds - first.seconds) / more if more else 0.0


def _read(task: Task) -> tuple[Path, dict[str, Any], dict[str, dict[str, Any]]]:
    """Returns the file of rates, all that stands in it, and of that what this machine measured."""
    path = task.folder.parents[3] / "rates.json"
    rates = records.read_json(path) if path.exists() else {}
    return path, rates, rates.setdefault(runner.hardware(), {"probes": {}, "runs": {}})
