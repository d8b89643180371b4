"""A small experiment of functions, which takes no time and can be made to fail."""

import json
import pathlib

import numpy as np
import pytest
from matplotlib.figure import Figure as Drawing

import experiments.study as s
from experiments import report
from experiments.study import runner, store
from tff_het.simulation import loop

SEEDS = 3


def value(*, seed: int, folder: pathlib.Path, data_dir: str | None, mean: float) -> dict:
    """A cell's function: counts its calls, and fails or stops where a file says so."""
    assert list(folder.iterdir()) == []
    (folder / "half").write_text("done")
    state = pathlib.Path(folder).parents[3] / "state.json"
    orders = json.loads(state.read_text()) if state.exists() else {}
    orders["calls"] = orders.get("calls", 0) + 1
    state.write_text(json.dumps(orders))
    if orders.get("stop_at") == orders["calls"]:
        raise KeyboardInterrupt
    if orders.get("fail") == mean:
        raise RuntimeError("out of luck & <money>")
    if orders.get("diverge") == mean:
        raise loop.DivergedError("train_loss is nan")
    if orders.get("no_number") == seed:
        return {"diverged": 1.0}
    return {"value": mean + np.random.default_rng(seed).normal(0, 0.01)}


def draw(results) -> Drawing | None:
    runs = results.ok(["a"], 0)
    if runs is None:
        return None
    figure = Drawing()
    figure.subplots().plot([0, runs["a"].metrics["value"]])
    return figure


def experiment(*, data_sets: tuple[str, ...] = (), second: float = 0.5) -> s.Experiment:
    def cell(name: str, mean: float, needs: tuple[str, ...] = ()) -> s.Cell:
        return s.Cell(name, s.Call(value, {"mean": mean}, needs))

    form = s.Form(digits=3)
    a, b = s.metric("a", "value"), s.metric("b", "value")
    return s.Experiment(
        "hdafl.made_up",
        "Made up",
        {
            "smoke": s.Scale(
                (cell("a", 0.7), cell("b", second, data_sets), cell("same as a", 0.7)),
                SEEDS,
                "Few.",
            )
        },
        tables=(s.Table("Values", (s.Place("A", "x", a, form), s.Place("B", "x", b, form))),),
        printed=(s.Printed("A", "x", 0.8, "A 0.8", "Table 9", interval=0.1, note="adds up to 1"),),
        claims=(s.Claim("a exceeds b", (s.Check("a - b", a - b, 0.1, form),)),),
        figures=(s.Figure("A line", "A line as well.", draw),),
    )


class Harness:
    """Runs the experiment in a folder, and reads what comes of it."""

    def __init__(self, folder: pathlib.Path):
        self.folder = folder
        (folder / "hdafl").mkdir(parents=True)
        self._state = folder / "hdafl" / "state.json"

    def order(self, **orders) -> None:
        """Says what the cells' function does from now on."""
        self._state.write_text(json.dumps(orders))

    @property
    def calls(self) -> int:
        return json.loads(self._state.read_text())["calls"] if self._state.exists() else 0

    def run(self, made: s.Experiment, data_dir: str | None = None) -> list:
        store.write_seeds(self.folder / made.paper / made.name / "smoke", range(SEEDS))
        tasks = runner.plan(made, "smoke", range(SEEDS), self.folder)
        return [runner.make(task, data_dir=data_dir) for task in tasks]

    def report(self, made: s.Experiment) -> pathlib.Path:
        return report.write([made], self.folder)

    def page(self, made: s.Experiment) -> str:
        return self.report(made).read_text()


@pytest.fixture
def harness(tmp_path) -> Harness:
    return Harness(tmp_path / "out")


@pytest.fixture
def new_harness(tmp_path):
    """Makes further ones."""
    return lambda name: Harness(tmp_path / name)


@pytest.fixture
def make():
    """The experiment, of its options."""
    return experiment
