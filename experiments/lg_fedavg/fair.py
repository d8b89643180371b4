"""One run of LG-FedAvg's fairness experiment: an adversary, with or without a penalty for it."""

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
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
from tff_het.learning.client_work import LocalTraining
from tff_het.learning.process import FederatedProcess
from tff_het.models import adversary, architectures
from tff_het.models.architectures import Architecture
from tff_het.simulation import cohorts, loop, start

ATTRIBUTES = ("race", "sex")
_CLIENTS = 10
_ROWS = 30_000  # "of which we take the first ..."
_LOCAL = ("dense_1", "dense_2", "representation")
# Post-fit classifiers by the name of their numbers.
_POST_FIT = {"logistic": fairness.logistic, "mlp": fairness.fresh_mlp}


@dataclasses.dataclass(frozen=True)
class Course:
    """Training settings of a method.

    Attributes:
      method: `fed_avg` or `lg_fedavg`.
      penalty: lambda, the same for all attributes.
      rounds: Of all clients.
      pretraining: Epochs in which clients train alone before, without penalty.
      adversary_steps: Steps of the adversary for one of the network; 0: a whole pass.
      local_epochs: Passes over a client's examples in a round, all of them the adversary's.
    """

    method: str
    penalty: float
    rounds: int
    pretraining: int = 0
    adversary_steps: int = 1
    local_epochs: int = 1


def train(
    *,
    seed: int,
    folder: Path,
    data_dir: str | None,
    dataset: str,
    partition: str,
    validation: bool = False,
    **course: float,
) -> dict[str, float]:
    """Trains one method and tests what its representations tell.

    Args:
      seed: Of all.
      folder: Not used.
      data_dir: The folder of data sets.
      dataset: 'adult', or 'made_up' for a small one that needs no files.
      partition: 'iid' or 'shards'.
      validation: Whether 30 % of clients' training examples are set apart, and everything is
        measured on these instead of on test examples.
      **course: As `Course`.

    Returns:
      Numbers by name, those alone that are determined; where training diverged, that alone.
    """
    del folder
    chosen = Course(**course)  # type: ignore[arg-type]
    data = _made_up(seed) if dataset == "made_up" else _adult(seed, data_dir)
    population = _deal(data, partition, seed, validation)
    try:
        process, result = _train(population, data.num_classes, chosen, seed)
    except loop.DivergedError:
        return {"diverged": 1.0}
    scored = fairness.score(
        process,
        result.state,
        population,
        lambda client: result.client_states.get(client, result.state),
        ATTRIBUTES,
        "validation" if validation else "test",
    )
    result.client_states.close()
    return {"diverged": 0.0, **_numbers(scored, seed)}


def _adult(seed: int, data_dir: str | None) -> Dataset:
    """Half of the first rows of adult.data to train on, the other half to test, at random.

    As in the tutorial that the paper's code comes from: adult.test is not used, and labels are
    equally frequent in both halves.
    """
    rows = {name: column[:_ROWS] for name, column in data.load("adult", data_dir).train.items()}
    halves = train_test_split(
        np.arange(_ROWS),
        test_size=0.5,
        stratify=rows["y"],
        random_state=seeding.integer_seed(seed, seeding.DATA),
    )
    train, test = ({name: column[half] for name, column in rows.items()} for half in halves)
    return dataclasses.replace(data.load("adult", data_dir), train=train, test=test)


def _made_up(seed: int) -> Dataset:
    """Two protected attributes that are features, of which one is of use for the label."""
    rng = seeding.generator(seed, seeding.DATA)

    def draw(n: int) -> dict[str, np.ndarray]:
        x = rng.normal(size=(n, 12)).astype(np.float32)
        race, sex = x[:, 0] > 0, x[:, 1] > 0
        y = x[:, 1] + x[:, 2] > 0
        named = {"y": y, "race": race, "sex": sex}
        return {"x": x} | {name: column.astype(np.int32) for name, column in named.items()}

    return Dataset("made_up", draw(1000), draw(1000), ("negative", "positive"), "drawn")


