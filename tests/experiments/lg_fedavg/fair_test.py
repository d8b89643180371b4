"""One run of the fairness experiment, on made-up data; how Adult is halved, on the real rows."""

import numpy as np
import pytest

from experiments.lg_fedavg import fair, table4
from tff_het import datasets
from tff_het.simulation import runtime

SHORT = {"method": "lg_fedavg", "penalty": 1.0, "rounds": 1, "pretraining": 1}
SHORT |= {"adversary_steps": 1, "local_epochs": 1}


def run(**changes):
    settings = {"seed": 0, "folder": None, "data_dir": None, "dataset": "made_up"}
    with runtime.use("in_process"):
        return fair.train(**settings | {"partition": "iid"} | SHORT | changes)


@pytest.mark.slow
def test_numbers():
    """The seed decides all of them; together means both attributes; the penalty matters."""
    numbers = run()
    assert run() == numbers
    assert set(numbers) == set(table4.COLUMNS.values())  # All are shown, and none left out.
    for guesser in ("adversary", "logistic", "mlp"):
        each = [numbers[f"{guesser}_auc_{name}"] for name in fair.ATTRIBUTES]
        assert numbers[f"{guesser}_auc"] == pytest.approx(np.mean(each))
    # The attributes are signs of features, which one epoch does not hide.
    assert numbers["logistic_auc"] > 0.6
    assert numbers["diverged"] == 0
    other = run(penalty=0.0, validation=True)
    assert other["class_accuracy"] != numbers["class_accuracy"]


@pytest.mark.slow
def test_divergence_is_a_result():
    assert run(penalty=1e30, pretraining=0) == {"diverged": 1.0}


def test_halves_of_adult(data_dir):
    data = fair._adult(3, str(data_dir))
    rows = datasets.load("adult", data_dir).train
    assert len(data.train["y"]) == len(data.test["y"]) == 15_000
    assert abs(int(data.train["y"].sum()) - int(data.test["y"].sum())) <= 1
    for name in ("x", "race", "sex"):
        both = np.concatenate([data.train[name], data.test[name]]).sum(axis=0, dtype=np.float64)
        wanted = rows[name][:30_000].sum(axis=0, dtype=np.float64)
        np.testing.assert_allclose(both, wanted, rtol=1e-9, atol=1e-9)
    assert not np.array_equal(fair._adult(4, str(data_dir)).train["y"], data.train["y"])


@pytest.mark.parametrize("partition", table4.SETTINGS.values())
def test_clients_of_adult(data_dir, partition):
    population = fair._population(fair._adult(0, str(data_dir)), partition, 0, validation=False)
    assert len(population) == 10 and set(population.columns) == {"x", "y", *fair.ATTRIBUTES}
    assert all(len(client.train["y"]) == len(client.test["y"]) == 1500 for client in population)
    shares = [client.train["y"].mean() for client in population]
    assert (np.std(shares) > 0.05) == (partition == "shards")
