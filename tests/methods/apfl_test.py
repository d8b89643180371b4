"""APFL against its formulas, and at the ends of its mixture."""

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


def mixed(v, u, alpha):
    return [alpha * a + (1 - alpha) * b for a, b in zip(v, u, strict=True)]


def local(w, v, alpha, examples, adapts: bool):
    """A client's round of Algorithm 1: what it sends, its own model, and its share."""
    u = w
    for number, batch in enumerate(batches(examples)):
        of_u, of_mixed = gradients(u, batch), gradients(mixed(v, u, alpha), batch)
        slope = sum(((a - b) * g).sum() for a, b, g in zip(v, u, of_mixed, strict=True))
        v, u = (
            [a - RATE * alpha * g for a, g in zip(v, of_mixed, strict=True)],
            [a - RATE * g for a, g in zip(u, of_u, strict=True)],
        )
        if adapts and number == 0:
            alpha = float(np.clip(alpha - RATE * slope, 0, 1))
    return u, v, alpha


@pytest.mark.parametrize("adapts", [True, False])
def test_equals_the_formulas(adapts):
    process = build("apfl", mixing=0.3, adapt_mixing=adapts)
    state, states = federate(process)
    w, own = start_of(process), {}
    for cohort in COHORTS:
        sent = []
        for client in cohort:
            v, alpha = own.get(client, (w, 0.3))
            u, v, alpha = local(w, v, alpha, examples_of(client), adapts)
            own[client] = v, alpha
            sent.append(u)
        w = [np.mean(of, axis=0) for of in zip(*sent, strict=True)]
    for found, wanted in zip(state.weights.trainable, w, strict=True):
        np.testing.assert_allclose(found, wanted, atol=1e-5)
    for client, (v, alpha) in own.items():
        np.testing.assert_allclose(states[client].work.mixing, alpha, atol=1e-5)
        assert (alpha == 0.3) != adapts
        weights, _ = process.adapt(state, states[client], examples_of(client), client=client)
        for found, wanted in zip(weights.trainable, mixed(v, w, alpha), strict=True):
            np.testing.assert_allclose(found, wanted, atol=1e-5)


@pytest.mark.slow
def test_at_0_it_is_federated_averaging_and_at_1_local_training():
    averaged, _ = federate(build("ave_fl"))
    with pytest.warns(MethodWarning, match="federated averaging"):
        shared = build("apfl", mixing=0.0, adapt_mixing=False)
    state, states = federate(shared)
    weights, _ = shared.adapt(state, states[0], examples_of(0))
    for found, wanted in zip(weights.trainable, averaged.weights.trainable, strict=True):
        np.testing.assert_allclose(found, wanted, atol=1e-6)
    _, alone = federate(build("local_only"))
    _, states = federate(build("apfl", mixing=1.0, adapt_mixing=False))
    for found, wanted in zip(
        states[0].work.weights.trainable, alone[0].model.trainable, strict=True
    ):
        np.testing.assert_allclose(found, wanted, atol=1e-6)


@pytest.mark.slow
def test_the_share_stays_in_its_range_and_near_its_start_where_models_are_alike():
    _, states = federate(build("apfl", mixing=0.9), [(0, 1, 2)] * 8)
    assert all(0 <= float(state.work.mixing) <= 1 for state in states.values())
    _, alone = federate(build("apfl"), [(0,)] * 3)
    _, together = federate(build("apfl"), [(0, 1, 2)] * 3)
    # One client alone has a shared model like its own; others pull it elsewhere.
    moves = [abs(float(of[0].work.mixing) - 0.5) for of in (alone, together)]
    assert moves[0] < moves[1]
