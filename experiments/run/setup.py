"""What a config names: data, clients, network, local training, schedule."""

import dataclasses
from pathlib import Path

from experiments.run import adversaries, at_server, data, training
from experiments.run.config import RunConfig
from tff_het import datasets, partitions
from tff_het.clients import Population
from tff_het.learning.client_work import LocalTraining
from tff_het.models import architectures
from tff_het.models.layers import Layers
from tff_het.simulation import cohorts, loop, records
from tff_het.simulation import start as starts


@dataclasses.dataclass(frozen=True)
class Setup:
    """What all methods of a program have in common.

    The server holds `initial` examples to train on first and others for `selection`; None without.
    """

    config: RunConfig
    dataset: datasets.Dataset
    partition: partitions.Partition
    population: Population
    architecture: architectures.Architecture
    training: LocalTraining
    schedule: cohorts.Schedule
    settings: loop.Settings
    start: starts.Start | None
    initial: datasets.Examples | None
    selection: datasets.Examples | None

    @property
    def common_test(self) -> datasets.Examples | None:
        """What a global model is tested on; None: all clients' test examples, if that is all."""
        covered = sum(len(part) for part in self.partition.test) == self.partition.num_test
        return None if covered else self.dataset.test


def make(config: RunConfig) -> Setup:
    """Makes what a config names.

    Raises:
      ValueError: If settings do not fit the data.
      FileNotFoundError: If files are missing.
    """
    seed, local = config.run.seed, training.local_training(config)
    dealt = data.deal(config)
    dataset, partition = dealt.dataset, dealt.partition
    protected = adversaries.columns(config, dataset)
    population = Population.from_partition(
        dataset,
        partition,
        validation_fraction=config.data.validation_fraction,
        seed=config.partition_seed,
        columns=(*_columns(config, dataset), *protected),
    )
    selection = at_server.selection(config, dealt, population.columns)
    try:
        architecture = architectures.make(
            config.method.model,
            population.element_spec,
            dataset.num_classes,
            statistics=dataset.statistics() if config.method.standardize else None,
            vocabulary_size=len(dataset.vocabulary),
            **config.given_to(config.method.model),
        )
    except ValueError as error:
        raise ValueError(f"{error} Choose another --model, such as mlp.") from error
    architecture = dataclasses.replace(
        architecture,
        loss=training.loss(config, dataset.num_classes),
        initialization=config.method.initialization,
        kind=Layers(bias=config.method.bias),
        local_statistics=config.method.local_statistics,
    )
    architecture = adversaries.attach(config, architecture, protected)
    start = _start(config, dataset, population, at_server.fingerprint(config, selection))
    return Setup(
        config=config,
        dataset=dataset,
        partition=partition,
        population=population,
        architecture=architecture,
        training=local,
        schedule=_schedule(config, len(population), start),
        settings=loop.Settings(
            rounds=config.run.rounds,
            seed=seed,
            eval_every=config.run.eval_every,
            checkpoint_every=config.run.checkpoint_every,
            keep_checkpoints=config.run.keep_checkpoints,
            states_in_memory=config.run.client_store == "memory",
            tracking=tuple(config.run.tracking),
            goal=_goal(config),
        ),
        start=start,
        initial=at_server.initial(dealt, population.columns),
        selection=selection,
    )


def _columns(config: RunConfig, dataset: datasets.Dataset) -> tuple[str, ...]:
    """What clients hold of the data set: what the network reads, and the classes."""
    model = config.method.model
    read = architectures.inputs(model)
    if missing := [column for column in read if column not in dataset.train]:
        raise ValueError(
            f"--model={model} reads {', '.join(read)}; data set {dataset.name!r} has no "
            f"{', '.join(missing)}. Choose another --model or --dataset."
        )
    return (*read, "y")


def _schedule(config: RunConfig, num_clients: int, start: starts.Start | None) -> cohorts.Schedule:
    cohort_size = config.run.clients_per_round or num_clients
    if config.run.sampling == "in_turn":
        return cohorts.in_turn(num_clients, cohort_size, 0 if start is None else start.rounds)
    return cohorts.uniform(num_clients, cohort_size, config.run.seed)


def _goal(config: RunConfig) -> loop.Goal | None:
    accuracy = config.run.goal_accuracy
    return None if accuracy is None else loop.Goal(accuracy, config.run.goal_selection)


def _start(
    config: RunConfig,
    dataset: datasets.Dataset,
    population: Population,
    held_out: str | None,
) -> starts.Start | None:
    if config.run.start_from is None:
        return None
    folder = Path(config.run.start_from)
    start = starts.read(folder)
    if folder.suffix == ".npz":  # Of no run, so that nothing is known of its data.
        return start
    theirs = records.read_json(folder / "summary.json")
    needed = ("dataset", "data_fingerprint", "validation_fingerprint")
    if missing := [name for name in needed if name not in theirs]:
        raise ValueError(f"{folder / 'summary.json'} is damaged (no {', '.join(missing)}).")
    ours = population.validation_fingerprint()
    same_data = theirs["data_fingerprint"] == dataset.fingerprint()
    if ours and same_data and theirs["validation_fingerprint"] != ours:
        raise ValueError(
            f"The run in {folder} set other examples apart for validation, so it has trained on "
            "some that this one would be judged by. Give the same seed, partition and "
            "--validation_fraction."
        )
    # Of an older run, too, which held out none.
    same_selection = theirs.get("selection_fingerprint") == held_out
    if held_out and theirs["dataset"] == dataset.name and not same_selection:
        raise ValueError(
            f"The run in {folder} held out other examples at the server, so it has trained on some "
            "that models would be judged by here. Give the same seed, --initial_examples and "
            "--selection_examples."
        )
    return start
