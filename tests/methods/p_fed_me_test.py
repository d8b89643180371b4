"""pFedMe against its formulas, and at the ends of its settings."""

import numpy as np
import pytest
from transcription import (
    COHORTS,
    RATE,
    batches,
    build,
    examples_of,
    federate,
    gradients,
    start_of,
)

from tff_het.methods.warning import MethodWarning

SETTINGS = {"proximal_strength": 3.0, "personal_rate": 0.05, "inner_steps": 3}


def local(w, examples, strength: float, rate: float, inner: int):
    """A client's round of Algorithm 1: what it sends, and its own model."""
    u, theta = list(w), list(w)
    for batch in batches(examples):
        for _ in range(inner):
            slope = gradients(theta, batch)
            pairs = zip(theta, slope, u, strict=True)
            theta = [t - rate * (g + strength * (t - v)) for t, g, v in pairs]
        u = [v - RATE * strength * (v - t) for v, t in zip(u, theta, strict=True)]
    return u, theta


@pytest.mark.parametrize(
    ("beta", "kept", "weights"),
    [pytest.param(1.0, "u", "equal", marks=pytest.mark.slow), (1.5, "theta", "examples")],
)
def test_equals_the_formulas(beta, kept, weights):
    own = {"predict_with": kept, "client_weights": weights}
    process = build("p_fed_me", server_mixing=beta, **own, **SETTINGS)
    state, states = federate(process)
    w, own = start_of(process), {}
    for cohort in COHORTS:
        sent = []
        for client in cohort:
            u, theta = local(w, examples_of(client), *SETTINGS.values())
            own[client] = u if kept == "u" else theta
            sent.append(u)
        counts = [len(examples_of(client)["y"]) for client in cohort]
        counts = None if weights == "equal" else counts
        mean = [np.average(of, axis=0, weights=counts) for of in zip(*sent, strict=True)]
        w = [(1 - beta) * a + beta * b for a, b in zip(w, mean, strict=True)]
    for found, wanted in zip(state.weights.trainable, w, strict=True):
        np.testing.assert_allclose(found, wanted, atol=1e-5)
    for client, personal in own.items():
        weights, _ = process.adapt(state, states[client], examples_of(client), client=client)
        for found, wanted in zip(weights.trainable, personal, strict=True):
            np.testing.assert_allclose(found, wanted, atol=1e-5)


@pytest.mark.slow
def test_with_beta_0_the_server_never_moves():
    with pytest.warns(MethodWarning, match="never moves"):
        process = build("p_fed_me", server_mixing=0.0, **SETTINGS)
    state, states = federate(process)
    for found, wanted in zip(state.weights.trainable, start_of(process), strict=True):
        np.testing.assert_array_equal(found, wanted.astype(np.float32))
    assert not np.allclose(states[0].work.weights.trainable[0], state.weights.trainable[0])


@pytest.mark.slow
def test_a_large_lambda_holds_the_personal_model_near():
    def distance(strength: float) -> float:
        settings = SETTINGS | {"proximal_strength": strength, "personal_rate": 0.9 / strength}
        process = build("p_fed_me", **settings)
        state, states = federate(process, [(0,)])
        pairs = zip(states[0].work.weights.trainable, state.weights.trainable, strict=True)
        return sum(float(np.square(a - b).sum()) for a, b in pairs)

    assert distance(10.0) < 0.1 * distance(1.0)


def test_momentum_is_refused(monkeypatch):
    import transcription

    from tff_het.backend.names import tff

    build_sgdm = tff.learning.optimizers.build_sgdm
    monkeypatch.setattr(
        transcription.tff.learning.optimizers, "build_sgdm", lambda rate: build_sgdm(rate, 0.9)
    )
    with pytest.raises(ValueError, match=r"leave momentum .* and clipping out"):
        build("p_fed_me")
