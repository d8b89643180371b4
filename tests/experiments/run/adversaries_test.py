"""An adversary by flags: any method, on any data set with columns of 0 and 1."""

import csv

import numpy as np
import pytest

from experiments.run import one, processes, setup
from experiments.run.config import RunConfig
from tff_het.backend.names import tff
from tff_het.models.model import ClientContext
from tff_het.simulation import runtime


@pytest.fixture(scope="module")
def values(tmp_path_factory) -> dict[str, str]:
    """Flags of a run on data with two protected columns, one of them boolean, and an age."""
    rng = np.random.default_rng(0)
    arrays = {}
    for split, n in (("train", 60), ("test", 30)):
        arrays |= {
            f"x_{split}": rng.normal(size=(n, 4)).astype(np.float32),
            f"y_{split}": np.arange(n) % 2,
            f"race_{split}": rng.integers(0, 2, n),
            f"sex_{split}": rng.integers(0, 2, n).astype(bool),
            f"age_{split}": rng.integers(20, 30, n),
        }
    folder = tmp_path_factory.mktemp("data")
    (folder / "npz").mkdir()
    np.savez(folder / "npz" / "data.npz", **arrays)
    return {
        "dataset": "npz",
        "data_dir": str(folder),
        "model": "mlp_fair",
        "method": "lg_fedavg",
        "num_clients": "3",
        "rounds": "2",
        "local_layers": "dense_1,dense_2,representation",
    }


ADVERSARY = {
    "protected": "race,sex",
    "adversary_weights": "0.5,2",
    "adversary_layer": "representation",
    "adversary_steps": "3",
    "local_epochs": "3",
}


def test_flags_make_it(values):
    made = setup.make(RunConfig.of(**{**values, **ADVERSARY}))
    (process,) = processes.build(made).values()
    assert made.population.columns == ("x", "y", "race", "sex")
    assert made.training.opponent_steps == 3
    specs = {spec.path: spec for spec in process.model.specs}
    assert specs["adversary_1/kernel"].shape == (32, 32)
    assert {path for path, s in specs.items() if s.opponent} == {
        path for path in specs if path.startswith("adversary")
    }
    assert all(s.local for s in specs.values() if s.opponent)
    sent = process.client_update.type_signature.result.member["update"]
    assert len(tff.structure.flatten(sent)) == len(specs) - 3 * 2 - 4 * 2


def test_the_weights_are_the_flags(values):
    """The loss that is minimised, from those that are reported beside it (one attribute)."""
    flags = {**values, "protected": "sex", "adversary_weights": "3"}
    made = setup.make(RunConfig.of(**flags))
    model, client = made.architecture.model(), made.population[0].train
    context = ClientContext(0, len(client["y"]), 0)
    outputs = model.predict(model.initial_variables(0), client, context, [0, 0], False)
    loss, own, adversarys = (
        np.asarray(model.metrics[name](client, outputs))
        for name in ("loss", "prediction_loss", "adversary_loss")
    )
    np.testing.assert_allclose(loss, own - 3 * adversarys, rtol=1e-5)
    assert np.std(adversarys) > 0


def test_without_protected_columns_nothing_is_there(values):
    made = setup.make(RunConfig.of(**values))
    pass
    assert made.population.columns == ("x", "y")
    assert made.architecture.opponent == () and made.architecture.auxiliary == ()


def test_a_run_reports_the_adversary(values, tmp_path):
    with runtime.use("in_process"):
        one.run(RunConfig.of(**{**values, **ADVERSARY}), tmp_path).close()
    with (tmp_path / "metrics.csv").open() as file:
        rows = list(csv.DictReader(file))
    losses = [float(row["train_adversary_loss"]) for row in rows]
    assert len(losses) == 2 and all(0.3 < loss < 1.2 for loss in losses)
    assert "train_prediction_loss" in rows[0]
    text = (tmp_path / "flags.txt").read_text()
    assert "--protected=race,sex\n" in text and "--adversary_weights=0.5,2.0\n" in text


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"protected": "age"}, r"race, sex in 'npz'; found age"),
        ({"protected": "y"}, "found y"),
        ({"protected": "sex,sex"}, "found sex,sex"),
        ({"protected": ""}, "different columns of 0 and 1"),
        ({"adversary_weights": "1"}, r"attribute \(race, sex\); found 1"),
        ({"adversary_weights": "1,x"}, "--adversary_weights=.*: expected a number"),
        ({"adversary_weights": "1,-1"}, "--adversary_weights=.*: expected a number from 0"),
        ({"adversary_layer": "middle"}, "No hidden layer is called 'middle'"),
    ],
)
def test_refusals(values, changes, message):
    with pytest.raises(ValueError, match=message):
        setup.make(RunConfig.of(**{**values, **ADVERSARY, **changes}))


@pytest.mark.parametrize("method", ["apfl", "p_fed_me", "per_fed_avg", "q_ffl"])
def test_methods_without_a_step_for_it_refuse_it(values, method):
    """Their steps on the network's loss would train the adversary to guess worse."""
    flags = {name: value for name, value in values.items() if name != "local_layers"}
    made = setup.make(RunConfig.of(**{**flags, "method": method, "protected": "race,sex"}))
    with pytest.raises(ValueError, match=f"{method} has no step for an adversary, found adv"):
        processes.build(made)


@pytest.mark.parametrize(
    ("method", "message"),
    [
        ("scaffold", "no momentum, acquisition or adversary"),
        ("fed_rep", "leave adversary_steps out .found 2."),
        ("fed_recon", "leave adversary_steps out .found 2."),
    ],
)
def test_methods_whose_steps_would_not_be_those_of_the_adversary_refuse(values, method, message):
    flags = {name: value for name, value in values.items() if name != "local_layers"}
    more = {"method": method, "protected": "race,sex", "adversary_steps": 2, "local_epochs": 2}
    made = setup.make(RunConfig.of(**{**flags, **more}))
    with pytest.raises(ValueError, match=message):
        processes.build(made)
