"""Per-FedAvg against its formulas, and its Hessian-free step against the exact meta-gradient."""

import itertools

import numpy as np
import pytest
import transcription
from transcription import (
    COHORTS,
    RATE,
    batches,
    build,
    examples_of,
    federate,
    gradients,
    loss,
    start_of,
)

from tff_het.learning.local_training import LocalTraining

ALPHA, DELTA = 0.05, 1e-2


def moved(w, by, times):
    return [a + times * b for a, b in zip(w, by, strict=True)]


def meta_gradient(w, taken, exact: bool):
    adapted = moved(w, gradients(w, taken[0]), -ALPHA)
    slope = gradients(adapted, taken[1])
    if not exact:
        return slope
    up, down = (gradients(moved(w, slope, sign * DELTA), taken[2]) for sign in (1, -1))
    pairs = zip(slope, up, down, strict=True)
    return [g - ALPHA * (a - b) / (2 * DELTA) for g, a, b in pairs]


@pytest.mark.parametrize(
    ("variant", "weights"),
    [("first_order", "equal"), ("first_order", "examples"), ("hessian_free", "equal")],
)
def test_equals_the_formulas(variant, weights):
    exact = variant == "hessian_free"
    own = {"variant": variant, "difference": DELTA, "client_weights": weights}
    process = build("per_fed_avg", adaptation_rate=ALPHA, **own)
    state, states = federate(process)
    w = start_of(process)
    for cohort in COHORTS:
        sent = []
        for client in cohort:
            examples, own = examples_of(client), w
            steps = len(list(batches(examples)))
            # As many steps as local training has, of two or three batches each.
            stream = itertools.cycle(batches(examples, epochs=1))
            for _ in range(steps):
                taken = [next(stream) for _ in range(3 if exact else 2)]
                own = moved(own, meta_gradient(own, taken, exact), -RATE)
            sent.append(own)
        counts = [len(examples_of(client)["y"]) for client in cohort]
        counts = None if weights == "equal" else counts
        w = [np.average(of, axis=0, weights=counts) for of in zip(*sent, strict=True)]
    for found, wanted in zip(state.weights.trainable, w, strict=True):
        np.testing.assert_allclose(found, wanted, atol=1e-4 if exact else 1e-5)
    # One step on the first batch of the training examples, which are four in a step.
    weights, _ = process.adapt(state, states[1], examples_of(1), client=1, seed=(0, 0))
    own = [np.asarray(value) for value in weights.trainable]
    assert loss(own, examples_of(1)) < loss(w, examples_of(1))
    expected = moved(w, gradients(w, examples_of(1)), -ALPHA)  # All four, in any order.
    for found, wanted in zip(own, expected, strict=True):
        np.testing.assert_allclose(found, wanted, atol=1e-4)


def test_the_hessian_free_step_is_the_exact_gradient_of_the_adapted_loss(monkeypatch):
    """By differences of f(w - alpha grad f(w)), on one batch for all three."""
    examples = examples_of(1)  # One batch.
    of_one = {"batch_size": len(examples["y"]), "epochs": 1}
    monkeypatch.setattr(
        transcription, "LocalTraining", lambda rule, **own: LocalTraining(rule, **own | of_one)
    )
    steps = []
    for variant in ("hessian_free", "first_order"):
        process = build("per_fed_avg", adaptation_rate=ALPHA, variant=variant)
        w = start_of(process)
        after = federate(process, [[1]])[0].weights.trainable
        steps.append([(a - b) / RATE for a, b in zip(w, after, strict=True)])
    found, first_order = steps

    def adapted_loss(values) -> float:
        return loss(moved(values, gradients(values, examples), -ALPHA), examples)

    for place, value in enumerate(w):
        exact = np.zeros_like(value)
        for at in np.ndindex(value.shape):
            for sign in (1, -1):
                changed = [np.array(v) for v in w]
                changed[place][at] += sign * 1e-5
                exact[at] += sign * adapted_loss(changed) / 2e-5
        error = np.abs(found[place] - exact).max()
        assert error < 0.2 * np.abs(first_order[place] - exact).max() or error < 1e-6
