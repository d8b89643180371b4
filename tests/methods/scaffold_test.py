"""SCAFFOLD against its formulas, and what its control variates sum to."""

import functools

import numpy as np
import pytest
import transcription
from transcription import (
    COHORTS,
    RATE,
    SIZES,
    batches,
    build,
    examples_of,
    federate,
    gradients,
    sgd,
    start_of,
)

from experiments.run import plugins
from tff_het.backend.names import tff
from tff_het.learning.acquisition import Acquisition
from tff_het.learning.local_training import LocalTraining

EVERYBODY = ((0, 1, 2),) * 3


def plain(x, examples, slope):
    return sgd(x, examples, added=lambda _: slope)


def with_momentum(x, examples, slope):
    """Steps of SGD with momentum 0.9, each followed by one along `slope` alone."""
    y, velocity = x, [0.0] * len(x)
    for batch in batches(examples):
        pairs = zip(velocity, gradients(y, batch), strict=True)
        velocity = [0.9 * v + g for v, g in pairs]
        y = [w - RATE * (v + s) for w, v, s in zip(y, velocity, slope, strict=True)]
    return y


def written_out(process, trained=plain, sizes=(1, 1, 1)):
    """Algorithm 1 with option II: the model, the server's control variate, the clients'.

    A client of twice the size counts twice in all means.
    """
    x = start_of(process)
    zeros = [np.zeros_like(w) for w in x]
    c, own = zeros, dict.fromkeys(range(len(SIZES)), zeros)
    for cohort in COHORTS:
        moves, changes = [], []
        for client in cohort:
            slope = [a - b for a, b in zip(c, own[client], strict=True)]
            examples = examples_of(client)
            y = trained(x, examples, slope)
            steps = len(list(batches(examples)))
            pairs = zip(slope, x, y, strict=True)
            after = [-s + (a - b) / (steps * RATE) for s, a, b in pairs]
            moves.append([b - a for a, b in zip(x, y, strict=True)])
            changes.append([a - b for a, b in zip(after, own[client], strict=True)])
            own[client] = after
        mean = functools.partial(np.average, axis=0, weights=[sizes[k] for k in cohort])
        x = [w + mean(of) for w, *of in zip(x, *moves, strict=True)]
        took_part = len(cohort) / len(SIZES)
        c = [w + took_part * mean(of) for w, *of in zip(c, *changes, strict=True)]
    return x, c, own


def assert_close(found, wanted, atol: float = 1e-5) -> None:
    for one, value in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one, value, atol=atol)


def trained_with(monkeypatch, **settings) -> None:
    """Lets clients train with other settings than those of `transcription.build`."""
    monkeypatch.setattr(
        transcription,
        "LocalTraining",
        lambda optimizer, **given: LocalTraining(**{"optimizer": optimizer} | given | settings),
    )


def assert_equals(process, x, c, own) -> None:
    state, states = federate(process)
    assert_close(state.weights.trainable, x)
    assert_close(state.server_step[0], c)
    for client, wanted in own.items():
        assert_close(states[client].work, wanted)


def test_equals_the_formulas():
    process = build("scaffold", num_clients=len(SIZES))
    assert_equals(process, *written_out(process))


def test_flowers_one_has_momentum_and_weights_by_examples(monkeypatch):
    plugins.load(["experiments.boards.flower_scaffold"])
    optimizer = tff.learning.optimizers.build_sgdm(RATE, momentum=0.9)
    trained_with(monkeypatch, optimizer=optimizer)
    process = build("flower_scaffold", num_clients=len(SIZES))
    assert_equals(process, *written_out(process, with_momentum, SIZES))


def test_the_corrections_of_all_clients_sum_to_n_times_the_servers():
    state, states = federate(build("scaffold", num_clients=len(SIZES)))
    sums = [np.sum(of, axis=0) for of in zip(*(s.work for s in states.values()), strict=True)]
    assert max(np.abs(one).max() for one in sums) > 1e-3
    assert_close(sums, [len(SIZES) * np.asarray(c) for c in state.server_step[0]], 1e-6)


@pytest.mark.slow
def test_one_step_of_all_clients_is_federated_averaging_with_equal_weights(monkeypatch):
    optimizer = tff.learning.optimizers.build_sgdm(RATE)
    trained_with(monkeypatch, optimizer=optimizer, batch_size=max(SIZES), epochs=1)
    found, _ = federate(build("scaffold", num_clients=len(SIZES)), EVERYBODY)
    wanted, _ = federate(build("ave_fl"), EVERYBODY)
    assert_close(found.weights.trainable, wanted.weights.trainable, 1e-6)


@pytest.mark.parametrize("refused", ["momentum", "acquisition"])
def test_refuses_what_its_control_variates_do_not_hold_for(monkeypatch, refused):
    momentum = 0.9 if refused == "momentum" else None
    acquired = Acquisition("random", size=2, per_round=1) if refused == "acquisition" else None
    optimizer = tff.learning.optimizers.build_sgdm(RATE, momentum=momentum)
    trained_with(monkeypatch, optimizer=optimizer, acquisition=acquired)
    with pytest.raises(ValueError, match="scaffold takes plain SGD alone"):
        build("scaffold", num_clients=len(SIZES))


def test_needs_the_number_of_clients():
    with pytest.raises(TypeError, match="'num_clients'"):
        build("scaffold")
