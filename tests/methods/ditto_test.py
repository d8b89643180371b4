"""Ditto against its formulas, and at the ends of lambda."""

import numpy as np
import pytest
from transcription import COHORTS, RATE, build, examples_of, federate, sgd, start_of

from tff_het.methods.warning import MethodWarning


def written_out(process, strength: float):
    """Algorithm 1: the shared model, and each client's own."""
    w, own = start_of(process), {}
    for cohort in COHORTS:
        sent = []
        for client in cohort:
            own.setdefault(client, w)
            examples = examples_of(client)
            sent.append(sgd(w, examples))

            def near(v, w=w):
                return [strength * (a - b) for a, b in zip(v, w, strict=True)]

            own[client] = sgd(own[client], examples, added=near)
        w = [np.mean(of, axis=0) for of in zip(*sent, strict=True)]
    return w, own


def test_equals_the_formulas():
    process = build("ditto", proximal_strength=0.7)
    state, states = federate(process)
    w, own = written_out(process, 0.7)
    for found, wanted in zip(state.weights.trainable, w, strict=True):
        np.testing.assert_allclose(found, wanted, atol=1e-5)
    for client, wanted in own.items():
        weights, _ = process.adapt(state, states[client], examples_of(client), client=client)
        for found, value in zip(weights.trainable, wanted, strict=True):
            np.testing.assert_allclose(found, value, atol=1e-5)


@pytest.mark.slow
def test_with_lambda_0_it_is_local_training_beside_federated_averaging():
    with pytest.warns(MethodWarning, match="is local training, from the model first received"):
        process = build("ditto", proximal_strength=0.0)
    state, states = federate(process)
    _, alone = federate(build("local_only"))
    averaged, _ = federate(build("ave_fl"))
    for found, wanted in zip(state.weights.trainable, averaged.weights.trainable, strict=True):
        np.testing.assert_allclose(found, wanted, atol=1e-6)
    # Client 0 met the server before its first round, as it does when it is alone.
    own = states[0].work.weights.trainable
    for found, wanted in zip(own, alone[0].model.trainable, strict=True):
        np.testing.assert_allclose(found, wanted, atol=1e-6)


@pytest.mark.slow
def test_a_large_lambda_follows_the_shared_model():
    def distance(strength: float) -> float:
        process = build("ditto", proximal_strength=strength)
        downloaded, _ = federate(process, COHORTS[:-1])
        _, states = federate(process)
        own = states[0].work.weights.trainable
        pairs = zip(own, downloaded.weights.trainable, strict=True)
        return sum(float(np.square(a - b).sum()) for a, b in pairs)

    # Stable only for rate * lambda < 1.
    assert distance(0.9 / RATE) < 0.05 * distance(0.1)
