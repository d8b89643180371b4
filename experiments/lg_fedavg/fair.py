"""One run of LG-FedAvg's fairness experiment: an adversary, with or without a penalty for it."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split

from experiments.run import data
from tff_het import methods, partitions, seeding
from tff_het.backend.names import tff
from tff_het.clients import Population
from tff_het.datasets import Dataset
from tff_het.evaluation import fairness
from tff_het.learning.local_training import LocalTraining
from tff_het.models import adversary, architectures
from tff_het.simulation import cohorts, loop, start

ATTRIBUTES = ("race", "sex")
_ROWS = 30_000  # "of which we take the first ..."
_LOCAL = ("dense_1", "dense_2", "representation")
_POST_FIT = {"logistic": fairness.logistic, "mlp": fairness.fresh_mlp}


def train(
    *,
    seed: int,
    folder: Path,
    data_dir: str | None,
    dataset: str,
    partition: str,
    method: str,
    penalty: float,
    rounds: int,
    pretraining: int,
    adversary_steps: int,
    local_epochs: int,
    adversary_dropout: float = 0.2,
    validation: bool = False,
) -> dict[str, float]:
    """Trains one method on all clients in each round, and measures what representations tell.

    Args:
      dataset: 'adult', or 'made_up' for a small one that needs no files.
      penalty: lambda, the same for all attributes.
      adversary_steps: Steps of the adversary for one of the network; 0: a whole pass.
      validation: Sets 30 % of clients' training examples apart to measure on them alone.

    Returns numbers by name; 'diverged' alone where training diverged.
    """
    del folder
    source = _made_up(seed) if dataset == "made_up" else _adult(seed, data_dir)
    population = _population(source, partition, seed, validation)
    network = architectures.make("mlp_fair", population.element_spec, source.num_classes)
    everyone = range(len(population))
    optimizer = tff.learning.optimizers.build_sgdm(0.1, momentum=0.5)

    def trained(name: str, weight: float, rounds: int, epochs: int, steps: int, begin=None):
        weights = [weight] * len(ATTRIBUTES)
        attached = adversary.attach(
            network, ATTRIBUTES, weights, layer="representation", dropout=adversary_dropout
        )
        training = LocalTraining(optimizer, batch_size=32, epochs=epochs, opponent_steps=steps)
        options = {"local_layers": _LOCAL} if name == "lg_fedavg" else {}
        process = methods.build(name, attached, training, seed=seed, **options)
        settings = loop.Settings(rounds=rounds, seed=seed, eval_every=rounds)
        schedule = cohorts.always(*everyone)
        return process, loop.train(process, population, schedule, settings, start=begin)

    begin = None
    try:
        if pretraining:
            alone, before = trained("local_only", 0.0, pretraining, 1, 1)
            begin = start.after(alone, before.state, before.client_states, everyone)
            before.client_states.close()
        steps = adversary_steps or -(-int(population.num_train_examples.max()) // 32)
        process, result = trained(method, penalty, rounds, local_epochs, steps, begin)
    except loop.DivergedError:
        return {"diverged": 1.0}
    state, states = result.state, result.client_states
    own, split = lambda client: states.get(client, state), "validation" if validation else "test"
    scored = fairness.score(process, state, population, own, ATTRIBUTES, split, seed=seed)
    states.close()
    return {"diverged": 0.0, **_numbers(scored, seed)}


def _adult(seed: int, data_dir: str | None) -> Dataset:
    """Half of the first rows of adult.data to train on, the other half to test, at random.

    As in the tutorial that the paper's code comes from: adult.test is not used, and labels are
    equally frequent in both halves.
    """
    adult = data.load("adult", data_dir)
    rows = {name: column[:_ROWS] for name, column in adult.train.items()}
    state = seeding.integer_seed(seed, seeding.DATA)
    halves = train_test_split(*rows.values(), test_size=0.5, stratify=rows["y"], random_state=state)
    train, test = (dict(zip(rows, halves[k::2], strict=True)) for k in range(2))
    return dataclasses.replace(adult, train=train, test=test)


def _population(dataset: Dataset, partition: str, seed: int, validation: bool) -> Population:
    options: dict[str, Any] = {"num_clients": 10, "seed": seed}
    options |= {"shards_per_client": 10} if partition == "shards" else {}
    made = partitions.make(partition, dataset.train, dataset.test, **options)
    columns, fraction = ("x", "y", *ATTRIBUTES), 0.3 if validation else 0.0
    return Population.from_partition(
        dataset, made, validation_fraction=fraction, seed=seed, columns=columns
    )


def _made_up(seed: int) -> Dataset:
    """Two protected attributes that are features, of which one is of use for the label."""
    rng = seeding.generator(seed, seeding.DATA)

    def draw(n: int) -> dict[str, np.ndarray]:
        x = rng.normal(size=(n, 12)).astype(np.float32)
        named = {"y": x[:, 1] + x[:, 2] > 0, "race": x[:, 0] > 0, "sex": x[:, 1] > 0}
        return {"x": x} | {name: column.astype(np.int32) for name, column in named.items()}

    return Dataset("made_up", draw(1000), draw(1000), ("negative", "positive"), "drawn")


def _numbers(scored: Sequence[fairness.Scored], seed: int) -> dict[str, float]:
    """Reported measures, as far as they are determined; for all attributes together, their mean."""
    of_class = fairness.auc([one.labels for one in scored], [one.scores for one in scored])
    correct = float(np.mean(np.concatenate([one.correct for one in scored])))
    found = {"class_accuracy": correct, "class_auc": of_class.pooled}
    shown = [one.representation for one in scored]
    for name in ATTRIBUTES:
        truths = [one.protected[name] for one in scored]
        guesses = [one.adversary[name] for one in scored]
        found[f"adversary_auc_{name}"] = fairness.auc(truths, guesses).mean
        for guesser, classifier in _POST_FIT.items():
            leaked = fairness.post_fit(shown, truths, classifier, seed=seed)
            found[f"{guesser}_auc_{name}"] = leaked
    numbers = {name: np.nan if value is None else value for name, value in found.items()}
    for guesser in ("adversary", *_POST_FIT):
        each = [numbers[f"{guesser}_auc_{name}"] for name in ATTRIBUTES]
        numbers[f"{guesser}_auc"] = float(np.mean(each))
    return {name: value for name, value in numbers.items() if not np.isnan(value)}
