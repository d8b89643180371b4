"""A run as an observer sees it: all rounds but the last are trained, the last one in its halves."""

import collections
import dataclasses
from typing import Any, NamedTuple

import numpy as np

from tff_het import seeding
from tff_het.attacks import observation
from tff_het.clients import Population
from tff_het.learning.process import FederatedProcess, ServerState
from tff_het.simulation import cohorts, loop
from tff_het.simulation.client_states import ClientStates
from tff_het.simulation.start import Start


class Observed(NamedTuple):
    """A federation in its last round.

    Attributes:
      state: The server's state before it.
      population: The clients.
      round: What was seen of it, each client's own state included.
    """

    state: ServerState
    population: Population
    round: observation.Round


def last_round(
    process: FederatedProcess,
    population: Population,
    schedule: cohorts.Schedule,
    settings: loop.Settings,
    *,
    start: Start | None = None,
) -> Observed:
    """Trains as `loop.train` does, and observes the last round.

    Args:
      process: Any that `observation.observe` takes.
      population: The clients.
      schedule: Who trains in a round.
      settings: As of `loop.train`; there is no goal, since the last round has to be known.
      start: Values to begin with.

    Raises:
      ValueError: If there is a goal, or as `loop.train` and `observation.observe`.
      DivergedError: If a loss is not finite any more.
    """
    if settings.goal is not None:
        raise ValueError("A run that ends at a goal has no last round that is known beforehand.")
    state, states = _before_last(process, population, schedule, settings, start)
    round_num = settings.rounds - 1 + (0 if start is None else start.rounds)
    clients: list[dict[str, Any]] = [
        collections.OrderedDict(
            client=np.int32(client),
            seed=seeding.stateless_seed(settings.seed, seeding.CLIENT_WORK, round_num, client),
            examples=collections.OrderedDict(population[client].train),
            state=states.get(client, state),
        )
        for client in schedule(round_num)
    ]
    states.close()
    seen = observation.observe(process, state, clients, private=True)
    return Observed(state, population, seen)


def _before_last(
    process: FederatedProcess,
    population: Population,
    schedule: cohorts.Schedule,
    settings: loop.Settings,
    start: Start | None,
) -> tuple[ServerState, ClientStates]:
    before = settings.rounds - 1
    if before:
        # Nobody looks at what is evaluated on the way.
        shorter = dataclasses.replace(settings, rounds=before, eval_every=before)
        result = loop.train(process, population, schedule, shorter, start=start)
        return result.state, result.client_states
    state = process.initialize()
    states = ClientStates(process, settings.seed)
    if start is not None:
        state = start.server_state(process, state)
        states.put(0, start.client_states(process, settings.seed, state, len(population)))
    return state, states
