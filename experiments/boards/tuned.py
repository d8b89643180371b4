"""One method on one board: tuned on validation examples, then tested, also at clients that join."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from experiments.run import processes, setup
from tff_het import seeding
from tff_het.clients import Population
from tff_het.evaluation import communication, local_test, statistics
from tff_het.evaluation.new_client import NewClient
from tff_het.learning.client_work import ClientState
from tff_het.learning.process import FederatedProcess, ServerState
from tff_het.simulation import cohorts, feeding, loop

Flags = Mapping[str, Any]


def tuned(
    *,
    seed: int,
    data_dir: str | None,
    flags: Flags,
    trials: Sequence[Flags],
    last_trial: Sequence[Flags] = (),
    trial_rounds: int,
    clients: int,
    new_clients: int,
    joining_epochs: int,
    **_: Any,
) -> dict[str, float]:
    """Trains briefly with the flags of each trial, then whole with those best on validation.

    The population's first clients train; afterwards its last ones join. If variables of the model
    are local, a new client fits these and leaves the others fixed. Otherwise it does its client
    work without sending anything. It is then adapted and tested as the other clients are.

    Args:
      flags: Of `experiments.train`, for all trials.
      trials: More flags.
      last_trial: For each trial what comes last if that one is best so far: flags over its own.
      trial_rounds: Rounds of each trial. What it chooses is trained from the start; where that
        diverges, the trial that came next is taken.
      clients: How many clients train, from the first.
      new_clients: How many clients join, up to the last.
      joining_epochs: How often each of them passes through its examples before it is adapted and
        tested; 0 leaves it to what adapts clients.

    Returns:
      Accuracies in [0, 1] after the last round, which trial was chosen, counted from 1, and its
      rate, how many trials diverged, and the bytes that a client receives and sends in a round
      without metrics. Where all diverged, the number of these and the bytes alone; where a new
      client's model did, no accuracy of these.
    """
    tried, best, diverged = [*trials], dict[int, float](), set[int]()

    def train(number: int, rounds: int) -> tuple[setup.Setup, Population, FederatedProcess, Any]:
        own = {**flags, **tried[number - 1], "rounds": rounds, "eval_every": rounds}
        made = setup.of_flags(own, seed=seed, data_dir=data_dir)
        first = made.population[:clients]
        (process,) = processes.build(dataclasses.replace(made, population=first)).values()
        a_round = made.config.run.clients_per_round or len(first)
        schedule = cohorts.uniform(len(first), a_round, seed)
        result = None
        try:
            result = loop.train(process, made.population, schedule, made.settings, evaluated=first)
        except loop.DivergedError:
            diverged.add(number)
        return made, first, process, result

    def validation(result: Any) -> float:
        return float(np.nanmean(result.evaluation.local["validation"].accuracy))

    def attempt(number: int) -> None:
        *_, result = train(number, trial_rounds)
        if result is not None:
            best[number] = validation(result)

    for number in range(1, len(trials) + 1):
        attempt(number)
    if last_trial:
        lead = max(best, key=best.__getitem__, default=1)
        tried.append({**tried[lead - 1], **last_trial[lead - 1]})
        attempt(len(tried))
    for number in sorted(best, key=lambda one: -best[one]) or [1]:
        made, first, process, result = train(number, int(flags["rounds"]))
        if result is not None:
            break
    ledger = communication.ledger(process)
    moved = ledger.bytes_up - ledger.metrics_bytes_up + ledger.bytes_down
    if result is None:
        return {"diverged": len(diverged), "bytes": moved}
    test = result.evaluation.local["test"]
    found = statistics.distribution(test.accuracy, test.num_examples)
    joined = range(len(made.population) - new_clients, len(made.population))
    join = _joining(process, made, first, result.state, joining_epochs)
    states = {client: join(client) for client in joined}
    new = local_test.local_tests(
        process,
        result.state,
        made.population,
        states.__getitem__,
        ["test"],
        seed=seed,
        clients=joined,
    )["test"]
    adapted = {"new_clients": float(np.nanmean(new.accuracy))}
    return {
        "accuracy": found["mean"],
        "accuracy_by_example": found["weighted_mean"],
        "worst_decile": found["worst_decile"],
        # A model that has diverged at a new client would count as one that predicts class 0.
        **(adapted if np.isfinite(new.loss[new.num_examples > 0]).all() else {}),
        "validation": validation(result),
        "client_learning_rate": float(tried[number - 1]["client_learning_rate"]),
        "trial": number,
        "diverged": len(diverged),
        "bytes": moved,
    }


def _joining(
    process: FederatedProcess,
    made: setup.Setup,
    first: Population,
    state: ServerState,
    epochs: int,
) -> Callable[[int], ClientState]:
    """Returns what gives the state of a client that joins the first ones."""
    seed = made.settings.seed

    def drawn(client: int) -> np.ndarray:
        return seeding.stateless_seed(seed, seeding.EVALUATION, int(state.round), client)

    def begin(client: int) -> ClientState:
        return process.init_state(client, seed, state)

    def fit(client: int) -> ClientState:
        train = made.population[client].train
        return joining.fit(state.weights, begin(client), train, seed=drawn(client), client=client)

    def work(client: int) -> ClientState:
        train = made.population[client].train
        taking = [feeding.ClientInput(client, drawn(client), train, begin(client))]
        (sent,) = longer.client_update(download, feeding.arguments(taking, [train]))
        return sent["state"]

    # Nothing that it keeps could be made by training.
    if not epochs or not tf.nest.flatten(begin(0)[:2]):
        return begin
    training = dataclasses.replace(made.training, epochs=epochs, steps=None)
    if any(spec.local and spec.trainable for spec in process.model.specs):
        joining = NewClient(process, training)
        return fit
    working = dataclasses.replace(made, population=first, training=training)
    (longer,), download = processes.build(working).values(), process.download(state)
    return work
