"""IFCA against its formulas, and the clusters that it finds."""

import collections

import numpy as np
import pytest
import transcription
from transcription import COHORTS, FEATURES, SIZES, build, federate, loss, sgd, start_of

from tff_het.methods.warning import MethodWarning

CLUSTERS, KINDS = 2, 2


def written_out(process):
    """Algorithm 1 with model averaging: all models, and which of them each client chose."""
    models = [list(of) for of in zip(*start_of(process), strict=True)]
    chosen = []
    for cohort in COHORTS:
        sent = collections.defaultdict(list)
        for client in cohort:
            examples = planted(client)
            j = int(np.argmin([loss(theta, examples) for theta in models]))
            sent[j].append(sgd(models[j], examples))
            chosen.append(j)
        for j, of in sent.items():
            models[j] = [np.mean(values, axis=0) for values in zip(*of, strict=True)]
    return models, chosen


def planted(client: int):
    """Points whose labels are opposite in clients of odd and of even number."""
    size = 2 * SIZES[client % len(SIZES)]
    x = np.random.default_rng(client).normal(size=(size, FEATURES)).astype(np.float32)
    y = (x[:, 0] > 0) ^ (client % KINDS == 1)
    return collections.OrderedDict(x=x, y=y.astype(np.int32))


def rows(weights, j: int):
    return [np.asarray(w)[j] for w in weights.trainable]


@pytest.fixture(autouse=True)
def clients_of_two_kinds(monkeypatch):
    monkeypatch.setattr(transcription, "examples_of", planted)


def test_equals_the_formulas():
    process = build("ifca", num_clusters=3)
    state, _ = federate(process)
    models, chosen = written_out(process)
    # Clients of one model and of two in a round, and a model that nobody chooses.
    assert set(chosen) == {0, 2}
    for j, model in enumerate(models):
        for found, wanted in zip(rows(state.weights, j), model, strict=True):
            np.testing.assert_allclose(found, wanted, atol=1e-5)


def test_recovers_planted_clusters():
    process = build("ifca", num_clusters=CLUSTERS)
    state, states = federate(process, ((0, 1, 2, 3),) * 12)
    closest = [
        int(np.argmin([loss(rows(state.weights, j), planted(client)) for j in range(CLUSTERS)]))
        for client in range(4)
    ]
    assert closest[0] == closest[2] != closest[1] == closest[3]
    # Clients 4 and 5 have never trained.
    for client in range(6):
        own = states.get(client) or process.init_state(client, 1, state)
        adapted, _ = process.adapt(state, own, planted(client), client=client)
        kind = closest[client % KINDS]
        for found, wanted in zip(rows(adapted, 0), rows(state.weights, kind), strict=True):
            np.testing.assert_array_equal(found, wanted)
        if client in states:
            assert loss(rows(adapted, 0), planted(client)) < 0.5


def test_an_empty_cluster_keeps_its_model():
    process = build("ifca", num_clusters=CLUSTERS)
    start = process.initialize()
    state, _ = federate(process, ((0,),))
    moved = [
        any(
            (a != b).any()
            for a, b in zip(rows(state.weights, j), rows(start.weights, j), strict=True)
        )
        for j in range(CLUSTERS)
    ]
    assert sorted(moved) == [False, True]


def test_sends_one_model_of_k():
    assert build("ifca", num_clusters=4).upload_share == 0.25


@pytest.mark.slow
def test_one_cluster_is_federated_averaging_with_equal_weights():
    with pytest.warns(MethodWarning, match="federated averaging with equal weights"):
        process = build("ifca", num_clusters=1)
    found, _ = federate(process)
    wanted, _ = federate(build("ave_fl"))
    for one, value in zip(rows(found.weights, 0), wanted.weights.trainable, strict=True):
        np.testing.assert_allclose(one, value, atol=1e-6)
