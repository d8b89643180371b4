"""A device whose images are rotated joins when the others have trained (§3.2, §7.2 of LG-FedAvg).

Federated averaging on the other devices to a goal accuracy comes first. From there it goes on with
each method, with the new device and a fraction of the others in each round.
"""

import collections
import csv
import dataclasses
import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from experiments.run import processes, setup
from tff_het import seeding
from tff_het.clients import Client, Population
from tff_het.datasets import Dataset, Examples
from tff_het.evaluation.local_test import global_test, local_tests
from tff_het.evaluation.new_client import NewClient
from tff_het.learning.process import FederatedProcess
from tff_het.models.model import Variables
from tff_het.simulation import cohorts, loop
from tff_het.simulation import start as starts
from tff_het.simulation.evaluating import Evaluation

CURVES, PICTURES = "metrics.csv", "pictures.npz"
IMAGES = ("normal", "rotated")
# Way on -> its title and method; `lg_local_first` fits the new device's local part before it.
WAYS = {
    "fed_avg": ("FedAvg", "fed_avg"),
    "fed_prox": ("FedProx", "fed_prox"),
    "lg_local_first": ("LG-FedAvg", "lg_fedavg"),
    "lg_at_once": ("LG-FedAvg, both parts at once", "lg_fedavg"),
}


def rotated_device(dataset: Dataset, seed: int, num_train: int, num_test: int) -> Client:
    """Returns the new device: this many examples of train and test, turned by 90 degrees."""

    def draw(key: int, examples: Examples, num: int) -> dict[str, np.ndarray]:
        generator = seeding.generator(seed, seeding.DATA, key)
        rows = generator.choice(len(examples["y"]), num, replace=False)
        return {"x": np.rot90(examples["x"][rows], axes=(1, 2)), "y": examples["y"][rows]}

    train, test = draw(0, dataset.train, num_train), draw(1, dataset.test, num_test)
    return Client("rotated", train, {name: column[:0] for name, column in train.items()}, test)


def join(
    *,
    seed: int,
    folder: Path,
    data_dir: str | None,
    flags: Mapping[str, str],
    fractions: Sequence[float],
    local_epochs: int,
    num_train: int,
    num_test: int,
    rounds: int,
    eval_every: int,
) -> dict[str, float]:
    """Trains to the goal, lets the new device join, and goes on in all ways.

    Args:
      folder: Receives `metrics.csv`, accuracies by later round, and `pictures.npz`.
      flags: Of the training to the goal, without method; those of `fed_prox` are among them.
      fractions: C: how many of the old devices take part in each later round, beside the new one.
      local_epochs: Passes of the new device's local part, where that is fitted first.

    Returns 'goal_rounds', and accuracies: 'before_normal' and 'before_rotated' when the device
    joins, 'fitted_rotated' with its local part fitted alone, '<way>/<C>/normal' (mean over the old
    devices) and '<way>/<C>/rotated' (the new one) after the last round.
    """
    made = setup.of_flags(flags, seed=seed, data_dir=data_dir, method="fed_avg,fed_prox,lg_fedavg")
    built = processes.build(made)
    old, device = made.population, rotated_device(made.dataset, seed, num_train, num_test)
    before = loop.train(built["fed_avg"], old, made.schedule, made.settings)
    if not before.goal_reached or before.evaluation is None:
        raise ValueError(f"FedAvg has not reached {made.settings.goal} in {before.rounds} rounds.")
    start = starts.after(built["fed_avg"], before.state)
    everyone = old.grown_by([device])
    fitted, fitted_rotated = _fit(built["lg_fedavg"], made, start, everyone, local_epochs)
    found = {
        "goal_rounds": float(before.rounds),
        "before_normal": float(before.evaluation.local["test"].accuracy.mean()),
        "before_rotated": global_test(built["fed_avg"], before.state, device.test).accuracy,
        "fitted_rotated": fitted_rotated,
    }

    settings = dataclasses.replace(made.settings, rounds=rounds, eval_every=eval_every, goal=None)
    curves: dict[int, dict[str, float]] = collections.defaultdict(dict)  # By round.
    for fraction, (way, (_, method)) in itertools.product(fractions, WAYS.items()):
        schedule = cohorts.always(len(old))
        if fraction:
            some = cohorts.uniform(len(old), max(1, round(fraction * len(old))), settings.seed)
            schedule = cohorts.together(schedule, some)
        normal, rotated = (f"{way}/{fraction:g}/{images}" for images in IMAGES)

        def note(done: int, evaluation: Evaluation, normal=normal, rotated=rotated) -> None:
            accuracy = evaluation.local["test"].accuracy
            curves[done] |= {normal: float(accuracy[:-1].mean()), rotated: float(accuracy[-1])}

        begin, fit = (fitted, "fitted") if way == "lg_local_first" else (start, "before")
        curves[0] |= {normal: found["before_normal"], rotated: found[f"{fit}_rotated"]}
        loop.train(built[method], everyone, schedule, settings, start=begin, on_evaluation=note)
    rows = [(done, *accuracies.values()) for done, accuracies in curves.items()]
    with (folder / CURVES).open("w", newline="") as file:
        csv.writer(file).writerows([("round", *curves[0]), *rows])
    # The first image of each class that is there.
    pictures = {
        images: examples["x"][np.unique(examples["y"], return_index=True)[1]]
        for images, examples in zip(IMAGES, (made.dataset.train, device.test), strict=True)
    }
    np.savez(folder / PICTURES, **pictures)
    return found | curves[rounds]


def _fit(
    process: FederatedProcess,
    made: setup.Setup,
    start: starts.Start,
    grown: Population,
    epochs: int,
) -> tuple[starts.Start, float]:
    """Fits the last device's local part; returns where training starts then, and its accuracy."""
    seed, index = made.settings.seed, len(grown) - 1
    state = start.server_state(process, process.initialize())
    training = dataclasses.replace(made.training, epochs=epochs, steps=None)
    own = NewClient(process, training).fit(
        state.weights,
        process.init_state(index, seed, state),
        grown[index].train,
        seed=seeding.stateless_seed(seed, seeding.EVALUATION, index),
        client=index,
    )
    test = local_tests(process, state, grown[index:], lambda client: own, ["test"])["test"]
    values = starts.values_of(process.model, Variables(state.weights, own.model))
    return dataclasses.replace(start, clients={index: values}), float(test.accuracy[0])
