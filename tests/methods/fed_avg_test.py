"""FedAvg is TFF's, to rounding, on the same batches."""

import collections

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tff_het import methods
from tff_het.learning.client_work import LocalTraining
from tff_het.models import architectures
from tff_het.models.model import Weights

pytestmark = pytest.mark.usefixtures("worker")

optimizers = tff.learning.optimizers

BATCH = 4
SIZES = (8, 9, 3)  # 2 + 3 + 1 steps: whole batches, a last one of 1, fewer than a batch.
ROUNDS = 2  # Twelve steps in all.


def make_examples(n: int) -> collections.OrderedDict:
    rng = np.random.default_rng(n)
    return collections.OrderedDict(
        x=rng.normal(size=(n, 6)).astype(np.float32), y=rng.integers(0, 3, n).astype(np.int32)
    )


def keras_mlp() -> tf.keras.Model:
    return tf.keras.Sequential(
        [
            tf.keras.Input([6]),
            tf.keras.layers.Dense(200, activation="relu"),
            tf.keras.layers.Dense(3),
        ]
    )


def tff_fed_avg(initial: list[np.ndarray], client_optimizer, server_optimizer):
    """Weights after each round of TFF's algorithm."""

    def model_fn():
        return tff.learning.models.from_keras_model(
            keras_mlp(),
            loss=tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True),
            input_spec=collections.OrderedDict(
                x=tf.TensorSpec([None, 6], tf.float32), y=tf.TensorSpec([None], tf.int32)
            ),
        )

    process = tff.learning.algorithms.build_weighted_fed_avg(
        model_fn, client_optimizer, server_optimizer
    )
    data = [tf.data.Dataset.from_tensor_slices(make_examples(n)).batch(BATCH) for n in SIZES]
    state = process.set_model_weights(
        process.initialize(), tff.learning.models.ModelWeights(initial, [])
    )
    for _ in range(ROUNDS):
        state = process.next(state, data).state
        yield process.get_model_weights(state).trainable


@pytest.mark.parametrize(
    ("client", "server"),
    [
        (optimizers.build_sgdm(0.1), optimizers.build_sgdm(1.0)),
        (optimizers.build_sgdm(0.1, momentum=0.9), optimizers.build_sgdm(0.5, momentum=0.8)),
        (optimizers.build_sgdm(0.1), optimizers.build_adam(0.01)),
    ],
    ids=["sgd", "momentum", "adam"],
)
def test_equals_tff(client, server):
    element = {"x": (np.dtype(np.float32), (6,)), "y": (np.dtype(np.int32), ())}
    process = methods.build(
        "fed_avg",
        architectures.make("mlp", element, 3),
        LocalTraining(client, batch_size=BATCH, epochs=1, shuffle=False),
        seed=0,
        server_optimizer=server,
    )
    initial = keras_mlp().get_weights()
    state = process.with_weights(process.initialize(), Weights(initial, []))
    for expected in tff_fed_avg(initial, client, server):
        clients = [
            collections.OrderedDict(
                client=np.int32(index),
                seed=np.zeros(2, np.int32),
                examples=make_examples(n),
                state=process.init_state(index, 0, state),
            )
            for index, n in enumerate(SIZES)
        ]
        state = process.next(state, clients).state
        for found, wanted, old in zip(state.weights.trainable, expected, initial, strict=True):
            np.testing.assert_allclose(found, wanted, atol=1e-5)
            assert not np.allclose(found, old, atol=1e-3)
