"""Attacks on small federations of digits: what the numbers are of."""

import numpy as np
import pytest

from experiments.waffle import attacking
from tff_het import datasets
from tff_het.attacks import federations
from tff_het.simulation import runtime

NUM_CLIENTS, NUM_EXAMPLES = 2, 20
COURSE = {
    "dataset": "digits",
    "model": "mlp",
    "method": "fed_avg",
    "options": {},
    "num_clients": NUM_CLIENTS,
    "num_examples": NUM_EXAMPLES,
    "rounds": 2,
    "local_epochs": 20,
    "batch_size": 5,
    "learning_rate": 0.1,
    "momentum": 0.9,
}
SEARCH = {"steps": 30, "rate": 0.05}


@pytest.fixture(autouse=True, scope="module")
def _runtime():
    with runtime.use("in_process", clients_in_parallel=1):
        yield


def run(function, folder=None, **changes) -> dict[str, float]:
    more = {"search": SEARCH} if function is attacking.invert else {}
    return function(seed=1, folder=folder, data_dir=None, **{**COURSE, **changes, **more})


@pytest.fixture(scope="module")
def of_fed_avg():
    return run(attacking.infer_membership)


@pytest.mark.slow
def test_numbers_of_membership(of_fed_avg):
    """The seed decides them; there is nothing to choose where nothing is local."""
    assert run(attacking.infer_membership) == of_fed_avg
    scores = ("accuracy", "auc", "f1", "true_positives")
    assert set(of_fed_avg) == {
        *(f"{what}_fitted_{s}" for what in ("update", "broadcast") for s in scores),
        "members_accuracy",
        "others_accuracy",
    }
    # Twenty passes over twenty digits are learnt by heart.
    assert of_fed_avg["members_accuracy"] > 0.95 > of_fed_avg["others_accuracy"]
    # What is sent to the next clients is a mean.
    assert of_fed_avg["update_fitted_auc"] > of_fed_avg["broadcast_fitted_auc"] > 0.5


def test_methods_with_local_variables_have_three_choices():
    found = run(attacking.infer_membership, method="hdafl", local_epochs=2)
    for local in ("fitted", "initial", "private"):
        assert {f"update_{local}_accuracy", f"update_{local}_auc"} <= set(found)
    assert found["update_private_auc"] != found["update_fitted_auc"]


@pytest.mark.slow
@pytest.mark.parametrize("method", ["fed_avg", "hdafl"])
def test_inversion(method, tmp_path):
    found = run(attacking.invert, tmp_path, method=method)
    choices = ["fitted"] if method == "fed_avg" else ["fitted", "initial", "private"]
    names = ("correlation", "recognised", "sharpness", "ssim")
    assert set(found) == {f"{local}_{name}" for local in choices for name in names}
    pictures = np.load(tmp_path / attacking.PICTURES)
    train = datasets.load("digits", None).train
    victims, *_ = federations.deal(train, NUM_CLIENTS, NUM_EXAMPLES, seed=1)
    first = victims[0].train
    for k, name in enumerate(pictures["classes"]):
        mean = first["x"][first["y"] == int(name)].mean(axis=0) / 255
        np.testing.assert_allclose(pictures["means"][k], mean, atol=1e-6)
    for local in choices:
        images = pictures[local]
        assert images.shape == pictures["means"].shape
        down, right = images[:, 1:] - images[:, :-1], images[:, :, 1:] - images[:, :, :-1]
        energy = (down**2).mean() + (right**2).mean()
        assert found[f"{local}_sharpness"] == pytest.approx(energy) and energy > 0
    # A network that knows these digits is most sure of what looks like them.
    assert found["fitted_correlation" if method == "fed_avg" else "private_correlation"] > 0.1


def test_the_only_round_can_be_observed():
    found = run(attacking.infer_membership, rounds=1)
    assert found["members_accuracy"] > found["others_accuracy"]
