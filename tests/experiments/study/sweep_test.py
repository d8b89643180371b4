"""Sweeps: lists, grids and random draws; chosen on validation examples alone."""

import csv

import numpy as np
import pytest

from experiments import sweep
from experiments.run import command_line
from experiments.study import runner
from experiments.study.store import Run, Status

PLUGIN = '''
"""FedAvg whose updates are scaled."""
from tff_het.kinds import Positive
from tff_het.learning.works import local_sgd
from tff_het.learning.composer import compose
from tff_het.methods import METHODS

def build(architecture, training, *, seed: int, strength: Positive = 1.0):
    """Builds it.

    Args:
      architecture: The network.
      training: Local training.
      seed: Of the weights.
      strength: Not used.
    """
    model = architecture.model()
    return compose(model, local_sgd(model, training), seed=seed)

METHODS.register("scaled", build)
'''


def test_points_are_all_combinations_and_draws_are_seeded():
    over = ("a=1,2", "b=x;y,z", "c=log:0.001:1")
    found = sweep.points(over, draws=3)
    assert len(found) == 2 * 2 * 3 and found == sweep.points(over, draws=3)
    assert {one["b"] for one in found} == {"x", "y,z"}
    drawn = [float(one["c"]) for one in found[:3]]
    assert len(set(drawn)) == 3
    of_log, of_uniform = (
        [float(one["c"]) for one in sweep.points([f"c={kind}:0.001:1"], draws=200)]
        for kind in ("log", "uniform")
    )
    assert min(of_log + of_uniform) >= 0.001 and max(of_log + of_uniform) <= 1
    assert 0.01 < np.median(of_log) < 0.1 and 0.4 < np.median(of_uniform) < 0.6


def test_an_option_of_a_method_varies_nothing_for_the_others():
    found = sweep.points(["method=fed_prox,hdafl", "fed_prox.proximal_strength=0.1,1"], 1)
    assert [len(one) for one in found] == [2, 2, 1] and found[2] == {"method": "hdafl"}


def test_options_of_one_method_are_compared_with_the_first_method_not_with_its_options():
    options = ["fed_prox.proximal_strength=0.1,1", "apfl.mixing=0.1"]
    over = sweep.points(["method=fed_avg,fed_prox,apfl", *options], 1)
    *_, gaps = sweep._tables(sweep.Settings(), over, over)
    assert [place[:2] for place in gaps.places] == [
        ("fed_prox - fed_avg", "fed_prox.proximal_strength=0.1"),
        ("fed_prox - fed_avg", "fed_prox.proximal_strength=1"),
        ("apfl - fed_avg", "apfl.mixing=0.1"),
    ]
    over = sweep.points(["method=fed_prox,apfl", *options], 1)
    assert not sweep._tables(sweep.Settings(), over, over)[-1].places


def test_a_picture_has_each_point_on_the_line_of_its_other_settings(monkeypatch):
    drawn = {}
    monkeypatch.setattr(sweep.s, "lines", lambda title, shows, of, **_: drawn.update(of))
    over = sweep.points(["method=fed_prox,hdafl", "rate=2,1", "fed_prox.proximal_strength=0.1"], 1)
    sweep._lines(over, "accuracy")
    prox = "fed_prox.proximal_strength=0.1"
    assert {line: {x: m.cells for x, m in of.items()} for line, of in drawn.items()} == {
        f"method=fed_prox, {prox}": {x: (f"method=fed_prox, rate={x}, {prox}",) for x in (1, 2)},
        "method=hdafl": {x: (f"method=hdafl, rate={x}",) for x in (1, 2)},
    }


@pytest.mark.parametrize(
    "over", ["a", "a=", "=1", "a=1,1", "a=log:0:1", "a=uniform:2:1", "a=uniform:x:1"]
)
def test_other_forms_are_refused(over):
    with pytest.raises(ValueError, match="--over takes"):
        sweep.points([over], draws=2)


def test_the_best_on_validation_examples_is_chosen_whatever_the_test_says():
    over = sweep.points(["method=p,q", "rate=1,2"], 1)
    validation = {"p1": 0.5, "p2": 0.6, "q1": 0.8, "q2": 0.7}

    def run(one):
        value = validation[one["method"] + one["rate"]]
        metrics = {"validation": value, "test": 1 - value}
        return Run(None, Status.OK, {"metrics": metrics})

    runs = {(sweep._name(one), seed): run(one) for one in over for seed in (0, 1)}
    results = runner.Results("quick", (0, 1), runs)
    best = sweep.best(over, ["rate"], "validation", results)
    assert best == [{"method": "p", "rate": "2"}, {"method": "q", "rate": "1"}]


