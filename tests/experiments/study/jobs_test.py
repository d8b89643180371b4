"""Runs beside each other: each once, in the right order, and nothing lost where a process dies."""

import collections
import contextlib
import dataclasses
import os
import pathlib
import signal
import subprocess
import sys
import time
import types

import pytest
import tensorflow as tf

from experiments.study import jobs, store
from experiments.study.experiment import Call, Cell, Training
from experiments.study.runner import Task
from experiments.study.store import Status
from tff_het.backend import internals

ROOT = pathlib.Path(__file__).parents[3]


def work(*, seed: int, folder: pathlib.Path, data_dir: str | None, mean: float) -> dict:
    """A cell's function, in which a file can have the process killed."""
    if (folder.parents[2] / "die").exists() and seed == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    (folder / "began").write_text(str(time.monotonic_ns()))
    time.sleep(0.05)
    (folder / "ended").write_text(str(time.monotonic_ns()))
    return {"value": mean + seed, "process": os.getpid()}


def tasks_of(folder: pathlib.Path, **cells: bool) -> list[Task]:
    """Three seeds of each cell; the values say whether it has to be alone."""
    return [
        Task(Cell(name, Call(work, {"mean": 1.0}, alone=alone)), seed, folder / name / f"{seed}")
        for name, alone in cells.items()
        for seed in range(3)
    ]


def made(tasks: list[Task], count: int) -> dict[pathlib.Path, store.Run]:
    found = list(jobs.run_all(tasks, count, data_dir=None))
    assert sorted(task.folder for task, _ in found) == sorted(task.folder for task in tasks)
    return {task.folder: run for task, run in found}


def times(run: store.Run) -> tuple[int, int]:
    began, ended = ((run.files / name).read_text() for name in ("began", "ended"))
    return int(began), int(ended)


def test_every_run_is_made_once_by_several_processes(tmp_path):
    runs = made(tasks_of(tmp_path, a=False, b=False), 2)
    assert {run.status for run in runs.values()} == {Status.OK}
    assert [run.metrics["value"] for _, run in sorted(runs.items())] == [1, 2, 3, 1, 2, 3]
    assert len({run.metrics["process"] for run in runs.values()} - {os.getpid()}) == 2
    again = made(tasks_of(tmp_path, a=False, b=False), 2)
    assert {folder: run.record for folder, run in again.items()} == {
        folder: run.record for folder, run in runs.items()
    }


def test_what_measures_time_runs_alone(tmp_path):
    runs = made(tasks_of(tmp_path, a=False, timed=True, b=False), 2)
    timed = [times(run) for folder, run in runs.items() if folder.parent.name == "timed"]
    for began, ended in timed:
        others = [other for other in map(times, runs.values()) if other != (began, ended)]
        assert all(end < began or ended < start for start, end in others)


def test_a_killed_process_costs_its_own_run_alone(tmp_path):
    (tmp_path / "die").touch()
    tasks = tasks_of(tmp_path, a=False, b=False)
    runs = made(tasks, 2)
    failed = [run for run in runs.values() if run.status is Status.FAILED]
    assert [run.error for run in failed] == ["The process of this run ended with code -9."] * 2
    assert {run.folder.name for run in failed} == {"1"}
    # The key of what was begun is still there, so that a training goes on.
    assert all(run.record["key"] for run in failed)
    (tmp_path / "die").unlink()
    assert {run.status for run in made(tasks, 2).values()} == {Status.OK}


def test_whether_runs_are_done_is_found_in_a_fork(tmp_path, monkeypatch):
    # Reading embeddings starts TensorFlow: later forks would wait for its threads forever.
    here = os.getpid()
    monkeypatch.setattr(jobs.runner, "is_done", lambda task, data_dir: os.getpid() == here)
    assert {run.status for run in made(tasks_of(tmp_path, a=False), 2).values()} == {Status.OK}


def test_whether_tensorflow_has_started_is_known():
    """A program in which it has is not forked."""
    internals.has_started()  # To ask changes nothing.
    tf.constant(1)
    assert internals.has_started()


# --- Who makes what -----------------------------------------------------------------------------


