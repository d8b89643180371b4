"""What goals are judged on and where runs start from: test examples choose nothing unasked."""

import csv
import dataclasses
import json

import numpy as np
import pytest

from experiments.run import data as data_module
from experiments.run import one, setup
from experiments.run.config import RunConfig
from tff_het.simulation import runtime
from tff_het.simulation import start as starts
from tff_het.simulation.checkpoints import CheckpointError

pytestmark = pytest.mark.usefixtures("here")

RUN = {
    "dataset": "digits",
    "partition": "iid",
    "num_clients": "3",
    "model": "mlp",
    "local_steps": "8",
    "method": "fed_avg",
    "rounds": "6",
}
VALIDATED = {**RUN, "validation_fraction": "0.2"}
# Far above the tenth that is right by chance.
GOAL = {"goal_accuracy": "0.5"}


@pytest.fixture(scope="module")
def here():
    with runtime.use("in_process", clients_in_parallel=2):
        yield


@pytest.fixture
def shuffle_test_labels(monkeypatch):
    """From now on the labels of all test examples are in another order."""

    def shuffle() -> None:
        load = data_module.load

        def shuffled(name, data_dir):
            dataset = load(name, data_dir)
            labels = np.random.default_rng(0).permutation(dataset.test["y"])
            assert not np.array_equal(labels, dataset.test["y"])
            return dataclasses.replace(dataset, test={**dataset.test, "y": labels})

        monkeypatch.setattr(data_module, "load", shuffled)

    return shuffle


def trained(values, folder):
    """(its weights as bytes, its summary)."""
    one.run(RunConfig.of(**values), folder).close()
    return (folder / "weights.npz").read_bytes(), json.loads((folder / "summary.json").read_text())


def rows(folder) -> list[dict[str, str]]:
    with (folder / "metrics.csv").open() as file:
        return list(csv.DictReader(file))


# --- Goals ------------------------------------------------------------------------------------


def test_test_labels_change_no_training(tmp_path, shuffle_test_labels):
    goal = {**VALIDATED, **GOAL}
    weights, summary = trained(goal, tmp_path / "as it is")
    assert summary["goal_reached"] == 1 and summary["rounds"] < 6
    shuffle_test_labels()
    also_weights, also_summary = trained(goal, tmp_path / "shuffled")
    assert also_weights == weights
    assert also_summary["rounds"] == summary["rounds"]
    # They were shuffled.
    name = "local_test_accuracy_mean"
    assert also_summary[name] < summary[name] - 0.2
    without = [
        [{k: v for k, v in row.items() if "_test_" not in k} for row in rows(tmp_path / folder)]
        for folder in ("as it is", "shuffled")
    ]
    assert without[0] == without[1]


def test_they_do_where_they_are_asked_to(tmp_path, shuffle_test_labels):
    goal = {**RUN, **GOAL, "goal_selection": "test"}
    weights, summary = trained(goal, tmp_path / "as it is")
    assert summary["goal_reached"] == 1 and summary["rounds"] < 6
    shuffle_test_labels()
    also_weights, also_summary = trained(goal, tmp_path / "shuffled")
    assert (also_summary["goal_reached"], also_summary["rounds"]) == (0, 6)
    assert also_weights != weights


def test_goal_in_the_summary(tmp_path):
    """The round that the summary tells of is the first that reached the goal."""
    _, summary = trained({**VALIDATED, **GOAL}, tmp_path)
    accuracy = [float(row["local_validation_accuracy_mean"]) for row in rows(tmp_path)]
    assert [value >= 0.5 for value in accuracy] == [False] * (len(accuracy) - 1) + [True]
    assert summary["rounds"] == len(accuracy)
    assert summary["local_validation_accuracy_mean"] == accuracy[-1]
    # 64 pixels, 200 units, 10 classes; three clients, both ways.
    parameters = 64 * 200 + 200 + 200 * 10 + 10
    assert summary["parameters_communicated"] == 2 * parameters * 3 * len(accuracy)


# --- Where a run starts from --------------------------------------------------------------------


