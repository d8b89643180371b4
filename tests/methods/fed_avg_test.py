"""FedAvg is TFF's, and FedProx its paper's, to rounding, on the same batches."""

import collections

import numpy as np
import pytest
import tensorflow as tf

from tff_het import methods
from tff_het.backend.names import keras, tff
from tff_het.learning.local_training import LocalTraining
from tff_het.models import architectures
from tff_het.models.model import Weights

optimizers = tff.learning.optimizers


@pytest.fixture(scope="module", autouse=True)
def _runtime(worker):
    """On the worker instead: TFF's own processes have variables."""
    with tff.framework.get_context_stack().install(worker):
        yield


BATCH = 4
SIZES = (8, 9, 3)  # 2 + 3 + 1 steps: whole batches, a last one of 1, fewer than a batch.
ROUNDS = 2  # Twelve steps in all.


def make_examples(n: int) -> collections.OrderedDict:
    rng = np.random.default_rng(n)
    return collections.OrderedDict(
        x=rng.normal(size=(n, 6)).astype(np.float32), y=rng.integers(0, 3, n).astype(np.int32)
    )


def keras_mlp() -> keras.Model:
    return keras.Sequential(
        [
            keras.Input([6]),
            keras.layers.Dense(200, activation="relu"),
            keras.layers.Dense(3),
        ]
    )


def tff_weights(initial: list[np.ndarray], build, *arguments):
    """Weights after each round of one of TFF's algorithms."""

    def model_fn():
        return tff.learning.models.from_keras_model(
            keras_mlp(),
            loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
            input_spec=collections.OrderedDict(
                x=tf.TensorSpec([None, 6], tf.float32), y=tf.TensorSpec([None], tf.int32)
            ),
        )

    process = build(model_fn, *arguments)
    data = [tf.data.Dataset.from_tensor_slices(make_examples(n)).batch(BATCH) for n in SIZES]
    state = process.set_model_weights(
        process.initialize(), tff.learning.models.ModelWeights(initial, [])
    )
    for _ in range(ROUNDS):
        state = process.next(state, data).state
        yield process.get_model_weights(state).trainable


def assert_equal_to(wanted_weights, initial: list[np.ndarray], method: str, client, **options):
    """Our weights are those, round by round."""
    element = {"x": (np.dtype(np.float32), (6,)), "y": (np.dtype(np.int32), ())}
    process = methods.build(
        method,
        architectures.make("mlp", element, 3),
        LocalTraining(client, batch_size=BATCH, epochs=1, shuffle=False),
        seed=0,
        **options,
    )
    state = process.with_weights(process.initialize(), Weights(initial, []))
    for expected in wanted_weights:
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


@pytest.mark.parametrize(
    ("client", "server"),
    [
        pytest.param(
            optimizers.build_sgdm(0.1), optimizers.build_sgdm(1.0), marks=pytest.mark.slow
        ),
        (optimizers.build_sgdm(0.1, momentum=0.9), optimizers.build_sgdm(0.5, momentum=0.8)),
        # Adam divides by the update's size plus epsilon: at 1e-7 it makes an update of rounding's
        # size as large as the others.
        pytest.param(
            optimizers.build_sgdm(0.1),
            optimizers.build_adam(0.01, epsilon=1e-3),
            marks=pytest.mark.slow,
        ),
    ],
    ids=["sgd", "momentum", "adam"],
)
def test_equals_tff(client, server):
    initial = keras_mlp().get_weights()
    build = tff.learning.algorithms.build_weighted_fed_avg
    wanted = tff_weights(initial, build, client, server)
    assert_equal_to(wanted, initial, "fed_avg", client, server_optimizer=server)


@pytest.mark.parametrize(
    ("mu", "momentum"), [(5.0, 0.9), pytest.param(1.0, None, marks=pytest.mark.slow)]
)
def test_fed_prox_follows_the_published_formula(mu, momentum):
    """With a mu that matters: without the term, weights are others."""
    initial = keras_mlp().get_weights()
    client = optimizers.build_sgdm(0.1, momentum=momentum)
    wanted = list(transcribed_fed_prox(initial, mu, momentum or 0.0))
    assert_equal_to(wanted, initial, "fed_prox", client, proximal_strength=mu)
    for one, other in zip(wanted, transcribed_fed_prox(initial, 0.0, momentum or 0.0), strict=True):
        assert not any(np.allclose(a, b, atol=1e-5) for a, b in zip(one, other, strict=True))


def transcribed_fed_prox(initial: list[np.ndarray], mu: float, momentum: float):
    """Li et al. (2020), Algorithm 2, in Keras and NumPy."""
    network = keras_mlp()
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    start = initial
    for _ in range(ROUNDS):
        models = []
        for n in SIZES:
            examples = make_examples(n)
            weights, velocity = start, [np.zeros_like(w) for w in start]
            for first in range(0, n, BATCH):
                network.set_weights(weights)
                rows = slice(first, first + BATCH)
                with tf.GradientTape() as tape:
                    value = loss(examples["y"][rows], network(examples["x"][rows]))
                gradients = tape.gradient(value, network.trainable_weights)
                pulled = [
                    g.numpy() + mu * (w - w_t)
                    for g, w, w_t in zip(gradients, weights, start, strict=True)
                ]
                velocity = [momentum * v + g for v, g in zip(velocity, pulled, strict=True)]
                weights = [w - 0.1 * v for w, v in zip(weights, velocity, strict=True)]
            models.append(weights)
        start = [np.average(same, axis=0, weights=SIZES) for same in zip(*models, strict=True)]
        yield start


@pytest.mark.slow
def test_tff_has_the_other_sign():
    """TFF 0.87.0 adds mu (w_t - w) to the gradient, which drives clients away from the model."""
    initial = keras_mlp().get_weights()
    client = optimizers.build_sgdm(0.1)
    build = tff.learning.algorithms.build_weighted_fed_prox
    wanted = list(tff_weights(initial, build, 5.0, client))
    for found, theirs in zip(transcribed_fed_prox(initial, -5.0, 0.0), wanted, strict=True):
        for one, other in zip(found, theirs, strict=True):
            np.testing.assert_allclose(one, other, atol=1e-5)


def test_fed_prox_without_the_term_is_tffs_fed_avg():
    initial = keras_mlp().get_weights()
    client = optimizers.build_sgdm(0.1)
    wanted = tff_weights(initial, tff.learning.algorithms.build_weighted_fed_avg, client)
    assert_equal_to(wanted, initial, "fed_prox", client, proximal_strength=0.0)
    with pytest.raises(ValueError, match="proximal_strength: expected a number from 0"):
        assert_equal_to([], initial, "fed_prox", client, proximal_strength=-1)
