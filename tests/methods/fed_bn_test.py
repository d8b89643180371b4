"""FedBN against its formulas, written out with batch normalisation in NumPy."""

import collections

import numpy as np
import pytest
from transcription import BATCH, CLASSES, COHORTS, FEATURES, RATE, SIZES, examples_of, federate

from tff_het import methods
from tff_het.backend.names import keras, tff
from tff_het.learning.local_training import LocalTraining
from tff_het.models import architectures

UNITS, EPSILON, MOMENTUM = 3, 1e-3, 0.9
ELEMENT = {"x": (np.dtype(np.float32), (FEATURES,)), "y": (np.dtype(np.int32), ())}
# In the model's order.
KERNEL, GAMMA, BETA, MEAN, VARIANCE, OUTPUT, BIAS = range(7)
SHARED, OWN = (KERNEL, OUTPUT, BIAS), (GAMMA, BETA, MEAN, VARIANCE)


def batch_norm():
    return keras.layers.BatchNormalization(momentum=MOMENTUM, epsilon=EPSILON, name="scaled")


def build(method: str, layer=batch_norm):
    def network(x, num_classes, layers):
        hidden = keras.layers.Dense(UNITS, use_bias=False, name="dense_1")(x)
        hidden = keras.layers.ReLU()(layer()(hidden))
        return hidden, layers.output(num_classes)(hidden)

    architecture = architectures.make("normalized", ELEMENT, CLASSES, network)
    training = LocalTraining(
        tff.learning.optimizers.build_sgdm(RATE), batch_size=BATCH, epochs=2, shuffle=False
    )
    return methods.build(method, architecture, training, seed=1)


def values_of(process, weights, local) -> list[np.ndarray]:
    variables = collections.namedtuple("_", ["global_weights", "local_weights"])(weights, local)
    return [np.array(value, np.float64) for value in process.model.join(variables)]


def trained(w: list[np.ndarray], examples, epochs: int = 2) -> list[np.ndarray]:
    """Plain SGD; the last batch of a pass is filled up with the first examples, of weight 0."""
    n = len(examples["y"])
    places = np.arange(-(-n // BATCH) * BATCH).reshape(-1, BATCH)
    for rows in np.concatenate([places] * epochs):
        x, y = examples["x"][rows % n].astype(np.float64), examples["y"][rows % n]
        kernel, gamma, beta, mean, variance, output, bias = w
        z = x @ kernel
        root = np.sqrt(z.var(0) + EPSILON)
        scaled = (z - z.mean(0)) / root
        before = gamma * scaled + beta
        hidden = np.maximum(before, 0)
        logits = hidden @ output + bias
        error = np.exp(logits - logits.max(1, keepdims=True))
        error /= error.sum(1, keepdims=True)
        error[np.arange(BATCH), y] -= 1
        error *= (rows < n)[:, np.newaxis] / (rows < n).sum()
        back = (error @ output.T) * (before > 0)
        to_scaled = back * gamma
        centred = to_scaled - to_scaled.mean(0) - scaled * (to_scaled * scaled).mean(0)
        w = [
            kernel - RATE * x.T @ (centred / root),
            gamma - RATE * (back * scaled).sum(0),
            beta - RATE * back.sum(0),
            MOMENTUM * mean + (1 - MOMENTUM) * z.mean(0),
            MOMENTUM * variance + (1 - MOMENTUM) * z.var(0),
            output - RATE * hidden.T @ error,
            bias - RATE * error.sum(0),
        ]
    return w


def test_equals_the_formulas():
    process = build("fed_bn")
    state, states = federate(process)
    start = process.initialize()
    w = values_of(process, start.weights, start.initial_local)
    own = {client: [w[place] for place in OWN] for client in range(len(SIZES))}
    for cohort in COHORTS:
        sent = {}
        for client in cohort:
            before = list(w)
            for place, value in zip(OWN, own[client], strict=True):
                before[place] = value
            sent[client] = trained(before, examples_of(client))
            own[client] = [sent[client][place] for place in OWN]
        sizes = [SIZES[client] for client in cohort]
        for place in SHARED:
            w[place] = np.average([one[place] for one in sent.values()], axis=0, weights=sizes)
    for client, kept in states.items():
        found = values_of(process, state.weights, kept.model)
        for place in SHARED:
            np.testing.assert_allclose(found[place], w[place], atol=1e-5)
        for place, value in zip(OWN, own[client], strict=True):
            np.testing.assert_allclose(found[place], value, atol=1e-5)


def test_only_batch_normalisation_differs_between_clients():
    """Whatever the layer is called."""
    process = build("fed_bn")
    state, states = federate(process)
    one, other = (values_of(process, state.weights, states[client].model) for client in (0, 1))
    same = [np.array_equal(a, b) for a, b in zip(one, other, strict=True)]
    assert [
        spec.path for spec, is_same in zip(process.model.specs, same, strict=True) if not is_same
    ] == [f"scaled/{name}" for name in ("gamma", "beta", "moving_mean", "moving_variance")]


@pytest.mark.slow
def test_with_one_client_it_is_federated_averaging():
    found, wanted = (
        values_of(process, state.weights, states[0].model)
        for process in map(build, ("fed_bn", "fed_avg"))
        for state, states in [federate(process, [[0]] * 3)]
    )
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-6)


def test_layer_normalisation_is_another_thing():
    with pytest.raises(ValueError, match=r"has none \(layers dense_1, scaled, output\)"):
        build("fed_bn", lambda: keras.layers.LayerNormalization(name="scaled"))
