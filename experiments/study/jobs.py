"""Makes several runs at once: in processes of this machine, or on the nodes of a Ray cluster.

The processes are forks of this program, made before TensorFlow starts in it: a fork of a program in
which it has started would wait for threads that it does not have. Nodes see the folders of results
and data under the paths that they have here. All claim runs as any program does.
"""

import contextlib
import functools
import multiprocessing
import multiprocessing.connection
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent import futures
from pathlib import Path
from typing import Any

from experiments.study import rates, runner, store
from experiments.study.experiment import Call
from experiments.study.runner import Task
from experiments.study.store import Run, Status
from tff_het import dying_with_parent
from tff_het.simulation import ray_cluster, runtime

_PAUSE_SECONDS = 1.0  # Between two looks at runs that other programs are making.
Failed = Mapping[Path, Mapping[str, Any]]
"""What is known of runs that have failed before."""
Tasks = Sequence[Task]
Made = Iterator[tuple[Task, Run]]


def run_all(tasks: Tasks, count: int, *, data_dir: str | None, run: Callable | None = None) -> Made:
    """Makes the runs, `count` at the same time, giving each as it ends.

    Those that are done are not made again. What fails is kept as failed, also where its process was
    killed, and tried again the next time. What another program is making is waited for, and taken
    over where that program is gone. What has to be alone is made after all others. `run` makes
    those that are left, by default here or in forks.
    """
    runs = {task.folder: store.read(task.folder) for task in tasks}
    failed = {f: run.record for f, run in runs.items() if run.status is Status.FAILED}
    if run is None and count > 1:  # In a fork: reading data may start TensorFlow.
        with futures.ProcessPoolExecutor(
            1, multiprocessing.get_context("fork"), dying_with_parent.ask, (os.getpid(),)
        ) as fork:
            done = fork.submit(_done, tasks, data_dir).result()
    else:
        done = _done(tasks, data_dir)
    yield from ((task, store.read(task.folder)) for task in done)
    left = [task for task in tasks if task not in done]
    for alone in (False, True):
        batch = [task for task in left if task.cell.work.alone is alone]
        number = 1 if alone else count
        making = run or (_here if number == 1 else _in_forks)
        yield from making(batch, number, failed, data_dir)


def _done(tasks: Tasks, data_dir: str | None) -> list[Task]:
    return [task for task in tasks if runner.is_done(task, data_dir)]


def _here(tasks: Tasks, _: int, failed: Failed, data_dir: str | None) -> Made:
    left = {task.folder: task for task in tasks}
    while left:
        for task in list(left.values()):
            if task.start not in left and (run := _make(task, failed, data_dir)):
                yield left.pop(task.folder), run


def lost(task: Task, how: str) -> Run:
    """Keeps that a run has failed since its process was lost; the next time, it goes on."""
    key = store.read(task.folder).record.get("key", "")
    return store.write(task.folder, Status.FAILED, key, error=how)


def _in_forks(tasks: Tasks, count: int, failed: Failed, data_dir: str | None) -> Made:
    left = {task.folder: task for task in _longest_first(tasks)}
    workers = [_Worker(failed, data_dir) for _ in range(min(count, len(tasks)))]
    try:
        while left:
            for worker in workers:
                if worker.task is None and (ready := _next(worker, workers, left)):
                    worker.begin(ready)
            by_connection: dict[Any, _Worker] = {one.connection: one for one in workers}
            for connection in multiprocessing.connection.wait(list(by_connection)):
                worker = by_connection[connection]
                task, run = worker.ended()
                if not worker.process.is_alive():
                    workers[workers.index(worker)] = _Worker(failed, data_dir)
                del left[task.folder]
                if run is not None:
                    yield task, run
                else:  # Another program is making it: it is asked for again after others.
                    left[task.folder] = task
    finally:
        for worker in workers:
            worker.end()


def _longest_first(tasks: Tasks) -> list[Task]:
    """Sorts runs by how long all take that build the same."""
    seconds: dict[str, float] = {}
    for task in tasks:
        seconds[_built(task)] = seconds.get(_built(task), 0.0) + (rates.expected(task) or 1.0)
    return sorted(tasks, key=lambda task: -seconds[_built(task)])


def _built(task: Task) -> str:
    """What runs share that need the same process: their method, network and kind of data."""
    work = task.cell.work
    if isinstance(work, Call):
        return task.folder.parent.name
    return " ".join(work.flags.get(name, "") for name in ("method", "dataset", "model"))


