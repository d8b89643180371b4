"""Flags of what the server holds: no client has it, and test examples choose nothing unasked."""

import csv
import dataclasses
import json

import numpy as np
import pytest

from experiments.run import data as data_module
from experiments.run import one, setup
from experiments.run.config import RunConfig
from experiments.study.experiment import Training
from tff_het.simulation import runtime
from tff_het.simulation import start as starts

pytestmark = pytest.mark.usefixtures("here")

RUN = {
    "dataset": "digits",
    "partition": "disjoint_classes",
    "num_clients": "3",
    "model": "mlp",
    "local_epochs": "3",
    "rounds": "3",
    "initial_examples": "60",
    "selection_examples": "300",
    "ensemble_dropout_samples": "1",
}
FIRST = {
    **{name: value for name, value in RUN.items() if name != "ensemble_dropout_samples"},
    "method": "centralized",
    "pooled": "server",
}


@pytest.fixture(scope="module")
def here():
    with runtime.use("in_process", clients_in_parallel=2):
        yield


def trained(values, folder):
    """(its weights as bytes, its summary, the rows of its table)."""
    one.run(RunConfig.of(**values), folder).close()
    with (folder / "metrics.csv").open() as file:
        rows = list(csv.DictReader(file))
    summary = json.loads((folder / "summary.json").read_text())
    return (folder / "weights.npz").read_bytes(), summary, rows


def without(values, *names, **changes):
    return {k: v for k, v in values.items() if k not in names} | changes


def test_no_client_has_what_the_server_has():
    made = setup.make(RunConfig.of(**{**RUN, "method": "opt_fl", "validation_fraction": "0.1"}))
    parts = [made.initial, made.selection]
    parts += [part for one in made.population for part in (one.train, one.validation)]
    sizes = [len(part["y"]) for part in parts]
    assert sizes[:2] == [60, 300]
    held = np.concatenate([part["x"].reshape(len(part["x"]), -1) for part in parts])
    whole = made.dataset.train["x"]
    assert sum(sizes) == len(whole)

    def rows(x):
        return sorted(map(bytes, x.reshape(len(x), -1)))

    # As often as there are equal images, and no test example among them.
    assert rows(held) == rows(whole)
    assert made.population.columns == tuple(made.selection)


def test_by_default_the_server_has_nothing():
    made = setup.make(RunConfig.of(**{"dataset": "digits", "method": "fed_avg"}))
    assert made.initial is None and made.selection is None
    clients = sum(len(client.train["y"]) for client in made.population)
    assert clients == len(made.dataset.train["y"])


@pytest.mark.parametrize("method", ["opt_fl", "mix_fl"])
def test_judged_by_the_test_set_where_that_is_asked_for(method):
    values = without(RUN, "selection_examples", method=method, ensemble_selection="test")
    made = setup.make(RunConfig.of(**values))
    for name in ("x", "y"):
        np.testing.assert_array_equal(made.selection[name], made.dataset.test[name])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"method": "mix_fl", "selection_examples": "0"},
            "mix_fl evaluates models at the server: give --sel",
        ),
        ({"method": "opt_fl", "ensemble_selection": "test"}, "Give one of --ensemble_selection"),
        (
            {
                "method": "ave_fl",
                "ensemble_selection": "test",
                "selection_examples": "0",
                "ensemble_dropout_samples": None,
            },
            "--ensemble_selection=test has no meaning for ave_fl",
        ),
        ({"method": "ave_fl"}, "--ensemble_dropout_samples belongs to --method=opt_fl or mix_fl"),
        ({"method": "opt_fl", "pooled": "server"}, "--pooled=server has no meaning for opt_fl"),
        ({"method": "opt_fl", "initial_examples": "1137"}, "1137 for initial .* 300 for selection"),
    ],
    ids=str,
)
def test_flags_that_are_refused(changes, message, tmp_path):
    values = {k: v for k, v in {**RUN, **changes}.items() if v is not None}
    with pytest.raises(ValueError, match=message):
        one.run(RunConfig.of(**values), tmp_path / "run").close()
    assert not (tmp_path / "run").exists()


