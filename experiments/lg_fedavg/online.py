"""A device whose images are rotated joins when the others have trained (§3.2, §7.2 of LG-FedAvg).

Federated averaging on the other devices to a goal accuracy comes first. From there it goes on with
each method, with the new device and a fraction of the others in each round.
"""

import csv
import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from experiments.run import processes, setup
from experiments.run.config import RunConfig
from tff_het import seeding
from tff_het.clients import Client
from tff_het.datasets import Dataset
from tff_het.evaluation.local_test import global_test, local_test
from tff_het.evaluation.new_client import NewClient
from tff_het.learning.process import FederatedProcess
from tff_het.models.model import Variables
from tff_het.simulation import cohorts, loop
from tff_het.simulation import start as starts
from tff_het.simulation.evaluating import Evaluation

CURVES, PICTURES = "curves.csv", "pictures.npz"


class Way(NamedTuple):
    """One way on.

    Attributes:
      title: For people.
      method: The method.
      local_first: Whether the new device fits its local part before the first round.
    """

    title: str
    method: str
    local_first: bool = False


WAYS = {
    "fed_avg": Way("FedAvg", "fed_avg"),
    "fed_prox": Way("FedProx", "fed_prox"),
    "lg_local_first": Way("LG-FedAvg", "lg_fedavg", local_first=True),
    "lg_at_once": Way("LG-FedAvg, both parts at once", "lg_fedavg"),
}


def rotated_device(dataset: Dataset, seed: int, num_train: int, num_test: int) -> Client:
    """Returns the new device: examples drawn from all of train and test, turned by 90 degrees.

    Args:
      dataset: Square images.
      seed: Of the draws, without replacement.
      num_train: Training examples.
      num_test: Test examples.

    Raises:
      ValueError: If the data set has no square images, or not as many.
    """
    shape = dataset.train["x"].shape[1:]
    if len(shape) != 3 or shape[0] != shape[1]:
        raise ValueError(f"Square images [side, side, channels] can be turned; found {shape}.")
    splits = {}
    for key, (split, num) in enumerate((("train", num_train), ("test", num_test))):
        examples = getattr(dataset, split)
        if not 1 <= num <= len(examples["y"]):
            raise ValueError(
                f"From 1 to {len(examples['y'])} {split} examples can be drawn; found {num}."
            )
        rng = seeding.generator(seed, seeding.DATA, key)
        rows = rng.choice(len(examples["y"]), num, replace=False)
        splits[split] = {
            "x": np.rot90(examples["x"][rows], axes=(1, 2)),
            "y": examples["y"][rows],
        }
    nothing = {name: column[:0] for name, column in splits["train"].items()}
    return Client("rotated", splits["train"], nothing, splits["test"])


