"""From a config to the process of each method, and to who trains under it."""

import dataclasses
from collections import Counter
from collections.abc import Iterable
from typing import Any

from experiments.run import aggregation, at_server, plugins, training
from experiments.run.setup import Setup
from tff_het import methods
from tff_het.clients import Population
from tff_het.evaluation import communication
from tff_het.learning import batching
from tff_het.learning.client_work import LocalTraining
from tff_het.learning.process import FederatedProcess
from tff_het.simulation import cohorts


@dataclasses.dataclass(frozen=True)
class Course:
    """Who trains under one method, and what travels.

    Attributes:
      population: The clients, and possibly others behind them that only train.
      schedule: Who trains in a round.
      ledger: What one of them sends and receives in a round.
      data_bytes: What of examples is sent to one place before the first round.
    """

    population: Population
    schedule: cohorts.Schedule
    ledger: communication.Ledger
    data_bytes: int = 0

    def steps(self, rounds: Iterable[int], training: LocalTraining) -> int:
        """Returns how many steps all that train in a run's rounds take together."""

        def of_client(client: int, num_rounds: int) -> int:
            if training.acquisition is None:
                trained_on = {int(self.population.num_train_examples[client]): num_rounds}
            else:
                labels = self.population[client].train["y"]
                trained_on = Counter(training.acquisition.batch_sizes(labels, num_rounds))
            return sum(times * _num_steps(num, training) for num, times in trained_on.items())

        took_part = Counter(client for number in rounds for client in self.schedule(number))
        return sum(of_client(*pair) for pair in took_part.items())


def _num_steps(num_examples: int, training: LocalTraining) -> int:
    return int(
        batching.num_steps(
            num_examples,
            training.batch_size,
            epochs=training.epochs,
            steps=training.steps,
            at_most_one_pass=training.at_most_one_pass,
        )
    )


def build(made: Setup) -> dict[str, FederatedProcess]:
    """Builds the process of each method that was asked for.

    Raises:
      ValueError: If a setting fits none of the methods.
    """
    config = made.config
    names = config.method.method
    taken = {method: methods.options(method) for method in names}
    given: dict[str, Any] = {
        "server_optimizer": training.server_optimizer(config),
        "aggregator": aggregation.factory(made, taken),
    }
    given = {name: value for name, value in given.items() if value is not None}
    for name in given:
        if not any(name in accepted for accepted in taken.values()):
            raise ValueError(f"--{name} has no meaning for {', '.join(names)}.")
    at_server.check(config, taken, made.selection)
    _check_pooled(made)
    # What the data say, for methods that ask.
    given |= {"num_clients": len(made.population), "selection": made.selection}
    built = {
        method: methods.build(
            method,
            made.architecture,
            made.training.within(_most_examples(method, made)),
            seed=config.model_seed,
            **{name: value for name, value in given.items() if name in taken[method]},
            **config.given_to(method),
        )
        for method in names
    }
    aggregation.check(config, built)
    if made.start is not None:
        for process in built.values():
            made.start.check(process.model)
    return built


def course(made: Setup, method: str, process: FederatedProcess) -> Course:
    """Returns who trains under a method."""
    if not methods.trains_on_pooled_examples(method):
        return Course(made.population, made.schedule, communication.ledger(process))
    if made.config.method.pooled == "server":
        assert made.initial is not None
        return Course(
            at_server.with_server(made.population, made.initial),
            cohorts.always(len(made.population)),
            communication.staying_put(process),
        )
    return Course(
        made.population.with_pooled(),
        cohorts.always(len(made.population)),
        communication.staying_put(process),
        data_bytes=communication.compressed_bytes(made.population),
    )


def identity(made: Setup, method: str) -> dict[str, Any]:
    """Returns what defines a run: a folder that holds another one is not continued."""
    start = None if made.start is None else made.start.fingerprint()
    # All others follow from the data and the settings.
    given = made.config.data.partition == "file"
    return made.config.defining(method) | {
        "data_fingerprint": made.dataset.fingerprint(),
        "partition_fingerprint": made.partition.fingerprint() if given else None,
        "start_fingerprint": start,
        "plugin_fingerprint": plugins.fingerprint(made.config.run.plugin),
    }


def _most_examples(method: str, made: Setup) -> int:
    """Returns how many examples the largest of those has that train under a method."""
    sizes = made.population.num_train_examples
    if not methods.trains_on_pooled_examples(method):
        return int(sizes.max())
    if made.config.method.pooled == "clients":
        return int(sizes.sum())
    assert made.initial is not None
    return len(made.initial["y"])


def _check_pooled(made: Setup) -> None:
    names = made.config.method.method
    if made.config.method.pooled == "clients":
        return
    if not any(methods.trains_on_pooled_examples(name) for name in names):
        raise ValueError(f"--pooled=server has no meaning for {', '.join(names)}.")
    if made.initial is None:
        raise ValueError(
            "--pooled=server trains on examples at the server, which has none: give "
            "--initial_examples (400, say)."
        )
