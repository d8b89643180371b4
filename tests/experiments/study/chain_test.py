"""Runs that start from other runs: their order, what they are, and what the page says of them."""

import dataclasses
import pathlib

import numpy as np
import pytest

from experiments.study import identity, runner, store
from experiments.study.experiment import (
    Call,
    Cell,
    Experiment,
    Form,
    Place,
    Scale,
    Table,
    Training,
)
from experiments.study.measures import metric
from experiments.study.store import Status
from tff_het.simulation import runtime
from tff_het.simulation import start as starts

COMMON = {
    "dataset": "digits",
    "partition": "iid",
    "num_clients": "2",
    "model": "mlp",
    "local_steps": "2",
    "rounds": "1",
}
FIRST = Training({**COMMON, "method": "fed_avg"})
SECOND = Training({**COMMON, "method": "lg_fedavg"}, start=FIRST)
THIRD = Training({**COMMON, "method": "hdafl"}, start=SECOND)
DIVERGING = {**FIRST.flags, "client_learning_rate": "1e30"}
BY_TEST = Training({**COMMON, "method": "fed_avg", "goal_accuracy": "1", "goal_selection": "test"})
AFTER_TEST = Training({**COMMON, "method": "lg_fedavg"}, start=BY_TEST)


def look_at(
    *, seed: int, folder: pathlib.Path, data_dir: str | None, start_from: pathlib.Path, factor: int
) -> dict[str, float]:
    """A function that starts from a run."""
    del seed, folder, data_dir
    values = starts.read(start_from).values
    return {"local_test_accuracy_mean": factor * float(np.abs(values["output/kernel"]).sum())}


LOOK = Call(look_at, {"factor": 2}, start=SECOND)
LOOK_BY_TEST = Call(look_at, {"factor": 2}, start=AFTER_TEST)


def experiment(**works: Training | Call) -> Experiment:
    """A table with one row for each of these, and one of a difference of the first two."""
    names = list(works)
    form = Form(digits=3)
    places = [Place(name, "x", metric(name, "local_test_accuracy_mean"), form) for name in names]
    if len(names) > 1:
        accuracy = [metric(name, "local_test_accuracy_mean") for name in names[:2]]
        places.append(Place("difference", "x", accuracy[0] - accuracy[1], form))
    cells = tuple(Cell(name, work) for name, work in works.items())
    return Experiment(
        "hdafl.chained",
        "Chained",
        {"smoke": Scale(cells, 1, "Few.")},
        tables=[Table("Values", tuple(places))],
    )


def plan(folder, seeds=(0, 1), **works: Training | Call) -> list[runner.Task]:
    return runner.plan(experiment(**works), "smoke", seeds, folder)


def make_all(folder, **works: Training | Call) -> list[store.Run]:
    """Makes and keeps the runs of seed 0."""
    store.write_seeds(folder / "hdafl" / "chained" / "smoke", [0])
    tasks = plan(folder, [0], **works)
    with runtime.use("in_process"):
        return [runner.make(task, data_dir=None) for task in tasks]


def pretend(harness, **works: Training | Call) -> Experiment:
    """Results as if these had been run with seed 0, and the experiment they are of."""
    store.write_seeds(harness.folder / "hdafl" / "chained" / "smoke", [0])
    for place, task in enumerate(plan(harness.folder, [0], **works)):
        store.write(
            task.folder,
            Status.OK,
            "key",
            metrics={"local_test_accuracy_mean": place / 8},
            seconds=1.0,
            data={},
            versions={},
            runtime="in_process",
            hardware="none",
        )
    return experiment(**works)


# --- Order ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "works",
    [
        {"a": THIRD},
        {"a": THIRD, "b": SECOND, "c": FIRST},
        {"a": FIRST, "b": SECOND, "c": THIRD},
        {"a": SECOND, "b": THIRD, "c": AFTER_TEST},
        {"a": LOOK, "b": FIRST, "c": LOOK_BY_TEST},
    ],
    ids=lambda works: "-".join(map(identity.name, works.values())),
)
def test_what_others_start_from_comes_before_them_and_once(tmp_path, works):
    tasks = plan(tmp_path, **works)
    folders = [task.folder for task in tasks]
    wanted = {
        runner.folder_of(tmp_path, "hdafl", one, seed)
        for work in works.values()
        for one in work.chain
        for seed in (0, 1)
    }
    assert len(folders) == len(set(folders)) and set(folders) == wanted
    by_folder = {task.folder: task for task in tasks}
    for task in tasks:
        start = task.cell.work.start
        if start is None:
            assert task.start is None
        else:
            assert task.start == runner.folder_of(tmp_path, "hdafl", start, task.seed)
            assert by_folder[task.start].cell.work == start
            assert folders.index(task.start) < folders.index(task.folder)


# --- Identity ---------------------------------------------------------------------------------


def test_start_is_part_of_what_a_run_is():
    alone = Training(SECOND.flags)
    other = Training(SECOND.flags, start=Training({**FIRST.flags, "rounds": "2"}))
    longer = Training(SECOND.flags, start=Training(FIRST.flags, start=FIRST))
    works = (alone, SECOND, other, longer)
    assert len({identity.name(work) for work in works}) == len(works)
    assert len({identity.key(work, ["data"]) for work in works}) == len(works)
    again = Training(dict(SECOND.flags), start=Training(dict(FIRST.flags)))
    assert identity.name(again) == identity.name(SECOND)
    assert identity.key(again, ["data"]) == identity.key(SECOND, ["data"])