@pytest.fixture(scope="module")
def first(here, tmp_path_factory):
    """The folder of a run that others start from."""
    folder = tmp_path_factory.mktemp("first") / "fed_avg"
    _, summary = trained({**VALIDATED, "rounds": "2"}, folder)
    assert "goal_reached" not in summary
    return folder


def second(first, **changes) -> dict[str, str]:
    values = {"method": "lg_fedavg", "rounds": "1", "start_from": str(first), **changes}
    return {**VALIDATED, **values}


def test_a_run_from_another_ones_model(first, tmp_path):
    """What clients start from is FedAvg's model, from which the rest has moved."""
    one.run(RunConfig.of(**second(first)), tmp_path).close()
    begun, ended = starts.read(first).values, starts.read(tmp_path).values
    assert begun.keys() == ended.keys()
    for path in ("dense_1/kernel", "dense_1/bias"):
        np.testing.assert_array_equal(begun[path], ended[path])
    assert not np.array_equal(begun["output/kernel"], ended["output/kernel"])
    accuracy = float(rows(tmp_path)[0]["train_accuracy"])
    assert accuracy > float(rows(first)[0]["train_accuracy"])


def test_another_start_is_another_run(first, tmp_path):
    """Whatever folder it stands in: the values tell."""
    folder = tmp_path / "run"
    one.run(RunConfig.of(**second(first)), folder).close()
    for name in ("same", "other"):
        (tmp_path / name).mkdir()
        for file in ("weights.npz", "summary.json"):
            (tmp_path / name / file).write_bytes((first / file).read_bytes())
    found = starts.read(first).values
    changed = {**found, "output/bias": found["output/bias"] + np.float32(1)}
    starts.write(tmp_path / "other", starts.Start(changed))
    before = (folder / "metrics.csv").read_bytes()
    one.run(RunConfig.of(**second(tmp_path / "same", rounds="2")), folder).close()
    assert (folder / "metrics.csv").read_bytes().startswith(before)
    with pytest.raises(CheckpointError, match="another content of start"):
        one.run(RunConfig.of(**second(tmp_path / "other", rounds="2")), folder).close()
    values = second(first, rounds="2")
    del values["start_from"]
    with pytest.raises(CheckpointError, match="another content of start"):
        one.run(RunConfig.of(**values), folder).close()


@pytest.mark.parametrize(
    "changes",
    [
        {"seed": "1"},
        {"validation_fraction": "0.1"},
        {"num_clients": "4"},
        {"partition": "disjoint_classes"},
        {"partition": "dirichlet", "dirichlet.alpha": "1"},
    ],
    ids="-".join,
)
def test_start_that_was_trained_on_the_validation_examples(first, tmp_path, changes):
    with pytest.raises(ValueError, match="trained on examples that this one"):
        one.run(RunConfig.of(**second(first, **changes)), tmp_path / "run").close()
    assert not (tmp_path / "run").exists()
    # Without validation examples there is nothing to keep apart.
    values = {k: v for k, v in second(first, **changes).items() if k != "validation_fraction"}
    made = setup.make(RunConfig.of(**values))
    assert made.start.fingerprint() == starts.read(first).fingerprint()


def test_start_of_another_network(first, tmp_path):
    with pytest.raises(ValueError, match=r"has no conv_1/kernel.*Start from a run with the same"):
        one.run(
            RunConfig.of(**second(first, model="digits_cnn", local_layers="dense_1")), tmp_path
        ).close()


def test_standardised_digits(tmp_path):
    """As the flags make them: pixels as the network's first layer gets them."""
    made = setup.make(RunConfig.of(**{**RUN, "standardize": "true"}))
    x = made.dataset.train["x"]
    mean, deviation = made.dataset.statistics()
    seen = made.architecture.scaled(x).numpy()
    flat = seen.reshape(-1, seen.shape[-1])
    np.testing.assert_allclose(flat.mean(axis=0), np.zeros(flat.shape[1]), atol=1e-4)
    np.testing.assert_allclose(flat.std(axis=0), np.ones(flat.shape[1]), rtol=1e-4)
    np.testing.assert_allclose(seen, (x - mean) / deviation, atol=1e-4)
