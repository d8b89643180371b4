"""Which factors clients use, on posteriors with known answers."""

from types import SimpleNamespace

import numpy as np
import pytest

from tff_het import methods
from tff_het.backend.names import tff
from tff_het.evaluation import factors, figures
from tff_het.learning.client_work import ClientState
from tff_het.learning.local_training import LocalTraining
from tff_het.models import architectures, networks
from tff_het.models.model import Model, Weights


def make(method: str, **options) -> Model:
    architecture = architectures.make(
        "tiny",
        {"x": (np.dtype(np.float32), (3,)), "y": (np.dtype(np.int64), ())},
        2,
        network=networks.mlp([4, 5]),
    )
    training = LocalTraining(tff.learning.optimizers.build_sgdm(0.1), batch_size=5, epochs=1)
    return methods.build(method, architecture, training, seed=1, **options).model


@pytest.fixture(scope="module")
def waffle() -> Model:
    with pytest.MonkeyPatch.context() as patch:  # Of the process only the model is needed.
        patch.setattr(
            "tff_het.methods.waffle.compose", lambda model, *_, **__: SimpleNamespace(model=model)
        )
        return make("waffle", factors={"dense_1": 2, "dense_2": 3})


def state_of(model: Model, first, second, rounds: int = 1) -> ClientState:
    logits = {"dense_1/posterior_logits": first, "dense_2/posterior_logits": second}
    local = [
        np.asarray(logits.get(spec.path, np.zeros(spec.shape)), np.float32)
        for spec in model.specs
        if spec.local
    ]
    return ClientState(Weights(local, []), (), np.int32(rounds))


def test_active_and_shared_factors(waffle):
    states = [
        state_of(waffle, [1, -1], [2, 2, -2]),
        state_of(waffle, [9, 9], [9, 9, 9], rounds=0),  # Has none of its own yet.
        state_of(waffle, [-1, 3], [2, 2, 2]),
        state_of(waffle, [3, 3], [-2, 2, 2]),
    ]
    found = factors.of_clients(waffle, iter(states))
    assert list(found) == ["dense_1", "dense_2"]
    np.testing.assert_array_equal(found["dense_1"].active, [[1, 0], [0, 1], [1, 1]])
    np.testing.assert_array_equal(found["dense_1"].shared, [[1, 0, 1], [0, 1, 1], [1, 1, 2]])
    np.testing.assert_array_equal(found["dense_2"].shared, [[2, 2, 1], [2, 3, 2], [1, 2, 2]])
    np.testing.assert_allclose(found["dense_1"].probabilities[0], 1 / (1 + np.exp([-1, 1])))
    assert factors.summary(found) == pytest.approx(
        {
            "active_factors_dense_1": 4 / 3,
            "shared_factors_dense_1": 2 / 3,
            "active_factors_dense_2": 7 / 3,
            "shared_factors_dense_2": 5 / 3,
        }
    )


def test_picture(waffle, tmp_path):
    found = factors.of_clients(waffle, [state_of(waffle, [1, -1], [2, 2, -2])] * 2)
    figures.save(factors.figure(found), tmp_path / "factors.png")
    assert (tmp_path / "factors.png").stat().st_size > 5000


def test_nothing_where_there_are_no_factors_or_nobody_has_trained(waffle):
    def refuse():
        raise AssertionError("States are not to be read.")
        yield

    assert factors.of_clients(make("hdafl"), refuse()) == {}
    untrained = [state_of(waffle, [1, 1], [1, 1, 1], rounds=0)]
    assert factors.of_clients(waffle, untrained) == {}
    assert factors.summary(factors.of_clients(waffle, untrained)) == {}
    alone = factors.of_clients(waffle, [state_of(waffle, [1, 1], [1, 1, 1])])
    assert set(factors.summary(alone)) == {"active_factors_dense_1", "active_factors_dense_2"}
