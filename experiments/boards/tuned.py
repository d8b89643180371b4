"""One method on one board: tuned on validation examples, then tested, also at clients that join."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from experiments.run import processes, setup
from tff_het.clients import Population
from tff_het.evaluation import communication, local_test, statistics
from tff_het.learning.client_work import ClientState
from tff_het.learning.process import FederatedProcess
from tff_het.simulation import cohorts, feeding, loop

Flags = Mapping[str, Any]


def tuned(
    *,
    seed: int,
    data_dir: str | None,
    flags: Flags,
    trials: Sequence[Flags],
    new_clients: int,
    joining_rounds: int,
    **_: Any,
) -> dict[str, float]:
    """Trains once with the flags of each trial; tests the one that does best on validation.

    The population's last clients take no part in training. Then each of them joins: it does its
    work in some rounds without sending anything, and is tested as the others are.

    Args:
      flags: Of `experiments.train`, for all trials.
      trials: More flags.
      new_clients: How many clients join.
      joining_rounds: In how many rounds each of them trains.

    Returns:
      Accuracies in [0, 1] of the chosen trial after its last round, which trial that is, counted
      from 1, how many trials diverged, and the bytes that a client receives and
      sends in a round, metrics left out. Where all diverged, the number of these alone.
    """
    chosen, highest, diverged = None, -1.0, 0
    for number, trial in enumerate(trials, start=1):
        made = setup.of_flags({**flags, **trial}, seed=seed, data_dir=data_dir)
        (process,) = processes.build(made).values()
        first = made.population[: len(made.population) - new_clients]
        a_round = made.config.run.clients_per_round or len(first)
        schedule = cohorts.uniform(len(first), a_round, seed)
        try:
            result = loop.train(process, made.population, schedule, made.settings, evaluated=first)
        except loop.DivergedError:
            diverged += 1
            continue
        assert result.evaluation is not None
        tested = result.evaluation.local
        accuracy = np.nanmean(tested["validation"].accuracy)
        if chosen is None or accuracy > highest:
            chosen, highest = (number, made.population, process, result, tested), float(accuracy)
    if chosen is None:
        return {"diverged": diverged}
    number, population, process, result, tested = chosen
    found = statistics.distribution(tested["test"].accuracy, tested["test"].num_examples)
    joined = range(len(population) - new_clients, len(population))
    states = {
        k: _joined(process, result.state, population, k, seed, joining_rounds) for k in joined
    }
    new = local_test.local_tests(
        process, result.state, population, states.__getitem__, ["test"], seed=seed, clients=joined
    )["test"]
    ledger = communication.ledger(process)
    return {
        "accuracy": found["mean"],
        "worst_decile": found["worst_decile"],
        "new_clients": float(np.nanmean(new.accuracy)),
        "validation": highest,
        "trial": number,
        "diverged": diverged,
        "bytes": ledger.bytes_up - ledger.metrics_bytes_up + ledger.bytes_down,
    }


def _joined(
    process: FederatedProcess,
    state: Any,
    population: Population,
    client: int,
    seed: int,
    rounds: int,
) -> ClientState:
    """Returns what a client keeps after some rounds, in which the server's state stays."""
    download, kept = process.download(state), process.init_state(client, seed, state)
    train = {client: population[client].train}
    for round_num in range(rounds):
        taking = feeding.cohort_inputs(
            [client], int(state.round) + round_num, seed, train, {client: kept}.__getitem__
        )
        (sent,) = process.client_update(
            download, feeding.arguments(taking, [one.examples for one in taking])
        )
        kept = sent["state"]
    return kept
