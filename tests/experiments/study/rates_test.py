"""Plans from measured rates: what is recorded counts first, then probes, each made once."""

import json
import pathlib

import pytest

from experiments.study import rates, runner
from experiments.study.experiment import Call, Cell, Training
from experiments.study.runner import Task

FLAGS = {"dataset": "digits", "method": "fed_avg", "partition": "iid", "num_clients": "3"}


def work(*, seed: int, folder: pathlib.Path, data_dir: str | None, rounds: int) -> dict:
    """A cell's function."""
    return {"rounds": float(rounds)}


@pytest.fixture
def clock(monkeypatch):
    """Has every probe of a function take 2 s and 3 s for each of its rounds."""
    made = []
    real = runner.make

    def make(task, *_, **others):
        run = real(task, **others)
        made.append(task)
        seconds = 2.0 + 3.0 * task.cell.work.arguments["rounds"]
        return type(run)(run.folder, run.status, {**run.record, "seconds": seconds})

    monkeypatch.setattr(runner, "make", make)
    return made


def task_of(folder: pathlib.Path, work: Training | Call, seed: int = 0) -> Task:
    path = runner.folder_of(folder, "hdafl", work, seed)
    return Task(Cell("cell", work), seed, path)


def test_a_functions_time_grows_with_its_argument_and_probes_are_made_once(tmp_path, clock):
    call = Call(work, {"rounds": 100}, scales_with="rounds")
    tasks = [task_of(tmp_path, call, seed) for seed in (0, 1)]
    assert rates.expected(tasks[0]) is None
    rates.probe(tasks, data_dir=None)
    assert rates.expected(tasks[1]) == pytest.approx(2 + 3 * 100)
    count = len(clock)
    assert count >= 2 and all(t.cell.work.arguments["rounds"] < 100 for t in clock)
    rates.probe(tasks, data_dir=None)
    assert len(clock) == count and (tmp_path / "rates.json").exists()


def test_what_cannot_be_probed_is_unknown(tmp_path):
    task = task_of(tmp_path, Call(work, {"rounds": 1}, scales_with=None))
    rates.probe([task], data_dir=None)
    assert rates.expected(task) is None


def test_a_trainings_time_is_made_of_its_start_rounds_and_evaluations():
    """60 rounds, evaluated in every seventh: four rounds with an evaluation each are measured."""

    def measured(work):
        assert work.flags["rounds"] == "4" and work.flags["eval_every"] == "1"
        assert "goal_accuracy" not in work.flags
        return rates.Probe(8.0, 14.0, one_round=0.75, evaluation=0.25)

    goal = {"goal_accuracy": 0.9, "goal_selection": "test"}
    rate = rates.rate(Training({**FLAGS, "rounds": 60, "eval_every": 7, **goal}), measured)
    # The start keeps one core busy, 4 s, so that the rounds keep 10 s / 4 s busy.
    assert rate == (4.0, pytest.approx(60 * 0.75 + 9 * 0.25), 2.5)


def test_a_round_of_several_acquisitions_is_several_rounds():
    flags = {**FLAGS, "acquisition": "random", "acquisition_size": 10, "rounds": 2}

    def measured(work):
        assert work.flags["acquisitions_per_round"] == "1"
        return rates.Probe(8.0, 8.0, one_round=1.0)

    rate = rates.rate(Training({**flags, "acquisitions_per_round": 10}), measured)
    assert rate.rest == 20.0


def test_cells_that_differ_in_length_and_seed_share_probes(tmp_path, capfd):
    cells = [
        {"rounds": 20},
        {"rounds": 40, "eval_every": 5, "client_learning_rate": 0.2},
    ]
    flags = {**FLAGS, "local_steps": 2, "model": "mlp"}
    tasks = [
        task_of(tmp_path, Training({**flags, **own}), seed) for own in cells for seed in (0, 1)
    ]
    rates.probe(tasks, data_dir=None)
    said = capfd.readouterr().err
    assert "Probe 2/2" in said
    known = json.loads((tmp_path / "rates.json").read_text())[runner.hardware()]
    assert len(known["runs"]) == 2 and len(known["probes"]) == 1
    short, long = (rates.expected(task) for task in tasks[::2])
    assert short > 0 and long > 0
    assert rates.expected(tasks[1]) == short
    rates.probe(tasks, data_dir=None)
    assert "Probe" not in capfd.readouterr().err


def test_runs_that_share_the_cores_take_longer_where_they_are_busy():
    rate = rates.Rate(start=1.0, rest=10.0, cores=1.0)
    busy = rate._replace(cores=64.0)
    assert rate.seconds(1) == busy.seconds(1) == 11.0 and busy.seconds(2) == 21.0
