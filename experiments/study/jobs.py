"""Executes runs in parallel, one process each.

A run leaves cores idle: while its process is built, between two rounds, and where few clients
train. The processes are forks of this program, made before TensorFlow starts in it: a fork of a
program in which it has started would wait for threads that it does not have.
"""

import collections
import contextlib
import functools
import multiprocessing
import multiprocessing.connection
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from experiments.study import rates, runner, store
from experiments.study.experiment import Call
from experiments.study.runner import Task
from experiments.study.store import Run, Status
from tff_het import dying_with_parent
from tff_het.backend import internals
from tff_het.simulation import runtime

_OPEN_CELLS = 8  # What was built for so many is still kept when their next seeds come.


def possible() -> bool:
    """Whether this program can be forked: TensorFlow has not started in it."""
    return not internals.has_started()


def run_all(
    tasks: Sequence[Task], count: int, *, data_dir: str | None
) -> Iterator[tuple[Task, Run]]:
    """Makes the runs, giving each as it ends; those that are done are not made again.

    What starts from another run is made after it; what has to be alone, after all others. A run
    whose process was killed has failed, and goes on from there the next time.

    Args:
      tasks: The runs.
      count: How many are made at the same time, at least 1.
      data_dir: The folder of data sets.
    """
    failed = runner.already_failed(tasks)
    done = [task for task in tasks if runner.is_done(task, data_dir)]
    yield from ((task, store.read(task.folder)) for task in done)
    left = [task for task in tasks if task not in done]
    queue = _Queue(left, {_cell(task): rates.expected(task) for task in left})
    start = functools.partial(_Worker, tasks, failed, data_dir)
    workers = [start() for _ in range(min(count, len(queue.waiting)))]
    try:
        while queue.waiting or any(worker.task for worker in workers):
            for worker in workers:
                if not worker.task and (task := queue.take(worker, workers)):
                    worker.give(task)
            busy = [worker.connection for worker in workers if worker.task]
            if not busy:  # All that is left is made by others.
                time.sleep(runner.PAUSE_SECONDS)
            ended = multiprocessing.connection.wait(busy, runner.PAUSE_SECONDS)
            for worker in [w for w in workers if w.connection in ended]:
                task, seconds, result = worker.take()
                if result is None:
                    queue.put_back(task)
                    continue
                queue.note(task, seconds)
                if isinstance(result, Exception):
                    raise result
                if isinstance(result, str):
                    key = store.read(task.folder).record.get("key", "")
                    result = store.write(task.folder, Status.FAILED, key, error=result)
                    workers[workers.index(worker)] = start()
                yield task, result
    finally:
        for worker in workers:
            worker.end()


class _Worker:
    """A process that makes runs."""

    def __init__(
        self,
        tasks: Sequence[Task],
        failed: Mapping[Path, Mapping[str, Any]],
        data_dir: str | None,
    ):
        """Forks this program."""
        self.task: Task | None = None
        self._given = 0.0
        self.cells: set[Path] = set()
        self._tasks = tasks
        context = multiprocessing.get_context("fork")
        self.connection, theirs = context.Pipe()
        arguments = (theirs, os.getpid(), tasks, failed, data_dir)
        self._process = context.Process(target=_work, args=arguments, daemon=True)
        self._process.start()
        theirs.close()  # So that the connection ends with the process.

    def give(self, task: Task) -> None:
        """Has it make a run."""
        self.task, self._given = task, time.monotonic()
        self.cells.add(_cell(task))
        self.connection.send(self._tasks.index(task))

    def take(self) -> tuple[Task, float, Run | OSError | str | None]:
        """Returns what has ended, its seconds, and what it gave.

        That is the run; None where another program is making it; an error where not even its
        failure could be kept; or how its process ended where that did.
        """
        assert self.task is not None
        task, self.task = self.task, None
        seconds = time.monotonic() - self._given
        try:
            return task, seconds, self.connection.recv()
        except EOFError:
            self._process.join()
            how = f"The process of this run ended with code {self._process.exitcode}."
            return task, seconds, how

    def end(self) -> None:
        """Asks it to stop, as a signal does: its run goes on from there the next time."""
        self._process.terminate()
        self._process.join()
        self.connection.close()


def _work(
    connection: multiprocessing.connection.Connection,
    parent: int,
    tasks: Sequence[Task],
    failed: Mapping[Path, Mapping[str, Any]],
    data_dir: str | None,
) -> None:
    dying_with_parent.ask(parent)
    with contextlib.suppress(KeyboardInterrupt), runtime.use("in_process"):
        while True:
            task = tasks[connection.recv()]
            try:
                made = runner.make(task, failed, data_dir=data_dir)
            except OSError as error:  # The disk is full: the program ends.
                connection.send(error)
            else:
                connection.send(made)


class _Queue:
    """The runs that nobody has begun, and how long the others took."""

    def __init__(self, tasks: Sequence[Task], expected: Mapping[Path, float | None]):
        """`expected` has the seconds of a cell's runs, where they are known."""
        self.waiting = list(tasks)
        self._expected = expected
        self._seconds: dict[Path, list[float]] = collections.defaultdict(list)
        self._later: dict[Path, float] = {}

    def note(self, task: Task, seconds: float) -> None:
        """Notes how long a run took."""
        self._seconds[_cell(task)].append(seconds)

    def put_back(self, task: Task) -> None:
        """Leaves a run that another program is making for a while."""
        self.waiting.append(task)
        self._later[task.folder] = time.monotonic() + runner.PAUSE_SECONDS

    def take(self, worker: "_Worker", workers: Sequence["_Worker"]) -> Task | None:
        """Returns what a process makes next, if there is something for it.

        First what nobody has begun, the longest first, and of equals the last: a table's first
        rows tend to be the simple ones. Then other seeds of what this process has built, those
        first that only it has; then what others have built.
        """
        under_way = [other.task for other in workers if other.task is not None]
        pending = {task.folder for task in (*self.waiting, *under_way)}
        now = time.monotonic()
        ready = [
            task
            for task in self.waiting
            if task.start not in pending and self._later.get(task.folder, now) <= now
        ]
        together = [task for task in ready if not is_alone(task)]
        if not together or any(map(is_alone, under_way)):
            return self._taken(ready[0]) if ready and not under_way else None
        left = collections.Counter(map(_cell, together))
        may_begin = len(worker.cells & set(left)) < _OPEN_CELLS

        def rank(task: Task) -> tuple[float, ...]:
            cell = _cell(task)
            builders = sum(cell in other.cells for other in workers)
            if not builders and may_begin:
                return 0, -(self._expected[cell] or 0.0), -list(left).index(cell)
            return (1, builders) if cell in worker.cells else (2, -left[cell])

        task = min(together, key=rank)
        if rank(task)[0] < 2 or self._pays(_cell(task), left[_cell(task)]):
            return self._taken(task)
        return None

    def _taken(self, task: Task) -> Task:
        self.waiting.remove(task)
        return task

    def _pays(self, cell: Path, left: int) -> bool:
        """Whether building once more is faster than leaving the runs to those that have built."""
        taken = self._seconds[cell]
        if not taken:
            return True
        first = max(
            (max(seconds) / min(seconds) for seconds in self._seconds.values() if seconds[1:]),
            default=1.0,
        )
        later = min(taken) if taken[1:] else taken[0] / first
        return max(taken) < 1.1 * left * later


def is_alone(task: Task) -> bool:
    """Whether nothing may run beside it."""
    return isinstance(task.cell.work, Call) and task.cell.work.alone


def _cell(task: Task) -> Path:
    """What all seeds share, in tables that share runs as well."""
    return task.folder.parent
