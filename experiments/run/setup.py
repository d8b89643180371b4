"""What a config names: data, clients, network, local training, schedule."""

import dataclasses
import functools
import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from experiments.run import data, training
from experiments.run.config import RunConfig
from tff_het import datasets, partitions, seeding
from tff_het.clients import Population
from tff_het.learning.local_training import LocalTraining
from tff_het.models import adversary, architectures
from tff_het.models.layers import Layers
from tff_het.simulation import cohorts, loop, records
from tff_het.simulation import start as starts


@dataclasses.dataclass(frozen=True)
class Setup:
    """What all methods of a program have in common.

    The server holds `initial` examples to train on first and others for `selection`; None without.
    `selection_fingerprint` tells those that were held out for it from others.
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
    selection_fingerprint: str | None

    @property
    def common_test(self) -> datasets.Examples | None:
        """What a global model is tested on; None: all clients' test examples, if that is all."""
        covered = len(self.partition.test.indices) == self.partition.num_test
        return None if covered else self.dataset.test

    @property
    def rounds_before(self) -> int:
        """How many rounds had the run that this one starts from."""
        return 0 if self.start is None else self.start.rounds


def make(config: RunConfig) -> Setup:
    """Makes what a config names; errors as `data.deal`."""
    run, local, evaluated = config.run, training.local_training(config), config.run.evaluate_clients
    dealt = data.deal(config)
    dataset = dealt.dataset
    population = Population.from_partition(
        dataset,
        dealt.partition,
        validation_fraction=config.data.validation_fraction,
        seed=config.partition_seed,
        columns=_columns(config, dataset),
    )
    initial, held_out, test = (
        None if examples is None else {name: examples[name] for name in population.columns}
        for examples in (dealt.initial, dealt.selection, dataset.test)
    )
    fingerprint = None if held_out is None else _fingerprint(held_out)
    architecture = _architecture(config, dataset, population)
    start = _start(config, dataset, population, fingerprint)
    size, goal = run.clients_per_round or len(population), run.goal_accuracy
    drawn = functools.partial(cohorts.uniform, len(population), seed=run.seed)
    sample = drawn(evaluated, purpose=seeding.EVALUATED_CLIENTS) if evaluated else None
    if run.sampling == "in_turn":
        schedule = cohorts.in_turn(len(population), size, 0 if start is None else start.rounds)
    else:
        schedule = drawn(size)
    return Setup(
        config=config,
        dataset=dataset,
        partition=dealt.partition,
        population=population,
        architecture=architecture,
        training=local,
        schedule=schedule,
        settings=loop.Settings(
            rounds=run.rounds,
            seed=run.seed,
            eval_every=run.eval_every,
            evaluation_cohorts=sample,
            checkpoint_every=run.checkpoint_every,
            states_in_memory=run.client_store == "memory",
            tracking=tuple(run.tracking),
            goal=None if goal is None else loop.Goal(goal, run.goal_selection),
        ),
        start=start,
        initial=initial,
        selection=test if config.method.ensemble_selection == "test" else held_out,
        selection_fingerprint=fingerprint,
    )


def of_flags(
    flags: Mapping[str, Any], *, seed: int, data_dir: str | None = None, **more: Any
) -> Setup:
    """Makes what flags and `more`, which counts more, name, for functions that a study calls."""
    return make(RunConfig.of(**{**flags, "seed": seed, "data_dir": data_dir, **more}))


def _columns(config: RunConfig, dataset: datasets.Dataset) -> tuple[str, ...]:
    """What clients hold of the data set: what the network reads, classes, what is protected."""
    model, protected = config.method.model, config.method.protected
    read = architectures.inputs(model)
    if missing := [column for column in read if column not in dataset.train]:
        found = f"data set {dataset.name!r} has no {', '.join(missing)}"
        raise ValueError(f"--model={model} reads {', '.join(read)}; {found}.")
    if protected is None:
        return (*read, "y")
    able = [
        name
        for name, column in dataset.train.items()
        if name not in ("x", "y") and column.ndim == 1 and set(np.unique(column)) <= {0, 1}
    ]
    if not protected or len(set(protected)) < len(protected) or set(protected) - set(able):
        found = f"{', '.join(able) or 'none'} in {dataset.name!r}; found {','.join(protected)}"
        raise ValueError(f"--protected names different columns of 0 and 1: {found}.")
    return (*read, "y", *protected)


def _architecture(
    config: RunConfig, dataset: datasets.Dataset, population: Population
) -> architectures.Architecture:
    """The network, with the config's adversary, if any attribute is protected."""
    method = config.method
    try:
        made = architectures.make(
            method.model,
            population.element_spec,
            dataset.num_classes,
            statistics=dataset.statistics() if method.standardize else None,
            vocabulary_size=len(dataset.vocabulary),
            **config.given_to(method.model),
        )
    except ValueError as error:
        raise ValueError(f"{error} Choose another --model, such as mlp.") from error
    made = dataclasses.replace(
        made,
        loss=training.loss(config, dataset.num_classes),
        initialization=method.initialization,
        kind=Layers(bias=method.bias),
        local_statistics=method.local_statistics,
    )
    if method.protected is None:
        return made
    weights = list(method.adversary_weights or [1.0] * len(method.protected))
    return adversary.attach(made, method.protected, weights, layer=method.adversary_layer)


def _fingerprint(examples: datasets.Examples) -> str:
    digest = hashlib.sha256()
    for name in sorted(examples):
        digest.update(f"{name} {examples[name].dtype.str} {examples[name].shape}\n".encode())
        digest.update(np.ascontiguousarray(examples[name]).tobytes())
    return digest.hexdigest()


def _start(
    config: RunConfig, dataset: datasets.Dataset, population: Population, held_out: str | None
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
            f"The run in {folder} trained on examples that this one would be judged by: give the "
            "same seed, partition and --validation_fraction."
        )
    # Of an older run, too, which held out none.
    same_selection = theirs.get("selection_fingerprint") == held_out
    if held_out and theirs["dataset"] == dataset.name and not same_selection:
        raise ValueError(
            f"The run in {folder} trained on examples that models would be judged by here: give "
            "the same seed, --initial_examples and --selection_examples."
        )
    return start