def _deal(data: Dataset, partition: str, seed: int, validation: bool) -> Population:
    options: dict[str, Any] = {"shards_per_client": 10} if partition == "shards" else {}
    dealt = partitions.make(
        partition, data.train, data.test, num_clients=_CLIENTS, seed=seed, **options
    )
    return Population.from_partition(
        data,
        dealt,
        validation_fraction=0.3 if validation else 0.0,
        seed=seed,
        columns=("x", "y", *ATTRIBUTES),
    )


def _train(
    population: Population, num_classes: int, course: Course, seed: int
) -> tuple[FederatedProcess, loop.Result]:
    network = architectures.make("mlp_fair", population.element_spec, num_classes)

    def attached(penalty: float) -> Architecture:
        weights = [penalty] * len(ATTRIBUTES)
        return adversary.attach(network, ATTRIBUTES, weights, layer="representation")

    def training(epochs: int, adversary_steps: int) -> LocalTraining:
        optimizer = tff.learning.optimizers.build_sgdm(0.1, momentum=0.5)
        return LocalTraining(
            optimizer, batch_size=32, epochs=epochs, opponent_steps=adversary_steps
        )

    def run(process: FederatedProcess, rounds: int, begin: start.Start | None) -> loop.Result:
        settings = loop.Settings(rounds=rounds, seed=seed, eval_every=rounds)
        everyone = cohorts.always(*range(len(population)))
        return loop.train(process, population, everyone, settings, start=begin)

    begin = None
    if course.pretraining:
        alone = methods.build("local_only", attached(0.0), training(1, 1), seed=seed)
        result = run(alone, course.pretraining, None)
        begin = start.after(alone, result.state, result.client_states, range(len(population)))
        result.client_states.close()
    a_pass = -(-int(population.num_train_examples.max()) // 32)
    process = methods.build(
        course.method,
        attached(course.penalty),
        training(course.local_epochs, course.adversary_steps or a_pass),
        seed=seed,
        **({"local_layers": _LOCAL} if course.method == "lg_fedavg" else {}),
    )
    return process, run(process, course.rounds, begin)


def _numbers(scored: Sequence[fairness.Scored], seed: int) -> dict[str, float]:
    """Reported measures; for all attributes together, their mean."""
    of_class = fairness.auc([one.labels for one in scored], [one.scores for one in scored])
    found: dict[str, float | None] = {
        "class_accuracy": float(np.mean(np.concatenate([one.correct for one in scored]))),
        "class_auc": of_class.pooled,
        "class_auc_clients": of_class.mean,
        "class_left_out": of_class.left_out,
    }
    found |= _by_attribute(
        "adversary",
        lambda name: fairness.auc(
            [one.protected[name] for one in scored], [one.adversary[name] for one in scored]
        ),
    )
    representations = [one.representation for one in scored]

    def fitted(classifier: Callable[[int], Any], name: str) -> fairness.PostFit:
        truths = [one.protected[name] for one in scored]
        return fairness.post_fit(representations, truths, classifier, seed=seed)

    for guesser, classifier in _POST_FIT.items():
        found |= _by_attribute(guesser, functools.partial(fitted, classifier))
    return {name: float(value) for name, value in found.items() if value is not None}


def _by_attribute(
    guesser: str, of: Callable[[str], fairness.Auc | fairness.PostFit]
) -> Mapping[str, float | None]:
    each = {name: of(name) for name in ATTRIBUTES}
    means = [found.mean for found in each.values() if found.mean is not None]
    together = float(np.mean(means)) if len(means) == len(each) else None
    return {
        **{f"{guesser}_auc_{name}": found.mean for name, found in each.items()},
        **{f"{guesser}_left_out_{name}": found.left_out for name, found in each.items()},
        f"{guesser}_auc": together,
    }
