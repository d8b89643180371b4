"""FedProto against its formulas, and what of it travels."""

import numpy as np
import pytest
from transcription import (
    CLASSES,
    COHORTS,
    RATE,
    UNITS,
    batches,
    build,
    examples_of,
    features,
    federate,
    gradients,
    logits,
    start_of,
)

from tff_het.evaluation import communication
from tff_het.methods.warning import MethodWarning

STRENGTH = 0.8


def pull(parameters, batch, prototypes, known):
    """Gradients of lambda times the mean squared distance, of the hidden layer."""
    x, y = batch["x"].astype(np.float64), batch["y"]
    hidden = features(parameters, x)
    error = 2 * STRENGTH * (hidden - prototypes[y]) * known[y][:, None] / hidden.size
    back = error * (hidden > 0)
    return [x.T @ back, back.sum(0), 0.0, 0.0]


def written_out(process, by_counts: bool):
    """Algorithm 1: each client's model, the prototypes, and which are known."""
    start = start_of(process)[:4]
    own = {}
    prototypes, known = np.zeros((CLASSES, UNITS)), np.zeros(CLASSES)
    for cohort in COHORTS:
        means, counts = [], []
        for client in cohort:
            examples, w = seen(client), own.get(client, start)
            for batch in batches(examples):
                pairs = zip(w, gradients(w, batch), pull(w, batch, prototypes, known), strict=True)
                w = [v - RATE * (g + p) for v, g, p in pairs]
            own[client] = w
            hidden, y = features(w, examples["x"]), examples["y"]
            members = [hidden[y == j] for j in range(CLASSES)]
            means.append([m.mean(axis=0) if len(m) else np.zeros(UNITS) for m in members])
            counts.append([len(m) for m in members])
        weights = np.array(counts, float) if by_counts else np.sign(counts)
        for j in range(CLASSES):
            if weights[:, j].sum():
                prototypes[j] = np.average(np.array(means)[:, j], axis=0, weights=weights[:, j])
                known[j] = 1
    return own, prototypes, known


def seen(client: int):
    """Class 0 is client 0's alone, so that a later cohort has none of it."""
    examples = examples_of(client)
    return examples | {"y": np.maximum(examples["y"], 1 if client else 0).astype(np.int32)}


@pytest.fixture
def run(monkeypatch):
    monkeypatch.setattr("transcription.examples_of", seen)

    def run(**options):
        process = build("fed_proto", prototype_strength=STRENGTH, **options)
        return process, *federate(process)

    return run


@pytest.mark.parametrize("by_counts", [False, True])
def test_equals_the_formulas(run, by_counts):
    weights = {"prototype_weights": "counts"} if by_counts else {}
    process, state, states = run(**weights)
    own, prototypes, known = written_out(process, by_counts)
    assert known.all()
    np.testing.assert_allclose(state.weights.non_trainable[0], prototypes, atol=1e-5)
    np.testing.assert_array_equal(state.weights.non_trainable[1], known)
    for client, wanted in own.items():
        for found, value in zip(states[client].model.trainable, wanted, strict=True):
            np.testing.assert_allclose(found, value, atol=1e-5)


def test_a_class_that_nobody_sends_keeps_its_prototype(run):
    process, _, _ = run()
    first, _ = federate(process, COHORTS[:1])
    after, _ = federate(process, COHORTS[:2])
    before, now = (np.asarray(state.weights.non_trainable[0]) for state in (first, after))
    np.testing.assert_array_equal(before[0], now[0])
    assert (before[1:] != now[1:]).any()


def test_only_prototypes_travel(run):
    process, state, _ = run()
    assert state.weights.trainable == []
    assert [np.shape(v) for v in state.weights.non_trainable] == [(CLASSES, UNITS), (CLASSES,)]
    assert process.model.num_global_parameters == CLASSES * (UNITS + 1)
    moved = communication.ledger(process)
    assert moved.bytes_down == 4 * CLASSES * (UNITS + 1)
    # And the update's weight, beside the metrics.
    assert moved.bytes_up - moved.metrics_bytes_up == 4 * (CLASSES * (UNITS + 1) + 1)


def test_predicts_with_its_model_or_with_the_nearest_prototype(run):
    examples = examples_of(0)
    found = {}
    for predict in ("model", "prototype"):
        process, state, states = run(predict=predict)
        variables = process.adapt(state, states[0], examples, client=0)
        found[predict] = process.predict(*variables, examples, client=0)["logits"]
    w = [np.asarray(v, np.float64) for v in states[0].model.trainable]
    np.testing.assert_allclose(found["model"], logits(w, examples["x"]), atol=1e-5)
    prototypes = np.asarray(state.weights.non_trainable[0])
    hidden = features(w, examples["x"])
    distance = np.square(hidden[:, None] - prototypes).sum(axis=-1)
    np.testing.assert_allclose(found["prototype"], -distance, rtol=1e-4, atol=1e-5)


@pytest.mark.slow
def test_without_pull_it_is_local_training():
    with pytest.warns(MethodWarning, match="local training alone"):
        process = build("fed_proto", prototype_strength=0.0)
    _, states = federate(process)
    _, alone = federate(build("local_only"))
    for client, state in states.items():
        for a, b in zip(state.model.trainable, alone[client].model.trainable, strict=True):
            np.testing.assert_allclose(a, b, atol=1e-6)


def test_refusals():
    with pytest.raises(ValueError, match="found many"):
        build("fed_proto", prototype_weights="many")
    with pytest.raises(ValueError, match="found head"):
        build("fed_proto", predict="head")
