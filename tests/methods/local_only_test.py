"""Local training alone is each client's own training in plain Keras."""

import collections

import numpy as np

from tff_het import methods
from tff_het.backend.names import keras, tff
from tff_het.learning.local_training import LocalTraining
from tff_het.models import architectures

SIZES = (8, 9, 3)
ROUNDS, EPOCHS, BATCH, RATE = 2, 2, 4, 0.1


def make_examples(n: int) -> collections.OrderedDict:
    rng = np.random.default_rng(n)
    return collections.OrderedDict(
        x=rng.integers(0, 256, (n, 4, 4, 1), np.uint8), y=rng.integers(0, 3, n).astype(np.int32)
    )


def keras_model() -> keras.Model:
    return keras.Sequential(
        [
            keras.Input([4, 4, 1]),
            keras.layers.Rescaling(1 / 255),
            keras.layers.Flatten(),
            keras.layers.Dense(200, activation="relu"),
            keras.layers.Dense(3),
        ]
    )


def trained_by_keras(initial: list[np.ndarray], n: int) -> list[np.ndarray]:
    """All rounds in one `fit`: SGD without momentum has nothing to reset."""
    model = keras_model()
    model.set_weights(initial)
    model.compile(
        keras.optimizers.SGD(RATE),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    )
    examples = make_examples(n)
    model.fit(
        examples["x"],
        examples["y"],
        batch_size=BATCH,
        epochs=ROUNDS * EPOCHS,
        shuffle=False,
        verbose=0,
    )
    return model.get_weights()


def test_equals_keras():
    element = {"x": (np.dtype(np.uint8), (4, 4, 1)), "y": (np.dtype(np.int32), ())}
    process = methods.build(
        "local_only",
        architectures.make("mlp", element, 3),
        LocalTraining(
            tff.learning.optimizers.build_sgdm(RATE),
            batch_size=BATCH,
            epochs=EPOCHS,
            shuffle=False,
        ),
        seed=0,
    )
    initial = keras_model().get_weights()
    state = process.with_weights(process.initialize(), initial)
    clients = [
        collections.OrderedDict(
            client=np.int32(index),
            seed=np.zeros(2, np.int32),
            examples=make_examples(n),
            state=process.init_state(index, 0, state),
        )
        for index, n in enumerate(SIZES)
    ]
    for _ in range(ROUNDS):
        output = process.next(state, clients)
        state = output.state
        for result in output.client_states:
            clients[int(result["client"])]["state"] = result["state"]
    for client, n in zip(clients, SIZES, strict=True):
        for found, wanted, old in zip(
            client["state"].model.trainable, trained_by_keras(initial, n), initial, strict=True
        ):
            np.testing.assert_allclose(found, wanted, atol=1e-5)
            assert not np.allclose(found, old, atol=1e-3)
