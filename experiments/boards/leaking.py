"""What released code tests of Per-FedAvg: clients that were adapted on labelled test examples."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from experiments.run import processes, setup
from tff_het.clients import Population
from tff_het.simulation import loop


def adapted_on_test(
    *, seed: int, data_dir: str | None, flags: Mapping[str, Any], **_: Any
) -> dict[str, float]:
    """Trains as the flags of `experiments.train` say, and adapts clients on what tests them.

    Returns:
      Accuracies in [0, 1], each example counting the same: of the best round and of the last one.
    """
    made = setup.of_flags(flags, seed=seed, data_dir=data_dir)
    (process,) = processes.build(made).values()
    tested = Population(dataclasses.replace(one, train=one.test) for one in made.population)
    settings = made.settings
    result = loop.train(process, made.population, made.schedule, settings, evaluated=tested)
    found = [row["local_test_accuracy_weighted_mean"] for row in result.rows]
    return {"best": max(found), "last": found[-1]}
