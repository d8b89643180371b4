"""FedALA against its formulas, and with A held at 1."""

import numpy as np
import pytest
from transcription import (
    BATCH,
    COHORTS,
    SIZES,
    batches,
    build,
    examples_of,
    federate,
    gradients,
    loss,
    sgd,
    start_of,
)

from tff_het.evaluation import communication
from tff_het.methods.warning import MethodWarning

ETA = 2.0


def mixed(v, w, shares):
    """The lower layer is the shared one's."""
    top = [a + (b - a) * share for a, b, share in zip(v[2:], w[2:], shares, strict=True)]
    return [*w[:2], *top]


def learned(v, w, shares, examples, rounds: int):
    losses = []
    while True:
        for batch in batches(examples, epochs=1):
            m = mixed(v, w, shares)
            last = loss(m, batch)
            of = zip(shares, gradients(m, batch)[2:], w[2:], v[2:], strict=True)
            shares = [np.clip(s - ETA * g * (b - a), 0, 1) for s, g, b, a in of]
        losses.append(last)
        if rounds > 1 or (len(losses) > 10 and np.std(losses[-10:]) < 0.1):
            return shares


def written_out(process, cohorts):
    """Algorithm 1: the shared model, and each client's own and its shares."""
    w, own, rounds = start_of(process), {}, dict.fromkeys(range(3), 0)
    for cohort in cohorts:
        sent = []
        for client in cohort:
            examples = examples_of(client)
            v, shares = own.get(client, (w, [np.ones_like(x) for x in w[2:]]))
            if rounds[client]:
                shares = learned(v, w, shares, examples, rounds[client])
            v = sgd(mixed(v, w, shares), examples)
            own[client] = v, shares
            rounds[client] += 1
            sent.append(v)
        sizes = [SIZES[client] for client in cohort]
        w = [np.average(of, axis=0, weights=sizes) for of in zip(*sent, strict=True)]
    return w, own


@pytest.mark.parametrize("cohorts", [COHORTS, [*COHORTS, *COHORTS]], ids=["three", "six"])
def test_equals_the_formulas(cohorts):
    process = build("fed_ala", mixing_rate=ETA, examples_share=1.0)
    state, states = federate(process, cohorts)
    w, own = written_out(process, cohorts)
    for found, wanted in zip(state.weights.trainable, w, strict=True):
        np.testing.assert_allclose(found, wanted, atol=1e-5)
    for client, (v, shares) in own.items():
        for found, wanted in zip(states[client].work.mixing, shares, strict=True):
            np.testing.assert_allclose(found, wanted, atol=2e-5)
        weights, _ = process.adapt(state, states[client], examples_of(client), client=client)
        for found, wanted in zip(weights.trainable, v, strict=True):
            np.testing.assert_allclose(found, wanted, atol=1e-5)


@pytest.mark.slow
def test_a_stays_in_its_range_and_is_learned_from_the_second_round_on():
    process = build("fed_ala", mixing_rate=50.0)
    _, states = federate(process, [(0, 1, 2)])
    assert all((np.asarray(a) == 1).all() for s in states.values() for a in s.work.mixing)
    _, states = federate(process, [(0, 1, 2)] * 4)
    shares = np.concatenate([np.ravel(a) for s in states.values() for a in s.work.mixing])
    assert shares.min() >= 0 and shares.max() <= 1
    assert shares.min() < 0.5


@pytest.mark.slow
def test_with_a_at_1_it_is_federated_averaging():
    with pytest.warns(MethodWarning, match="federated averaging"):
        process = build("fed_ala", mixing_rate=0.0)
    averaged = build("fed_avg")
    state, states = federate(process)
    of_average, _ = federate(averaged)
    for found, wanted in zip(state.weights.trainable, of_average.weights.trainable, strict=True):
        np.testing.assert_array_equal(found, wanted)
    assert communication.ledger(process) == communication.ledger(averaged)
    # Client 0 predicts with its own model: what it trained from the last download.
    downloaded, _ = federate(averaged, COHORTS[:-1])
    wanted = sgd(downloaded.weights.trainable, examples_of(0))
    weights, _ = process.adapt(state, states[0], examples_of(0), client=0)
    for found, value in zip(weights.trainable, wanted, strict=True):
        np.testing.assert_allclose(found, value, atol=1e-5)


@pytest.mark.slow
def test_learns_on_a_share_of_the_examples():
    """One example of client 0's seven at this share: A differs from that of all of them."""
    assert SIZES[0] > BATCH
    few, all_of_them = (
        federate(build("fed_ala", examples_share=share), [(0, 1, 2)] * 2)[1][0].work.mixing[0]
        for share in (0.1, 1.0)
    )
    assert not np.allclose(few, all_of_them)


def test_refusals():
    with pytest.raises(ValueError, match="some of dense_1, output; found dense_9"):
        build("fed_ala", adaptive_layers=["dense_9"])
    with pytest.raises(ValueError, match="above 0 and at most 1; found 80"):
        build("fed_ala", examples_share=80)
