"""Attacks on clients of one method, whose examples are assigned at random from one data set."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from experiments.run import data
from tff_het import methods
from tff_het.attacks import federations, inversion
from tff_het.attacks.attacker import LOCAL_PARTS
from tff_het.backend.names import tff
from tff_het.learning.local_training import LocalTraining
from tff_het.models import architectures
from tff_het.simulation import loop

PICTURES = "pictures.npz"


def prepare(
    seed: int,
    data_dir: str | None,
    *,
    dataset: str,
    model: str,
    method: str,
    options: Mapping[str, Any],  # Of the method.
    num_clients: int,  # Of each federation; all train in every round.
    num_examples: int,  # That a client trains on; as many others are not its.
    rounds: int,  # The last one is observed.
    local_epochs: int,
    batch_size: int,
    learning_rate: float,
    momentum: float,
    scaled: bool = False,  # Whether images are divided by 255.
) -> federations.Federations:
    """Returns what both attacks begin with: two federations, and the process that trains either."""
    loaded = data.load(dataset, data_dir)
    train = {name: loaded.train[name] for name in ("x", "y")}
    if scaled:
        train["x"] = np.divide(train["x"], 255, dtype=np.float32)
    dealt = federations.deal(train, num_clients, num_examples, seed)
    optimizer = tff.learning.optimizers.build_sgdm(learning_rate, momentum or None)
    training = LocalTraining(optimizer, batch_size=batch_size, epochs=local_epochs)
    made = architectures.make(model, dealt[0].element_spec, loaded.num_classes)
    process = methods.build(method, made, training, seed=seed, **options)
    return federations.Federations(process, loop.Settings(rounds, seed), training, *dealt)


def infer_membership(
    *, seed: int, folder: Path, data_dir: str | None, **course: Any
) -> dict[str, float]:
    """As `Federations.infer_membership`; `course` as `prepare`."""
    del folder
    return prepare(seed, data_dir, **course).infer_membership()


def invert(
    *, seed: int, folder: Path, data_dir: str | None, search: Mapping[str, Any], **course: Any
) -> dict[str, float]:
    """As `Federations.invert`, of a data set of images; the folder receives the pictures.

    `sharpness` is the gradient energy of the first victim's reconstructions: the mean squared
    difference of neighbouring pixels. `search` is as `inversion.Settings`, `course` as `prepare`.
    """
    # As the model's first layer would scale images: a search needs slopes.
    made = prepare(seed, data_dir, scaled=True, **course)
    found, pictures = made.invert(inversion.Settings(**search))
    for local in pictures.keys() & set(LOCAL_PARTS):
        moves = (np.diff(pictures[local], axis=axis) for axis in (1, 2))
        found[f"{local}_sharpness"] = sum(float(np.mean(np.square(move))) for move in moves)
    class_names = data.load(course["dataset"], data_dir).class_names
    pictures["classes"] = np.array(class_names)[pictures["classes"]]
    np.savez_compressed(folder / PICTURES, **pictures)
    return found