def test_so_it_is_of_a_call():
    calls = [Call(look_at, {"factor": 2}), LOOK, LOOK_BY_TEST]
    assert len({identity.name(call) for call in calls}) == len(calls)
    assert len({identity.key(call, []) for call in calls}) == len(calls)


def test_a_study_gives_the_start_itself():
    with pytest.raises(ValueError, match="itself gives its runs the flags start_from"):
        Training({**COMMON, "method": "lg_fedavg", "start_from": "somewhere"})


# --- Runs -------------------------------------------------------------------------------------


def test_a_chain_is_made(tmp_path):
    """Each starts from the weights of the one before; none is made twice."""
    first, second = make_all(tmp_path, a=SECOND, b=FIRST)
    assert first.status is second.status is Status.OK, (first.error, second.error)
    flags = (second.files / "flags.txt").read_text().splitlines()
    assert f"--start_from={first.files}" in flags
    begun, ended = (starts.read(run.files).values for run in (first, second))
    np.testing.assert_array_equal(begun["dense_1/kernel"], ended["dense_1/kernel"])  # Local.
    assert not np.array_equal(begun["output/kernel"], ended["output/kernel"])
    written = [path.stat().st_mtime_ns for path in sorted(tmp_path.rglob("weights.npz"))]
    make_all(tmp_path, a=SECOND, b=FIRST)
    assert written == [p.stat().st_mtime_ns for p in sorted(tmp_path.rglob("weights.npz"))]
    assert len(written) == 2


def test_a_function_gets_the_folder_of_its_start(tmp_path):
    first, second, looked = make_all(tmp_path, a=LOOK)
    assert looked.status is Status.OK, looked.error
    kernel = starts.read(second.files).values["output/kernel"]
    wanted = 2 * np.abs(kernel).sum()
    assert looked.metrics["local_test_accuracy_mean"] == pytest.approx(wanted)
    assert first.folder != second.folder
    works = {"a": Call(look_at, {"factor": 2}, start=dataclasses.replace(FIRST, flags=DIVERGING))}
    failed, nothing = make_all(tmp_path, **works)
    assert failed.status is nothing.status is Status.DIVERGED
    assert "which this one starts from, is not there: diverged." in nothing.error


def test_what_starts_from_a_diverged_run_has_diverged(tmp_path):
    works = {"a": Training(SECOND.flags, start=Training(DIVERGING))}
    first, second = make_all(tmp_path, **works)
    assert first.status is second.status is Status.DIVERGED
    assert "training diverged" in first.error
    wanted = f"The run in {first.folder}, which this one starts from, is not there: diverged."
    assert second.error == wanted
    # Also where it has left weights, from before it failed.
    starts.write(first.files, starts.Start({"dense_1/kernel": np.zeros(1)}))
    (first.folder / "result.json").unlink()
    store.write(first.folder, Status.FAILED, "", error="out of luck")
    (second.folder / "result.json").unlink()
    with runtime.use("in_process"):
        again = runner.make(plan(tmp_path, [0], **works)[1], data_dir=None)
    assert again.status is Status.FAILED
    assert again.error == f"ValueError: {wanted.replace('diverged', 'failed')}"


def test_training_of_earlier_code_does_not_go_on(tmp_path, monkeypatch):
    (run,) = make_all(tmp_path, a=FIRST)
    (run.files / "half").write_text("of earlier code")
    monkeypatch.setattr(identity, "code_of", lambda work: {"changed": "0"})
    (again,) = make_all(tmp_path, a=FIRST)
    assert again.status is Status.OK and not (run.files / "half").exists()
    store.write(run.folder, Status.UNFINISHED, again.record["key"])
    (run.files / "half").write_text("of this code")
    make_all(tmp_path, a=FIRST)
    assert (run.files / "half").exists()


# --- The page ---------------------------------------------------------------------------------


def test_cells_chosen_by_test_data_are_marked(harness):
    made = pretend(
        harness, plain=FIRST, chosen=AFTER_TEST, later=SECOND, looked=LOOK, marked=LOOK_BY_TEST
    )
    harness.report(made)
    text = (harness.folder / "report" / "hdafl-chained-smoke.md").read_text()
    rows = [line for line in text.splitlines() if line.endswith(" |") and "(1 seed)" in line]
    lines = {line.split("|")[1].removesuffix("(1 seed) ").strip(): line for line in rows}
    for name, marked in (
        ("plain", False),
        ("chosen", True),
        ("later", False),
        ("looked", False),
        ("marked", True),
        ("difference", True),
    ):
        assert ("chosen by test data" in lines[name]) == marked, name
    assert harness.page(made).count("chosen by test data") == 3


def test_page_says_how_a_chain_is_run(harness):
    made = pretend(harness, looked=LOOK, second=SECOND, first=FIRST)
    page = harness.page(made)
    commands = [
        " ".join(f"--{name}={value}" for name, value in sorted(work.flags.items()))
        for work in (FIRST, SECOND)
    ]
    assert ", then ".join(commands) in page
    function = f"{look_at.__module__}.look_at(factor=2)"
    assert ", then ".join([*commands, function]) in page
    assert page.count(", then ") == 3
