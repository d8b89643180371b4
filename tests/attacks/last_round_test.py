"""What is observed is the run's own last round: with a start and without, from the first one on."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf

from experiments.run import processes, setup
from experiments.run.config import RunConfig
from tff_het import clients as clients_module
from tff_het.attacks import attacker, observation
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


def test_clients_may_hold_more_columns_than_the_network_reads():
    made = setup.make(RunConfig.of(**{**FLAGS, "method": "fed_avg", "rounds": "1"}))
    ((_, process),) = processes.build(made).items()

    def more(client):
        splits = {name: getattr(client, name) for name in ("train", "validation", "test")}
        wider = {
            k: {"y": of["y"], "row": np.arange(len(of["y"])), **of} for k, of in splits.items()
        }
        return dataclasses.replace(client, **wider)

    clients = clients_module.Population(map(more, made.population))
    observed = (
        observation.last_round(process, of, made.schedule, made.settings)
        for of in (clients, made.population)
    )
    assert_same(*(one.new_weights for one in observed))


def test_private_parts_are_the_victims_own_where_statistics_are_local_too():
    more = {"model": "cnn_edge_digits_bn", "method": "ditto", "local_statistics": "true"}
    made = setup.make(RunConfig.of(**{**FLAGS, **more, "rounds": "1"}))
    ((_, process),) = processes.build(made).items()
    seen, *_ = observation.last_round(
        process, made.population, made.schedule, made.settings
    ).clients
    own = {"own_examples": made.population[0].train, "training": made.training, "seed": 0}
    found = attacker.Attacker(process, process.initialize(), local=attacker.PRIVATE, **own)
    weights = found.reconstruct(seen).weights.trainable
    assert_same(weights, seen.private.work.weights.trainable)
    assert not np.array_equal(weights[0], seen.model.trainable[0])


def test_the_last_round_has_to_be_known():
    made = setup.make(RunConfig.of(**{**FLAGS, "method": "fed_avg", "rounds": "2"}))
    ((_, process),) = processes.build(made).items()
    goal = loop.Goal(0.9, split="test")
    settings = dataclasses.replace(made.settings, goal=goal)
    with pytest.raises(ValueError, match="no last round that is known"):
        observation.last_round(process, made.population, made.schedule, settings)
