"""What an observer of a round holds: what travels, and nothing else.

The one place at which attacks come by anything of a client. What the process keeps at the client
(`ClientState`: local variables and whatever else the work keeps) is dropped here, unless it is
asked for explicitly.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tff_het.backend.names import tff
from tff_het.clients import Population
from tff_het.learning import example_files
from tff_het.learning.client_work import ClientState
from tff_het.learning.process import FederatedProcess, ServerState
from tff_het.models.model import Weights
from tff_het.simulation import cohorts, feeding, loop
from tff_het.simulation.client_states import ClientStates
from tff_het.simulation.start import Start


@dataclasses.dataclass(frozen=True, eq=False)
class Observation:
    """What is seen of one client in one round.

    An eavesdropper on the client's connection sees this; the server sees it of every client of the
    cohort.

    Attributes:
      client: Its index: messages have a sender.
      before: The global variables that it was sent.
      after: Its global variables after training, which are those that it was sent plus the update
        that it sent back; nothing where nothing is global.
      weight: The weight of its update in the aggregate.
      trained: Which of several models it trained (IFCA), which it says with its update.
      private: Its state after training, which does not travel; None unless it was asked for.
    """

    client: int
    before: Weights
    after: Weights
    weight: float
    trained: int = 0
    private: ClientState | None = None

    @property
    def model(self) -> Weights:
        """`after`, in which the model that the client trained is the first, if there are several.

        Models that stand in rows predict with the first row.
        """
        if not self.trained:
            return self.after
        return tf.nest.map_structure(lambda w: np.roll(w, -self.trained, axis=0), self.after)


@dataclasses.dataclass(frozen=True, eq=False)
class Round:
    """What the server holds after a round.

    Attributes:
      clients: What it saw of each client, in the order in which these were given.
      new_weights: The global variables that it goes on with, and sends to the next.
    """

    clients: tuple[Observation, ...]
    new_weights: Weights


def observe(
    process: FederatedProcess,
    state: ServerState,
    clients: Sequence[Mapping[str, Any]],
    *,
    private: bool = False,
) -> Round:
    """Runs a round and returns what can be seen of it from outside of the clients.

    What an aggregator does on the way to the server (compression, noise, secure sums) is not
    undone: this is the message as the client's work leaves it.

    Args:
      process: Any process of which clients send the change of their global variables.
      state: The server's state before the round.
      clients: What `FederatedProcess.client_update` takes of each: client, seed, examples, state.
      private: Whether each client's own state is handed over as well, to measure what it is worth
        to an attacker who does come by it.

    Raises:
      ValueError: If there are no clients, one is there twice, or what they send has not the form
        of the global variables.
    """
    indices = [int(client["client"]) for client in clients]
    if not indices or len(set(indices)) < len(indices):
        raise ValueError(f"One or more different clients are needed; found {indices}.")
    _check_sends_changes(process)
    download = process.download(state)
    sent = process.client_update(download, list(clients))
    sent = sorted(sent, key=lambda row: indices.index(int(row["client"])))
    before, seen = _arrays(download.weights), []
    for index, row in zip(indices, sent, strict=True):
        update = row["update"]
        change = _arrays(getattr(update, "change", update))
        seen.append(
            Observation(
                client=index,
                before=before,
                after=tf.nest.map_structure(np.add, before, change),
                weight=float(row["weight"]),
                trained=int(np.argmax(getattr(update, "used", 0))),
                private=row["state"] if private else None,
            )
        )
    new_state = feeding.server_half(process, state, sent).state
    return Round(tuple(seen), _arrays(new_state.weights))


def last_round(
    process: FederatedProcess,
    population: Population,
    schedule: cohorts.Schedule,
    settings: loop.Settings,
    *,
    start: Start | None = None,
) -> Round:
    """Trains as `loop.train` does, with its arguments and errors, and observes the last round.

    Returns:
      What was seen of that round, clients' own states too.

    Raises:
      ValueError: If the settings have a goal.
    """
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
    cohort = schedule(round_num)
    spec = process.model.example_spec
    examples = {client: example_files.checked(population[client].train, spec) for client in cohort}
    of = (cohort, round_num, settings.seed, examples, lambda client: states.get(client, state))
    clients = feeding.arguments(feeding.cohort_inputs(*of), list(examples.values()))
    states.close()
    return observe(process, state, clients, private=True)


def _arrays(weights: Weights) -> Weights:
    return Weights(
        [np.asarray(value) for value in weights.trainable],
        [np.asarray(value) for value in weights.non_trainable],
    )


def _check_sends_changes(process: FederatedProcess) -> None:
    """Compares types: a change of the global variables, which may be signed, has theirs."""
    sent = process.client_update.type_signature.result.member["update"]
    global_variables = process.state_type.member["weights"]
    has_change = isinstance(sent, tff.StructType) and "change" in tff.structure.name_list(sent)
    change = sent["change"] if has_change else sent
    if not change.is_equivalent_to(global_variables):
        raise ValueError(
            "An observer adds a client's update to what the client was sent, so it has to be a "
            f"change of the global variables, of type {global_variables.compact_representation()}; "
            f"this process's clients send {sent.compact_representation()}."
        )
