"""FedDyn against its formulas, and where it converges to."""

import numpy as np
import pytest
from transcription import CLASSES, COHORTS, FEATURES, build, examples_of, federate, sgd, start_of

from tff_het import methods
from tff_het.backend.names import tff
from tff_het.learning.acquisition import Acquisition
from tff_het.learning.local_training import LocalTraining
from tff_het.models import architectures

NUM_CLIENTS = 3


def written_out(process, strength: float):
    """Algorithm 1: the shared model, and each client's l."""
    w = start_of(process)
    h = [np.zeros_like(v) for v in w]
    slopes = dict.fromkeys(range(NUM_CLIENTS), h)
    for cohort in COHORTS:
        sent = []
        for client in cohort:

            def added(theta, w=w, own=slopes[client]):
                return [-s + strength * (a - b) for s, a, b in zip(own, theta, w, strict=True)]

            theta = sgd(w, examples_of(client), added=added)
            pairs = zip(slopes[client], theta, w, strict=True)
            slopes[client] = [s - strength * (a - b) for s, a, b in pairs]
            sent.append(theta)
        h = [
            one - strength / NUM_CLIENTS * sum(a - b for a in of)
            for one, b, *of in zip(h, w, *sent, strict=True)
        ]
        means = [np.mean(of, axis=0) for of in zip(*sent, strict=True)]
        w = [a - one / strength for a, one in zip(means, h, strict=True)]
    return w, slopes


def test_equals_the_formulas():
    process = build("fed_dyn", num_clients=NUM_CLIENTS, proximal_strength=0.7)
    state, states = federate(process)
    w, slopes = written_out(process, 0.7)
    for found, wanted in zip(state.weights.trainable, w, strict=True):
        np.testing.assert_allclose(found, wanted, atol=1e-5)
    for client, wanted in slopes.items():
        for found, value in zip(states[client].work, wanted, strict=True):
            np.testing.assert_allclose(found, value, atol=1e-5)


def slope_of_the_sum(method: str, **options) -> float:
    """The largest gradient of the clients' mean loss, which is convex, where rounds end."""
    element = {"x": (np.dtype(np.float32), (FEATURES,)), "y": (np.dtype(np.int32), ())}
    architecture = architectures.make(
        "linear",
        element,
        CLASSES,
        lambda x, num_classes, layers: (x, layers.output(num_classes)(x)),
    )
    training = LocalTraining(
        tff.learning.optimizers.build_sgdm(0.1), batch_size=16, epochs=10, shuffle=False
    )
    process = methods.build(method, architecture, training, seed=1, **options)
    state, _ = federate(process, [(0, 1, 2)] * 150)
    kernel, bias = (np.asarray(v, np.float64) for v in state.weights.trainable)
    total = np.zeros_like(kernel)
    for client in range(NUM_CLIENTS):
        examples = examples_of(client)
        x, y = examples["x"].astype(np.float64), examples["y"]
        logits = x @ kernel + bias
        error = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
        error[np.arange(len(y)), y] -= 1
        total += x.T @ error / len(y) / NUM_CLIENTS
    return float(np.abs(total).max())


@pytest.mark.slow
def test_converges_to_the_minimum_of_the_sum_and_averaging_does_not():
    assert slope_of_the_sum("fed_dyn", num_clients=NUM_CLIENTS, proximal_strength=0.5) < 1e-3
    assert slope_of_the_sum("ave_fl") > 1e-2


def test_refusals():
    with pytest.raises(ValueError, match="needs num_clients"):
        build("fed_dyn")
    with pytest.raises(ValueError, match="proximal_strength: expected a number above 0"):
        build("fed_dyn", num_clients=3, proximal_strength=0.0)
    acquired = LocalTraining(
        tff.learning.optimizers.build_sgdm(0.1),
        batch_size=4,
        epochs=1,
        acquisition=Acquisition("bald", size=2, per_round=2, pool_size=5),
    )
    with pytest.raises(ValueError, match="leave the acquisition out"):
        methods.build("fed_dyn", None, acquired, seed=1, num_clients=3)