def training(method: str, seed: int, folder: pathlib.Path) -> Task:
    cell = Cell(method, Training({"dataset": "digits", "method": method}))
    return Task(cell, seed, folder / method / str(seed))


def test_what_takes_longest_comes_first(tmp_path, monkeypatch):
    seconds = {"a": 9.0, "b": 2.5, "c": 3.0}
    monkeypatch.setattr(jobs.rates, "expected", lambda task: seconds[task.cell.name])
    names = "cabcb"
    tasks = [training(name, seed, tmp_path) for seed, name in enumerate(names)]
    assert "".join(task.cell.name for task in jobs._longest_first(tasks)) == "accbb"
    seconds["c"] = 2.4
    assert "".join(task.cell.name for task in jobs._longest_first(tasks)) == "abbcc"


def test_a_process_goes_on_with_what_it_has_built_and_else_with_what_no_other_has(tmp_path):
    tasks = [training(name, seed, tmp_path) for seed in range(3) for name in "abc"]
    left = {task.folder: task for task in tasks}
    first, second = both = [types.SimpleNamespace(task=None, built=set()) for _ in range(2)]

    def begins(worker) -> str | None:
        if worker.task is not None:
            del left[worker.task.folder]
        worker.task = jobs._next(worker, both, left)
        worker.built |= {jobs._built(worker.task)} if worker.task else set()
        return worker.task and f"{worker.task.cell.name}{worker.task.seed}"

    assert [begins(worker) for worker in both] == ["a0", "b0"]
    assert [begins(second) for _ in range(3)] == ["b1", "b2", "c0"]
    assert begins(first) == "a1"
    assert [begins(second) for _ in range(2)] == ["c1", "c2"]
    # It helps the first one, with another run than that is at.
    assert [begins(second), begins(second), begins(first)] == ["a2", None, None]


def test_a_run_waits_for_the_one_that_it_starts_from(tmp_path):
    start = training("a", 0, tmp_path)
    task = dataclasses.replace(training("b", 0, tmp_path), start=start.folder)
    worker = types.SimpleNamespace(task=None, built={jobs._built(task)})
    assert jobs._next(worker, [worker], {t.folder: t for t in (task, start)}) == start
    assert jobs._next(worker, [worker], {task.folder: task}) == task


# --- As a program -------------------------------------------------------------------------------


def program(folder: pathlib.Path, *flags: str) -> list[str]:
    return [
        *(sys.executable, "-m", "experiments.sweep", "--seeds=2", "--over=method=hdafl,fed_avg"),
        *("--set=partition=iid", "--set=local_steps=2", f"--output_dir={folder}", *flags),
    ]


def processes_of(session: int) -> list[int]:
    """The processes of a session that still run."""
    found = []
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = stat.read_text().rsplit(") ", 1)[1].split()
            if int(fields[3]) == session and fields[0] != "Z":
                found.append(int(stat.parent.name))
    return found


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_stopped_program_leaves_no_process_and_goes_on(tmp_path, number):
    rounds = "--set=rounds=30"
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    running = subprocess.Popen(
        program(tmp_path / "stopped", rounds, "--jobs=2"),
        cwd=ROOT,
        env=environment,
        start_new_session=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 120
    while not list(tmp_path.rglob("run.sqlite")) and time.monotonic() < deadline:
        time.sleep(0.05)
    running.send_signal(number)
    _, said = running.communicate(timeout=60)
    assert running.returncode in (-number, 128 + number), said
    assert "Traceback" not in said
    while processes_of(running.pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert processes_of(running.pid) == []
    pages = {}
    for folder, flags in (("stopped", ["--jobs=2"]), ("whole", ["--jobs=1"])):
        command = program(tmp_path / folder, rounds, *flags)
        subprocess.run(command, cwd=ROOT, env=environment, check=True, timeout=300)
        pages[folder] = {
            str(path.relative_to(tmp_path / folder)): path.read_bytes()
            for pattern in ("metrics.csv", "clients.csv", "sweep-*.csv")
            for path in (tmp_path / folder).rglob(pattern)
        }
    assert pages["stopped"] == pages["whole"]
    assert collections.Counter(path.split("/")[-1] for path in pages["whole"])["metrics.csv"] == 4
