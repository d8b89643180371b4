"""Fitting a client that joins: only what is local moves, and it moves as in a round."""

import collections

import numpy as np
import pytest
import tensorflow as tf

from tff_het import methods
from tff_het.backend.names import tff
from tff_het.evaluation.new_client import NewClient
from tff_het.learning.local_training import LocalTraining
from tff_het.models import architectures, networks
from tff_het.simulation import start as starts

FEATURES, CLASSES, SEED = 4, 3, 1
TRAINING = LocalTraining(
    tff.learning.optimizers.build_sgdm(0.2, momentum=0.9), batch_size=4, epochs=3
)


def build(method: str, training: LocalTraining = TRAINING, dropout: float = 0.2):
    element = {"x": (np.dtype(np.float32), (FEATURES,)), "y": (np.dtype(np.int32), ())}
    architecture = architectures.make("small", element, CLASSES, networks.mlp([5], dropout=dropout))
    return methods.build(method, architecture, training, seed=SEED)


def examples(n: int = 9):
    rng = np.random.default_rng(3)
    x = rng.normal(size=(n, FEATURES)).astype(np.float32)
    return collections.OrderedDict(x=x, y=rng.integers(0, CLASSES, n).astype(np.int32))


def flat(values) -> list[np.ndarray]:
    return [np.asarray(value) for value in tf.nest.flatten(values)]


@pytest.fixture(autouse=True)
def _runtime(worker):
    """Processes need one to begin."""


def test_only_the_conditioning_moves():
    process = build("cgau")
    server = process.initialize()
    before = process.init_state(7, SEED, server)
    state = NewClient(process, TRAINING).fit(
        server.weights, before, examples(), seed=(1, 2), client=7
    )
    assert len(flat(state.model)) == 2
    assert all(np.all(value != 0) for value in flat(state.model))
    assert state.rounds == 1


def test_one_local_step_is_that_of_a_round():
    """One step on all examples, against a round of training."""
    process = build("hdafl")
    training = LocalTraining(
        tff.learning.optimizers.build_sgdm(0.5), batch_size=16, epochs=1, shuffle=False
    )
    server = process.initialize()
    before, data = process.init_state(0, SEED, server), examples()
    # The same dropout mask is drawn in a round, in which the local variables move alike.
    state = NewClient(process, training).fit(server.weights, before, data, seed=(1, 2))
    client = collections.OrderedDict(
        client=np.int32(0), seed=np.array([1, 2], np.int32), examples=data, state=before
    )
    (kept,) = build("hdafl", training).next(server, [client]).client_states
    for fitted, trained, old in zip(
        flat(state.model), flat(kept["state"].model), flat(before.model), strict=True
    ):
        np.testing.assert_allclose(fitted, trained, atol=1e-6)
        assert not np.allclose(fitted, old, atol=1e-3)


@pytest.mark.slow
def test_a_model_of_federated_averaging_gets_a_local_part():
    """One step on all examples, in NumPy: the client has a first layer beside FedAvg's output."""
    rate, data = 0.5, examples()
    training = LocalTraining(tff.learning.optimizers.build_sgdm(rate), batch_size=9, epochs=1)
    fed_avg, lg = (build(method, training, dropout=0.0) for method in ("fed_avg", "lg_fedavg"))
    trained = fed_avg.next(fed_avg.initialize(), [client_of(fed_avg, data)]).state
    server = starts.after(fed_avg, trained).server_state(lg, lg.initialize())
    before = lg.init_state(5, SEED, server)
    w1, b1, w2, b2 = trained.weights.trainable
    for own, theirs in zip(
        [*flat(before.model), *flat(server.weights)], (w1, b1, w2, b2), strict=True
    ):
        np.testing.assert_array_equal(own, theirs)

    state = NewClient(lg, training).fit(server.weights, before, data, seed=(1, 2), client=5)

    hidden = np.maximum(data["x"] @ w1 + b1, 0)
    p = np.exp(hidden @ w2 + b2)
    error = (p / p.sum(axis=1, keepdims=True) - np.eye(CLASSES)[data["y"]]) / 9
    back = error @ w2.T * (hidden > 0)
    moved = [w1 - rate * data["x"].T @ back, b1 - rate * back.sum(axis=0)]
    assert np.abs(back).max() > 1e-3
    for found, expected in zip(flat(state.model), moved, strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-5)


def client_of(process, data):
    """A client's part of a round that has not trained before."""
    state = process.init_state(0, SEED, process.initialize())
    return collections.OrderedDict(
        client=np.int32(0), seed=np.array([1, 2], np.int32), examples=data, state=state
    )


def test_what_cannot_be_fitted():
    process = build("fed_avg")
    with pytest.raises(ValueError, match="No variable of the model is local"):
        NewClient(process, TRAINING)
    cgau = build("cgau")
    server = cgau.initialize()
    with pytest.raises(ValueError, match="at least one example"):
        NewClient(cgau, TRAINING).fit(
            server.weights, cgau.init_state(0, SEED, server), examples(0), seed=(0, 0)
        )
    for name in ("x", "y"):
        few = {**examples(9), name: examples(9)[name][:5]}
        with pytest.raises(ValueError, match="examples, others have"):
            NewClient(cgau, TRAINING).fit(
                server.weights, cgau.init_state(0, SEED, server), few, seed=(0, 0)
            )
