"""What is observed is the run's own last round: with a start and without, from the first one on."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf

from experiments.run import processes, setup
from experiments.run.config import RunConfig
from tff_het.attacks import observation
from tff_het.simulation import loop, runtime
from tff_het.simulation import start as starts

FLAGS = {
    "dataset": "digits",
    "model": "mlp",
    "num_clients": "3",
    "clients_per_round": "2",
    "local_steps": "3",
    "seed": "4",
}


@pytest.fixture(autouse=True, scope="module")
def _runtime():
    with runtime.use("in_process", clients_in_parallel=1):
        yield


def assert_same(found, wanted) -> None:
    for a, b in zip(tf.nest.flatten(found), tf.nest.flatten(wanted), strict=True):
        np.testing.assert_array_equal(np.asarray(a), np.asarray(b))


@pytest.mark.parametrize("method", ["fed_avg", "hdafl"])
@pytest.mark.parametrize("rounds", [1, 3])
@pytest.mark.parametrize("rounds_before", [None, 5])
def test_as_in_a_run_of_all_rounds(method, rounds, rounds_before):
    """Weights and what clients keep, bit by bit: cohorts, seeds and states are the run's."""
    made = setup.make(RunConfig.of(**{**FLAGS, "method": method, "rounds": str(rounds)}))
    ((_, process),) = processes.build(made).items()
    start = None
    if rounds_before is not None:
        values = starts.after(process, process.initialize()).values
        doubled = {path: 2 * value for path, value in values.items()}
        start = starts.Start(doubled, rounds=rounds_before)
    given = (process, made.population, made.schedule, made.settings)
    observed = observation.last_round(*given, start=start)
    result = loop.train(*given, start=start)
    assert_same(observed.new_weights, result.state.weights)
    cohort = made.schedule(rounds - 1 + (rounds_before or 0))
    assert [seen.client for seen in observed.clients] == cohort
    if rounds > 1:
        shorter = dataclasses.replace(made.settings, rounds=rounds - 1)
        before = loop.train(*given[:3], shorter, start=start).state
    else:
        before = process.initialize()
        before = before if start is None else start.server_state(process, before)
    for seen in observed.clients:
        assert_same(seen.private, result.client_states.get(seen.client, result.state))
        assert_same(seen.before, before.weights)
        assert not np.array_equal(seen.after.trainable[0], seen.before.trainable[0])


def test_the_last_round_has_to_be_known():
    made = setup.make(RunConfig.of(**{**FLAGS, "method": "fed_avg", "rounds": "2"}))
    ((_, process),) = processes.build(made).items()
    goal = loop.Goal(0.9, split="test")
    settings = dataclasses.replace(made.settings, goal=goal)
    with pytest.raises(ValueError, match="no last round that is known"):
        observation.last_round(process, made.population, made.schedule, settings)
