"""From a config to the process of each method, and to who trains under it."""

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from experiments.run import aggregation, plugins, training
from experiments.run.setup import Setup
from tff_het import methods
from tff_het.clients import Client, Population
from tff_het.evaluation import communication
from tff_het.learning.process import FederatedProcess
from tff_het.simulation import cohorts


class Trainers(NamedTuple):
    """Who trains under one method, in a round and at all.

    The population has the clients, and possibly others behind them that only train.
    """

    population: Population
    schedule: cohorts.Schedule


class Course(NamedTuple):
    """One method's training."""

    method: str
    process: FederatedProcess
    trainers: Trainers
    ledger: communication.Ledger  # What one of the trainers sends and receives in a round.
    data_bytes: int  # What of examples is sent to one place before the first round.


def build(made: Setup) -> dict[str, FederatedProcess]:
    """Builds the processes of all methods; raises ValueError if a setting fits none of them."""
    config = made.config
    taken = {method: methods.options(method) for method in config.method.method}
    given: dict[str, Any] = {
        "server_optimizer": training.server_optimizer(config),
        "aggregator": aggregation.factory(made, taken),
        "num_clients": len(made.population),
        "selection": made.selection,
    }
    given = {name: value for name, value in given.items() if value is not None}
    if "server_optimizer" in given and not any("server_optimizer" in own for own in taken.values()):
        raise ValueError(f"--server_optimizer has no meaning for {', '.join(taken)}.")
    _check_server(made, taken)
    built = {
        method: methods.build(
            method,
            made.architecture,
            made.training.within(_most_examples(method, made)),
            seed=config.model_seed,
            **{name: value for name, value in given.items() if name in own},
            **config.given_to(method),
        )
        for method, own in taken.items()
    }
    aggregation.check(config, built)
    if made.start is not None:
        for process in built.values():
            made.start.check(process.model)
    return built


def _check_server(made: Setup, taken: Mapping[str, Collection[str]]) -> None:
    """Refuses methods for which the server lacks examples, and settings of it for none."""
    method, names = made.config.method, ", ".join(taken)
    judging = [name for name, options in taken.items() if "selection" in options]
    if judging and made.selection is None:
        needed = "--selection_examples (2000, say), or --ensemble_selection=test"
        raise ValueError(f"{', '.join(judging)} evaluates models at the server: give {needed}.")
    if not judging and method.ensemble_selection == "test":
        raise ValueError(f"--ensemble_selection=test has no meaning for {names}.")
    if method.pooled == "clients":
        return
    if not any(map(methods.trains_on_pooled_examples, method.method)):
        raise ValueError(f"--pooled=server has no meaning for {names}.")
    if made.initial is None:
        raise ValueError("--pooled=server trains on --initial_examples: give some (400, say).")


def _most_examples(method: str, made: Setup) -> int:
    """How many the largest of those has that train under a method."""
    sizes = made.population.num_train_examples
    if not methods.trains_on_pooled_examples(method):
        return int(sizes.max())
    at_server = made.initial if made.config.method.pooled == "server" else None
    return int(sizes.sum()) if at_server is None else len(at_server["y"])


def trainers(made: Setup, method: str) -> Trainers:
    """Returns who trains under a method."""
    clients = made.population
    if not methods.trains_on_pooled_examples(method):
        return Trainers(clients, made.schedule)
    alone = cohorts.always(len(clients))
    if made.config.method.pooled == "clients":
        return Trainers(clients.with_pooled(), alone)
    assert made.initial is not None
    nothing = {name: column[:0] for name, column in made.initial.items()}
    server = Client("server", made.initial, nothing, nothing)
    return Trainers(clients.grown_by([server]), alone)


def course(made: Setup, method: str, process: FederatedProcess) -> Course:
    """Returns who trains under a method in its process, and what travels."""
    pooled = methods.trains_on_pooled_examples(method)
    ledger = communication.staying_put(process) if pooled else communication.ledger(process)
    moved = pooled and made.config.method.pooled == "clients"
    data_bytes = communication.compressed_bytes(made.population) if moved else 0
    return Course(method, process, trainers(made, method), ledger, data_bytes)


def identity(made: Setup, method: str) -> dict[str, Any]:
    """Returns what defines a run: a folder that holds another one is not continued."""
    # All other partitions follow from the data and the settings.
    given = made.config.data.partition == "file"
    return made.config.defining(method) | {
        "data_fingerprint": made.dataset.fingerprint(),
        "partition_fingerprint": made.partition.fingerprint() if given else None,
        "start_fingerprint": None if made.start is None else made.start.fingerprint(),
        "plugin_fingerprint": plugins.fingerprint(made.config.run.plugin),
    }
