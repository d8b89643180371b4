"""What is looked at in released code: the best round on test data, and clients adapted on them."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from experiments.run import processes, setup
from tff_het.clients import Population
from tff_het.simulation import cohorts, loop


def best_and_last(
    *,
    seed: int,
    data_dir: str | None,
    flags: Mapping[str, Any],
    clients: int | None = None,
    adapts_on_test: bool = False,
    **_: Any,
) -> dict[str, float]:
    """Trains as the flags of `experiments.train` say, and tests in all rounds.

    Args:
      flags: Of `experiments.train`.
      clients: How many clients of the population there are, from the first; all by default.
      adapts_on_test: Whether what is adapted at a client is adapted on the examples that test it,
        as released code of Per-FedAvg does.

    Returns:
      Accuracies in [0, 1], each example counting the same: of the best round and of the last one.
    """
    made = setup.of_flags(flags, seed=seed, data_dir=data_dir)
    first = made.population[:clients]
    (process,) = processes.build(dataclasses.replace(made, population=first)).values()
    tested = first
    if adapts_on_test:
        tested = Population(dataclasses.replace(one, train=one.test) for one in first)
    size = made.config.run.clients_per_round or len(first)
    schedule = cohorts.uniform(len(first), size, seed)
    result = loop.train(process, made.population, schedule, made.settings, evaluated=tested)
    found = [row["local_test_accuracy_weighted_mean"] for row in result.rows]
    return {"best": max(found), "last": found[-1]}