def test_the_best_has_the_highest_mean_over_seeds_all_of_which_it_has():
    over = sweep.points(["rate=1,2,3"], 1)
    values = {"1": (0.9, 0.1), "2": (0.6, 0.6), "3": (0.95, None)}  # None: diverged.

    def run(value):
        status = Status.DIVERGED if value is None else Status.OK
        return Run(None, status, {"metrics": {"validation": value}})

    runs = {(f"rate={r}", seed): run(v) for r, of in values.items() for seed, v in enumerate(of)}
    results = runner.Results("quick", (0, 1), runs)
    assert sweep.best(over, ["rate"], "validation", results) == [{"rate": "2"}]


@pytest.mark.slow
def test_a_rate_and_a_plugin_methods_own_parameter_in_one_command(tmp_path, capsys):
    plugin, out = tmp_path / "scaled.py", tmp_path / "out"
    plugin.write_text(PLUGIN)
    argv = [
        f"--plugin={plugin}", "--over=method=scaled,hdafl",
        "--over=client_learning_rate=0.1,0.2", "--choose=client_learning_rate",
        "--set=validation_fraction=0.1", "--set=rounds=1", "--set=local_steps=1",
        "--seeds=2", f"--output_dir={out}",
    ]  # fmt: skip
    for wrong in ("--metric=local_test_acuracy_mean", "--select=local_validation_acuracy_mean"):
        with pytest.raises(SystemExit, match="2"):  # Its runs are there for the next one.
            sweep.main([*argv, wrong])
        assert f"No run has {wrong.partition('=')[2]}" in capsys.readouterr().err
    assert sweep.main(argv) == 0
    with (out / "sweep" / "sweep-runs-quick.csv").open() as file:
        rows = list(csv.DictReader(file))
    title = "local_test_accuracy_mean, client_learning_rate chosen on validation examples"
    chosen = {row["row"]: float(row["ours"]) for row in rows if row["table"] == title}
    gap = next(float(row["ours"]) for row in rows if row["row"] == "hdafl - scaled")
    assert set(chosen) == {"scaled", "hdafl"}
    assert np.isclose(gap, chosen["hdafl"] - chosen["scaled"])


@pytest.mark.slow
def test_methods_are_compared_across_data_sets_and_partitions(tmp_path):
    partitions = "--over=partition=iid,disjoint_classes"
    argv = ["--over=method=hdafl,fed_avg", "--over=dataset=digits", partitions, "--seeds=2"]
    argv += ["--set=rounds=1", "--set=local_steps=1", f"--output_dir={tmp_path}"]
    assert sweep.main(argv) == 0
    page = (tmp_path / "sweep" / "index.html").read_text()
    assert "python -m experiments.sweep --over=method=hdafl,fed_avg" in page
    rows = list(csv.DictReader((tmp_path / "sweep" / "sweep-runs-quick.csv").open()))
    assert [(row["row"], row["column"]) for row in rows] == [
        (method, f"digits/{partition}")
        for method in ("hdafl", "fed_avg", "fed_avg - hdafl")
        for partition in ("iid", "disjoint_classes")
    ]
    assert all(row["low"] and row["seeds"] == "2" for row in rows)
    means = [float(row["ours"]) for row in rows]
    assert means[4:] == pytest.approx([means[2] - means[0], means[3] - means[1]])


@pytest.mark.parametrize(
    ("argv", "error"),
    [
        ([], "--over says what varies"),
        (["--over=rounds=1,x"], "rounds"),
        (["--over=rounds=1,2", "--choose=batch_size"], "--choose names settings of --over"),
        (["--over=rounds=1,2", "--choose=rounds"], "needs validation examples"),
        (["--over=rounds=1,2", "--choose=rounds", "--select=local_test_accuracy_mean"], "test"),
        (["--over=rounds=1,2", "--choose=rounds", "--select=local_validation_loss_mean"], "max"),
        (["--over=no_such=1,2"], "no_such"),
    ],
)
def test_bad_settings_are_refused_in_one_line(argv, error, capsys):
    with pytest.raises(SystemExit, match="2"):
        sweep.main(argv)
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("error: ") and error in line


def test_a_file_gives_settings_by_name_and_flags_win(tmp_path):
    path = tmp_path / "sweep.yaml"
    path.write_text(
        "over: {method: [hdafl, fed_avg], class_weights: ['1,50', '1,2']}\n"
        "set: {rounds: 2}\nseeds: 2\n"
    )
    argv = [f"--config={path}", "--seeds=4"]
    found = command_line.settings(sweep.Settings, argv, "")
    assert found.over == ("method=hdafl,fed_avg", "class_weights=1,50;1,2")
    assert found.set == ("rounds=2",) and found.seeds == 4
