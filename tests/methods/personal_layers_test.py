"""Methods whose clients keep, fit or fine-tune layers, against their formulas."""

import dataclasses

import numpy as np
import pytest
from cases import CASES, SEED, assert_same_bits
from cases import build as build_case
from transcription import (
    COHORTS,
    RATE,
    SIZES,
    build,
    examples_of,
    federate,
    logits,
    sgd,
    start_of,
)

from tff_het.methods.warning import MethodWarning

BODY, HEAD = (True, True, False, False), (False, False, True, True)


def averaged(sent: dict[int, list]) -> list[np.ndarray]:
    """The mean by examples."""
    sizes = [SIZES[client] for client in sent]
    return [np.average(of, axis=0, weights=sizes) for of in zip(*sent.values(), strict=True)]


def assert_close(found, wanted) -> None:
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-5)


def test_fed_rep():
    process = build("fed_rep", head_epochs=3, body_epochs=2)
    state, states = federate(process)
    w, heads = start_of(process), {}
    for cohort in COHORTS:
        sent = {}
        for client in cohort:
            examples, own = examples_of(client), [*w[:2], *heads.get(client, w[2:])]
            own = sgd(own, examples, epochs=3, trains=HEAD)
            own = sgd(own, examples, epochs=2, trains=BODY)
            sent[client], heads[client] = own[:2], own[2:]
        w = [*averaged(sent), *w[2:]]
    assert_close(state.weights.trainable, w[:2])
    for client, head in heads.items():
        assert_close(states[client].model.trainable, head)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "fixed"),
    [({"head_epochs": 2, "body_epochs": 0}, BODY), ({"head_epochs": 0, "body_epochs": 2}, HEAD)],
    ids=["head", "body"],
)
def test_fed_rep_trains_one_part_at_a_time(options, fixed):
    with pytest.warns(MethodWarning, match="epochs 0"):
        process = build("fed_rep", **options)
    state, states = federate(process)
    found = [*state.weights.trainable, *states[0].model.trainable]
    same = [np.array_equal(a, b) for a, b in zip(found, start_of(process), strict=True)]
    assert same == list(fixed)


def test_fed_rep_trains_something():
    with pytest.raises(ValueError, match="found 0 epochs of both"):
        build("fed_rep", head_epochs=0, body_epochs=0)


@pytest.mark.parametrize("fine_tune", ["all", pytest.param("head", marks=pytest.mark.slow)])
def test_fed_babu(fine_tune):
    process = build("fed_babu", fine_tuning_epochs=3, fine_tune=fine_tune)
    state, states = federate(process)
    start = start_of(process)
    w = start
    for cohort in COHORTS:
        w = averaged({c: sgd(w, examples_of(c), trains=BODY) for c in cohort})
    assert_close(state.weights.trainable, w[:2])
    # Nobody has trained the head, neither the server nor a client.
    assert_close(w[2:], start[2:])
    for client, own in states.items():
        assert_close(own.model.trainable, start[2:])
        tuned, local = process.adapt(state, own, examples_of(client), client=client)
        trains = HEAD if fine_tune == "head" else (True,) * 4
        wanted = sgd(w, examples_of(client), epochs=3, trains=trains)
        assert_close([*tuned.trainable, *local.model.trainable], wanted)


def test_fed_babu_fine_tunes_all_or_the_head():
    with pytest.raises(ValueError, match="found body"):
        build("fed_babu", fine_tune="body")


@pytest.mark.parametrize("rate", [None, 0.03])
def test_fed_avg_ft(rate):
    process = build("fed_avg_ft", fine_tuning_epochs=3, fine_tuning_rate=rate)
    state, states = federate(process)
    plain, _ = federate(build("fed_avg"))
    assert_same_bits(state, plain)
    w = [value.astype(np.float64) for value in state.weights.trainable]
    for client in range(3):
        own = states[client]
        tuned, _ = process.adapt(state, own, examples_of(client), client=client)
        wanted = sgd(w, examples_of(client), epochs=3, rate=rate or RATE)
        assert_close(tuned.trainable, wanted)
        x = examples_of(client)["x"]
        outputs = process.predict(tuned, own, {"x": x})
        np.testing.assert_allclose(outputs["logits"], logits(wanted, x), atol=1e-4)


@pytest.mark.parametrize(
    ("method", "number"),
    [("fed_avg_ft", "fine_tuning_epochs"), ("fed_prox", "proximal_strength"), ("q_ffl", "q")],
)
def test_what_is_federated_averaging_says_so(method, number):
    with pytest.warns(MethodWarning, match="is federated averaging"):
        process = build(method, **{number: 0})
    assert not process.adapts


@pytest.mark.parametrize("method", ["fed_avg_ft", "fed_babu", "fed_rep", "ditto"])
def test_acquisition_is_refused(method):
    (case,) = [case for case in CASES if str(case) == "fed_avg-acquisition"]
    with pytest.raises(ValueError, match="leave the acquisition out"):
        build_case(dataclasses.replace(case, method=method), SEED)
