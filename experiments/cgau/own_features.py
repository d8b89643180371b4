"""Features of a network that was trained on the very images (section 5 of CGAU)."""

from pathlib import Path

import numpy as np

from experiments.cgau.settings import Flags
from experiments.run import one
from experiments.run.config import RunConfig
from tff_het import datasets, seeding
from tff_het.backend.names import keras

ACCURACY = "best_local_test_accuracy_weighted_mean"


def compare(
    *, seed: int, folder: Path, data_dir: str | None, dataset: str, epochs: int, flags: Flags
) -> dict[str, float]:
    """Trains a small network on the images themselves; compares both methods on its features.

    It is trained on all training images, as the network of the authors' code was. Gives the
    accuracy of each method, and of the network itself. `flags` name neither data set nor method.
    """
    data = datasets.load(dataset, data_dir)
    # Keras draws from its global generators.
    keras.utils.set_random_seed(seeding.integer_seed(seed, seeding.DATA))
    layers = keras.layers
    network = keras.Sequential([layers.Input(data.train["x"].shape[1:]), layers.Rescaling(1 / 255)])
    for filters in (16, 32, 64):
        network.add(layers.Conv2D(filters, 3, padding="same", activation="relu"))
        network.add(layers.BatchNormalization())
        network.add(layers.MaxPool2D())
    network.add(layers.Flatten())
    network.add(layers.Dense(128, activation="relu"))
    network.add(layers.Dense(data.num_classes))
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    network.compile("adam", loss, ["accuracy"])
    (x, y), (x_test, y_test) = ((part["x"], part["y"]) for part in (data.train, data.test))
    network.fit(x, y, batch_size=64, epochs=epochs, verbose=0)
    _, accuracy = network.evaluate(x_test, y_test, batch_size=500, verbose=0)
    features = keras.Model(network.inputs, network.layers[-2].output)
    x, x_test = (features.predict(part, batch_size=500, verbose=0) for part in (x, x_test))
    path = folder / "features.npz"
    np.savez(path, x_train=x, y_train=y, x_test=x_test, y_test=y_test)
    found = {"network_accuracy": float(accuracy)}
    for name, method in (("cgau", "cgau"), ("baseline", "fed_avg")):
        values = {**flags, "method": method, "dataset": "npz", "data_dir": str(path)}
        with one.run(RunConfig.of(**values, seed=seed), folder / name) as result:
            found[f"{name}_accuracy"] = result.summary[ACCURACY]
    path.unlink()
    return found