class _Worker:
    """A process that makes runs, the `task` that it is at, and what it has built for others."""

    def __init__(self, *arguments: Any):
        """Forks this program; the arguments are those of `_work`."""
        context = multiprocessing.get_context("fork")
        self.task: Task | None = None
        self.built: set[str] = set()
        self.connection, theirs = context.Pipe()
        given = (theirs, os.getpid(), *arguments)
        self.process = context.Process(target=_work, args=given, daemon=True)
        self.process.start()
        theirs.close()  # So that the connection ends with the process.

    def begin(self, task: Task) -> None:
        """Has it make a run."""
        self.task = task
        self.built.add(_built(task))
        self.connection.send(task)

    def ended(self) -> tuple[Task, Run | None]:
        """Returns the run that it was at, None where another program is making it.

        If the process was killed, the run has failed. Raises OSError if not even that can be kept.
        """
        task, self.task = self.task, None
        try:
            found = self.connection.recv()
        except EOFError:
            self.end()
            how = f"ended with code {self.process.exitcode}."
            if task is None:
                raise OSError(f"A process that makes runs {how}") from None
            found = lost(task, f"The process of this run {how}")
        if isinstance(found, OSError):
            raise found
        assert task is not None
        return task, found

    def end(self) -> None:
        """Asks it to stop, as a signal does: its run goes on from there the next time."""
        self.process.terminate()
        self.process.join()
        self.connection.close()


def _next(worker: _Worker, workers: Sequence[_Worker], left: Mapping[Path, Task]) -> Task | None:
    """The run that a process makes next: of what it has built, else of what no other has built."""
    under_way = [other.task for other in workers]
    built = {name for other in workers for name in other.built}
    ready = [t for t in left.values() if t not in under_way and t.start not in left]
    # Of equals, the first.
    far = [(_built(task) not in worker.built, _built(task) in built) for task in ready]
    return ready[far.index(min(far))] if ready else None


def _work(connection: Any, parent: int, failed: Failed, data_dir: str | None) -> None:
    """Makes the runs that it is sent, and sends each back; or an OSError that ends it."""
    dying_with_parent.ask(parent)
    with contextlib.suppress(KeyboardInterrupt):
        while True:
            try:
                connection.send(_make(connection.recv(), failed, data_dir))
            except OSError as error:
                connection.send(error)


def _make(
    task: Task, failed: Failed, data_dir: str | None, clients_in_parallel: int | None = None
) -> Run | None:
    """Makes a run; None, after a pause, where another program is making it."""
    with runtime.use("in_process", clients_in_parallel=clients_in_parallel):
        made = runner.make(task, failed, data_dir=data_dir)
    if made is None:
        time.sleep(_PAUSE_SECONDS)
    return made


@contextlib.contextmanager
def on_ray(count: int | None) -> Iterator[functools.partial[Made]]:
    """Connects to a cluster (`ray_cluster.connected`), and yields `run_all` on its nodes.

    By default, `count` is what the cluster has room for. A run whose process or node is lost goes
    on from its last checkpoint on another node; after the fourth time it has failed.
    """
    with ray_cluster.connected() as ray:
        run = functools.partial(_run_on_ray, ray)
        yield functools.partial(run_all, count=count or sys.maxsize, run=run)


def _run_on_ray(ray: Any, tasks: Tasks, count: int, failed: Failed, data_dir: str | None) -> Made:
    make = ray.remote(_make)  # One core, and three more tries if it is lost.
    data_dir = data_dir and os.path.abspath(data_dir)
    left = {task.folder: task for task in tasks}
    calls: dict[Any, Task] = {}
    while left:
        ready = [t for t in left.values() if t not in calls.values() and t.start not in left]
        for task in ready[: count - len(calls)]:
            calls[make.remote(task, failed, data_dir, 1)] = task
        for call in ray.wait(list(calls), timeout=_PAUSE_SECONDS)[0]:
            task = calls.pop(call)
            try:
                found = ray.get(call)
            except ray.exceptions.RayTaskError as error:  # Not even a failure can be kept.
                raise error.cause from None
            except ray.exceptions.RayError as error:
                found = lost(task, f"Lost by Ray: {' '.join(str(error).split())}")
            if found is not None:
                yield left.pop(task.folder), found
