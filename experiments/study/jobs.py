"""Makes several runs at once, each process its own share first.

The processes are forks of this program, made before TensorFlow starts in it: a fork of a program in
which it has started would wait for threads that it does not have. They share the runs as equal
programs do, by claims.
"""

import contextlib
import multiprocessing
import multiprocessing.connection
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from experiments.study import claims, rates, runner, store
from experiments.study.experiment import Call
from experiments.study.runner import Task
from experiments.study.store import Run, Status
from tff_het import dying_with_parent
from tff_het.backend import internals


def possible() -> bool:
    """Whether this program can be forked: TensorFlow has not started in it."""
    return not internals.has_started()


def run_all(
    tasks: Sequence[Task], count: int, *, data_dir: str | None
) -> Iterator[tuple[Task, Run]]:
    """Makes the runs, `count` at the same time, giving each as it ends; as `runner.run_all`.

    What has to be alone is made after all others. A run whose process was killed has failed, and
    goes on from there the next time.
    """
    failed = runner.already_failed(tasks)
    done = [task for task in tasks if runner.is_done(task, data_dir)]
    yield from ((task, store.read(task.folder)) for task in done)
    left = [task for task in tasks if task not in done]
    for alone in (False, True):
        batch = [task for task in left if is_alone(task) is alone]
        yield from _run(batch, 1 if alone else count, failed, data_dir)


def is_alone(task: Task) -> bool:
    """Whether nothing may run beside it."""
    return isinstance(task.cell.work, Call) and task.cell.work.alone


def _run(
    tasks: Sequence[Task],
    count: int,
    failed: Mapping[Path, Mapping[str, Any]],
    data_dir: str | None,
) -> Iterator[tuple[Task, Run]]:
    left = {task.folder: task for task in tasks}
    workers = [_Worker(share, tasks, failed, data_dir) for share in _shares(tasks, count)]
    try:
        while left:
            by_connection: dict[Any, _Worker] = {one.connection: one for one in workers}
            for connection in multiprocessing.connection.wait(list(by_connection)):
                worker = by_connection[connection]
                try:
                    found = worker.connection.recv()
                except EOFError:
                    found = worker.killed()
                    workers.remove(worker)
                    workers.append(_Worker(worker.share, tasks, failed, data_dir))
                if isinstance(found, OSError):  # Not even a failure can be kept.
                    raise found
                worker.begun = Path() if isinstance(found, Run) else found
                if isinstance(found, Run) and found.folder in left:
                    yield left.pop(found.folder), found
    finally:
        for worker in workers:
            worker.end()


def _shares(tasks: Sequence[Task], count: int) -> list[set[str]]:
    """Assigns to each process what it builds, the longest first to the one that has least."""
    seconds: dict[str, float] = {}
    for task in tasks:
        seconds[_built(task)] = seconds.get(_built(task), 0.0) + (rates.expected(task) or 1.0)
    shares: list[set[str]] = [set() for _ in range(min(count, len(tasks)))]
    for built in sorted(seconds, key=lambda one: -seconds[one]):
        min(shares, key=lambda share: sum(map(seconds.__getitem__, share))).add(built)
    return shares


def _built(task: Task) -> str:
    """What runs share that need the same process: their method, network and kind of data."""
    work = task.cell.work
    if isinstance(work, Call):
        return task.folder.parent.name
    return " ".join(work.flags.get(name, "") for name in ("method", "dataset", "model"))


class _Worker:
    """A process that makes the runs of a share first."""

    def __init__(self, share: set[str], *arguments: Any):
        """Forks this program; the arguments are those of `_work`."""
        context = multiprocessing.get_context("fork")
        self.share, self.begun = share, Path()
        self.connection, theirs = context.Pipe(duplex=False)
        given = (theirs, os.getpid(), share, *arguments)
        self.process = context.Process(target=_work, args=given, daemon=True)
        self.process.start()
        theirs.close()  # So that the connection ends with the process.

    def killed(self) -> Run:
        """Keeps that the run has failed in which the process was killed."""
        self.end()
        how = f"ended with code {self.process.exitcode}."
        if self.begun == Path():
            raise OSError(f"A process that makes runs {how}")
        key = store.read(self.begun).record.get("key", "")
        return store.write(self.begun, Status.FAILED, key, error=f"The process of this run {how}")

    def end(self) -> None:
        """Asks it to stop, as a signal does: its run goes on from there the next time."""
        self.process.terminate()
        self.process.join()
        self.connection.close()


def _work(
    connection: multiprocessing.connection.Connection,
    parent: int,
    own: set[str],
    tasks: Sequence[Task],
    failed: Mapping[Path, Mapping[str, Any]],
    data_dir: str | None,
) -> None:
    """Makes the runs of a share, then those of others where that ends sooner.

    It sends the folder of each run that it begins, then the run; or an OSError that ends it.
    """
    dying_with_parent.ask(parent)
    taken: list[float] = []

    def wants(task: Task) -> bool:
        building = max(taken) - min(taken) if taken else 0.0
        if _built(task) not in own and _pays(task, tasks, building, data_dir):
            own.add(_built(task))
        if _built(task) in own:
            connection.send(task.folder)
        return _built(task) in own

    others_last = [t for t in tasks if _built(t) in own]
    others_last += [t for t in reversed(tasks) if _built(t) not in own]
    with contextlib.suppress(KeyboardInterrupt):
        try:
            made = runner.run_all(others_last, data_dir=data_dir, failed=failed, wants=wants)
            for _, run in made:
                taken.append(run.record.get("seconds", 0.0))
                connection.send(run)
        except OSError as error:
            connection.send(error)


def _pays(task: Task, tasks: Sequence[Task], building: float, data_dir: str | None) -> bool:
    """Whether to build what another process has built ends sooner than to leave it the rest."""
    like = [other for other in tasks if _built(other) == _built(task)]
    done = [other for other in like if runner.is_done(other, data_dir)]
    left = [other for other in like if other not in done and not claims.read(other.folder)]
    seconds = [store.read(other.folder).record["seconds"] for other in done]
    return bool(left) and len(left) * min(seconds, default=building + 1) > building
