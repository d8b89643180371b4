"""Features of a network that was trained on the very images (section 5 of CGAU)."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from experiments.cgau import settings
from experiments.run import one
from experiments.run.config import RunConfig
from tff_het import datasets, seeding
from tff_het.backend.names import keras

ACCURACY = "best_local_test_accuracy_weighted_mean"
NAMES = {settings.CGAU: "cgau", settings.BASELINE: "baseline"}
_METHODS = {"cgau": "cgau", "baseline": "fed_avg"}


def compare(
    *,
    seed: int,
    folder: Path,
    data_dir: str | None,
    dataset: str,
    epochs: int,
    flags: Mapping[str, str],
) -> dict[str, float]:
    """Trains a small network on the images themselves; compares both methods on its features.

    Args:
      seed: Of that network, which Keras draws from its global generators, and of the runs.
      folder: Receives the features and the runs.
      data_dir: The folder of data sets.
      dataset: The images.
      epochs: Of the network's training, on all training images, as the pre-trained network of
        the authors' code was.
      flags: Of the runs, without data set and method.

    Returns:
      The accuracy of each method, and of the network itself.
    """
    data = datasets.load(dataset, data_dir)
    keras.utils.set_random_seed(seeding.integer_seed(seed, seeding.DATA))
    network = _small_network(data.train["x"].shape[1:], data.num_classes)
    network.fit(data.train["x"], data.train["y"], batch_size=64, epochs=epochs, verbose=0)
    _, accuracy = network.evaluate(data.test["x"], data.test["y"], batch_size=500, verbose=0)
    features = keras.Model(network.inputs, network.layers[-2].output)
    arrays = {
        f"{key}_{split}": value
        for split, examples in (("train", data.train), ("test", data.test))
        for key, value in (
            ("x", features.predict(examples["x"], batch_size=500, verbose=0)),
            ("y", examples["y"]),
        )
    }
    path = folder / "features.npz"
    np.savez(path, **arrays)
    found = {"network_accuracy": float(accuracy)}
    for name, method in _METHODS.items():
        values = {**flags, "method": method, "dataset": "npz", "data_dir": str(path)}
        with one.run(RunConfig.of(**values, seed=seed), folder / name) as result:
            found[f"{name}_accuracy"] = result.summary[ACCURACY]
    path.unlink()
    return found


def _small_network(shape: tuple[int, ...], num_classes: int) -> keras.Model:
    layers = keras.layers
    model = keras.Sequential([layers.Input(shape), layers.Rescaling(1 / 255)])
    for filters in (16, 32, 64):
        model.add(layers.Conv2D(filters, 3, padding="same", activation="relu"))
        model.add(layers.BatchNormalization())
        model.add(layers.MaxPool2D())
    model.add(layers.Flatten())
    model.add(layers.Dense(128, activation="relu"))
    model.add(layers.Dense(num_classes))
    model.compile(
        "adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True), ["accuracy"]
    )
    return model