def test_initial_training_without_initial_examples(tmp_path):
    with pytest.raises(ValueError, match="trains on --initial_examples: give"):
        one.run(RunConfig.of(**{**FIRST, "initial_examples": "0"}), tmp_path / "run").close()


# --- Runs ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def first(here, tmp_path_factory):
    """The folder of the server's own training, and its results."""
    folder = tmp_path_factory.mktemp("first") / "centralized"
    return folder, trained(FIRST, folder)


def test_initial_training_at_the_server(first):
    """On its examples alone. Nothing travels."""
    _, (_, summary, rows) = first
    assert [row["train_num_examples"] for row in rows] == ["60"] * 3
    assert summary["bytes_up_total"] == summary["bytes_down_total"] == 0
    assert summary["num_clients"] == 3
    assert "server_client" not in rows[0]
    # Clients hold none of them and are tested.
    assert 0.1 < summary["local_test_accuracy_weighted_mean"] < 0.99


def test_devices_start_from_there(first, tmp_path):
    """All from the same model, which is the server's; in its last row stands what was taken."""
    folder, _ = first
    values = {**RUN, "method": "mix_fl", "start_from": str(folder)}
    weights, summary, rows = trained(values, tmp_path / "one")
    begun, ended = starts.read(folder).values, starts.read(tmp_path / "one").values
    assert begun.keys() == ended.keys()
    assert not np.array_equal(begun["output/kernel"], ended["output/kernel"])
    assert summary["rounds_before"] == 3
    for row in rows:
        assert int(row["server_client"]) in (-1, 0, 1, 2)
        assert float(row["server_accuracy"]) * 300 == pytest.approx(
            round(float(row["server_accuracy"]) * 300), abs=1e-3
        )
    # Again, and in another number of rounds at a time, the same bytes.
    one.run(RunConfig.of(**{**values, "rounds": "2"}), tmp_path / "two").close()
    assert trained(values, tmp_path / "two") == (weights, summary, rows)


@pytest.mark.parametrize(
    "changes",
    [{"selection_examples": "200"}, {"initial_examples": "50"}, {"seed": "1"}],
    ids=str,
)
def test_start_that_was_trained_on_what_is_judged_by(first, tmp_path, changes):
    folder, _ = first
    values = {**RUN, "method": "opt_fl", "start_from": str(folder), **changes}
    with pytest.raises(ValueError, match="trained on examples that models"):
        one.run(RunConfig.of(**values), tmp_path / "run").close()
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("asked", [False, True], ids=["held out", "test"])
def test_test_labels_choose_only_where_they_are_asked_to(asked, tmp_path, monkeypatch):
    values = {**RUN, "method": "opt_fl"}
    if asked:
        values = without(values, "selection_examples", ensemble_selection="test")
    weights, _, rows = trained(values, tmp_path / "as it is")
    load = data_module.load

    def shuffled(name, data_dir):
        dataset = load(name, data_dir)
        labels = np.random.default_rng(0).permutation(dataset.test["y"])
        return dataclasses.replace(dataset, test={**dataset.test, "y": labels})

    monkeypatch.setattr(data_module, "load", shuffled)
    other_weights, _, other_rows = trained(values, tmp_path / "shuffled")
    assert rows[0]["local_test_accuracy_mean"] != other_rows[0]["local_test_accuracy_mean"]
    accuracy = [[row["server_accuracy"] for row in one] for one in (rows, other_rows)]
    assert (accuracy[0] != accuracy[1]) == asked
    if not asked:
        assert weights == other_weights


def test_runs_that_choose_by_test_examples_are_marked():
    flags = {"dataset": "digits", "method": "opt_fl"}
    assert not Training({**flags, "ensemble_selection": "held_out"}).uses_test_data
    chosen = Training({**flags, "ensemble_selection": "test"})
    assert chosen.uses_test_data
    assert Training(flags, start=chosen).uses_test_data