def join(
    *,
    seed: int,
    folder: Path,
    data_dir: str | None,
    flags: Mapping[str, str],
    fractions: Sequence[float],
    rounds: int,
    eval_every: int,
    local_epochs: int,
    num_train: int,
    num_test: int,
) -> dict[str, float]:
    """Trains to the goal, lets the new device join, and goes on in all ways.

    Args:
      seed: Of all.
      folder: Receives `curves.csv` and `pictures.npz`.
      data_dir: The folder of data sets.
      flags: Of the training to the goal, without method; those of `fed_prox` are among them.
      fractions: C: how many of the old devices take part in each later round, beside the new one.
      rounds: Later rounds.
      eval_every: How often these are evaluated.
      local_epochs: Passes of the new device's local part, where that is fitted first.
      num_train: The new device's training examples.
      num_test: Its test examples.

    Returns:
      Rounds to the goal, and accuracies: 'before_normal' and 'before_rotated' when the device
      joins, 'fitted_rotated' with its local part fitted alone, and '<way>/<C>/normal' and
      '<way>/<C>/rotated' after the last round. Normal is the mean over the old devices' test
      examples, each with its own local part, if any; rotated is the new device's, likewise.

    Raises:
      ValueError: If the goal is not reached.
    """
    values = {**flags, "seed": str(seed), "method": "fed_avg,fed_prox,lg_fedavg"}
    values |= {} if data_dir is None else {"data_dir": data_dir}
    made = setup.make(RunConfig.of(**values))
    built = processes.build(made)
    old, device = made.population, rotated_device(made.dataset, seed, num_train, num_test)
    fed_avg = built["fed_avg"]
    before = loop.train(fed_avg, old, made.schedule, made.settings)
    if not before.goal_reached or before.evaluation is None:
        raise ValueError(f"FedAvg has not reached {made.settings.goal} in {before.rounds} rounds.")
    start = starts.after(fed_avg, before.state)
    fitted, fitted_rotated = _fit(built["lg_fedavg"], made, start, device, local_epochs)
    joined = {
        "before_normal": _normal(before.evaluation, len(old)),
        "before_rotated": global_test(fed_avg, before.state, device.test).accuracy,
        "fitted_rotated": fitted_rotated,
    }

    settings = dataclasses.replace(made.settings, rounds=rounds, eval_every=eval_every, goal=None)
    found, rows = {"goal_rounds": float(before.rounds), **joined}, []
    for fraction in fractions:
        schedule = cohorts.always(len(old))
        if fraction:
            some = cohorts.uniform(len(old), max(1, round(fraction * len(old))), settings.seed)
            schedule = cohorts.together(schedule, some)
        for name, way in WAYS.items():
            evaluations: dict[int, Evaluation] = {}
            loop.train(
                built[way.method],
                old.grown_by([device]),
                schedule,
                settings,
                start=fitted if way.local_first else start,
                on_evaluation=evaluations.__setitem__,
            )
            rotated = joined["fitted_rotated" if way.local_first else "before_rotated"]
            curve = [(0, joined["before_normal"], rotated)]
            curve += [
                (done, _normal(one, len(old)), _rotated(one, len(old)))
                for done, one in evaluations.items()
            ]
            rows += [(name, f"{fraction:g}", *point) for point in curve]
            _, normal, rotated = curve[-1]
            found[f"{name}/{fraction:g}/normal"] = normal
            found[f"{name}/{fraction:g}/rotated"] = rotated
    with (folder / CURVES).open("w", newline="") as file:
        csv.writer(file).writerows([("way", "fraction", "round", "normal", "rotated"), *rows])
    np.savez(
        folder / PICTURES,
        normal=_one_of_each(made.dataset.train),
        rotated=_one_of_each(device.test),
    )
    return found


def _fit(
    process: FederatedProcess,
    made: setup.Setup,
    start: starts.Start,
    device: Client,
    local_epochs: int,
) -> tuple[starts.Start, float]:
    """Fits the new device's local part; returns where training starts then, and its accuracy."""
    seed, index = made.settings.seed, len(made.population)
    state = start.server_state(process, process.initialize())
    training = dataclasses.replace(made.training, epochs=local_epochs, steps=None)
    weights, own = NewClient(process, training).fit(
        state.weights,
        process.init_state(index, seed, state),
        device.train,
        seed=seeding.stateless_seed(seed, seeding.EVALUATION, index),
        client=index,
    )
    alone = made.population.grown_by([device])[index:]
    accuracy = local_test(process, state, alone, lambda client: own).accuracy[0]
    values = starts.values_of(process.model, Variables(weights, own.model))
    return dataclasses.replace(start, clients={index: values}), float(accuracy)


def _normal(evaluation: Evaluation, num_old: int) -> float:
    return float(evaluation.local["test"].accuracy[:num_old].mean())


def _rotated(evaluation: Evaluation, num_old: int) -> float:
    return float(evaluation.local["test"].accuracy[num_old])


def _one_of_each(examples: Mapping[str, np.ndarray]) -> np.ndarray:
    """The first image of each class that is there."""
    _, rows = np.unique(examples["y"], return_index=True)
    return examples["x"][rows]
