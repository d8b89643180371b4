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
    """A federation before its last round, and what was seen of that, clients' own states too."""

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
    """Trains as `loop.train` does, with its arguments and errors, and observes the last round."""
    if settings.goal is not None:
        raise ValueError("A run that ends at a goal has no last round that is known beforehand.")
    if before := settings.rounds - 1:
        # Nobody looks at what is evaluated on the way.
        shorter = dataclasses.replace(settings, rounds=before, eval_every=before)
        result = loop.train(process, population, schedule, shorter, start=start)
        state, states = result.state, result.client_states
    else:
        state, states = process.initialize(), ClientStates(process, settings.seed)
        if start is not None:
            state = start.server_state(process, state)
            states.put(0, start.client_states(process, settings.seed, state, len(population)))
    round_num = before + (0 if start is None else start.rounds)
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
