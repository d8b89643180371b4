"""tff.learning's own algorithms and aggregators, against the worker."""

import collections
import functools

import numpy as np
import pytest
import tensorflow as tf

from tff_het.backend.names import keras, tff

algorithms = tff.learning.algorithms
sgd = tff.learning.optimizers.build_sgdm
LOOPS = list(tff.learning.LoopImplementation)

FEATURES, CLASSES = 4, 3
# Fewer and more than one batch, and a last one that is short.
SIZES = (7, 3, 12, 5)
LOSS = functools.partial(keras.losses.SparseCategoricalCrossentropy, from_logits=True)


def examples(client: int) -> collections.OrderedDict:
    rng = np.random.default_rng(client)
    size = SIZES[client]
    return collections.OrderedDict(
        x=rng.normal(size=(size, FEATURES)).astype(np.float32),
        y=rng.integers(CLASSES, size=size).astype(np.int32),
    )


def dataset(client: int) -> tf.data.Dataset:
    return tf.data.Dataset.from_tensor_slices(examples(client)).repeat(2).batch(5)


SPEC = dataset(0).element_spec


def keras_model() -> keras.Model:
    """With variables that are not trained: batch normalisation's."""
    initializer = keras.initializers.GlorotUniform(seed=1)
    return keras.Sequential(
        [
            keras.layers.InputLayer([FEATURES]),
            keras.layers.Dense(5, activation="tanh", kernel_initializer=initializer),
            keras.layers.BatchNormalization(),
            keras.layers.Dense(CLASSES, kernel_initializer=initializer),
        ]
    )


def model_fn():
    return tff.learning.models.from_keras_model(
        keras_model(),
        loss=LOSS(),
        input_spec=SPEC,
        metrics=[
            keras.metrics.SparseCategoricalAccuracy(),
            keras.metrics.SparseTopKCategoricalAccuracy(2),
        ],
    )


def reconstruction_model():
    inputs = keras.Input([FEATURES])
    initializer = keras.initializers.GlorotUniform(seed=1)
    features = keras.layers.Dense(5, kernel_initializer=initializer)
    head = keras.layers.Dense(CLASSES, kernel_initializer=initializer)
    outputs = head(features(inputs))
    return tff.learning.models.ReconstructionModel.from_keras_model_and_layers(
        keras_model=keras.Model(inputs, outputs),
        global_layers=[features],
        local_layers=[head],
        input_spec=SPEC,
    )


PROCESSES = {
    "weighted": lambda: algorithms.build_weighted_fed_avg(
        model_fn, sgd(0.1), loop_implementation=LOOPS[0]
    ),
    "weighted, other loop": lambda: algorithms.build_weighted_fed_avg(
        model_fn,
        sgd(0.1, momentum=0.9),
        tff.learning.optimizers.build_adam(0.01),
        loop_implementation=LOOPS[1],
    ),
    "unweighted": lambda: algorithms.build_unweighted_fed_avg(
        model_fn, sgd(0.1), loop_implementation=LOOPS[1]
    ),
    "unweighted, other loop": lambda: algorithms.build_unweighted_fed_avg(
        model_fn, sgd(0.1), loop_implementation=LOOPS[0]
    ),
    "FedProx": lambda: algorithms.build_weighted_fed_prox(
        model_fn, proximal_strength=0.1, client_optimizer_fn=sgd(0.1)
    ),
    "Mime Lite": lambda: algorithms.build_weighted_mime_lite(model_fn, sgd(0.1, momentum=0.9)),
    "FedRecon": lambda: algorithms.build_fed_recon(
        reconstruction_model,
        loss_fn=LOSS,
        metrics_fn=lambda: [keras.metrics.SparseCategoricalAccuracy()],
        client_optimizer_fn=sgd(0.1),
        reconstruction_optimizer_fn=sgd(0.1),
    ),
    "evaluation": lambda: algorithms.build_fed_eval(model_fn),
    "robust": lambda: algorithms.build_weighted_fed_avg(
        model_fn, sgd(0.1), model_aggregator=tff.learning.robust_aggregator()
    ),
    "compression": lambda: algorithms.build_weighted_fed_avg(
        model_fn, sgd(0.1), model_aggregator=tff.learning.compression_aggregator()
    ),
    "DP without noise": lambda: algorithms.build_unweighted_fed_avg(
        model_fn,
        sgd(0.1),
        model_aggregator=tff.aggregators.DifferentiallyPrivateFactory.gaussian_fixed(
            noise_multiplier=0.0, clients_per_round=4, clip=0.5
        ),
    ),
}


def rounds(process: tff.learning.templates.LearningProcess):
    """Two rounds, of differing clients."""
    state = process.initialize()
    outputs = []
    for cohort in ((0, 1, 2), (3, 0)):
        output = process.next(state, [dataset(client) for client in cohort])
        outputs.append((output.state, output.metrics))
        state = output.state
    return outputs, process.get_model_weights(state)


@pytest.mark.slow
@pytest.mark.parametrize("name", PROCESSES)
def test_algorithms(everywhere, name):
    process = PROCESSES[name]()
    everywhere(lambda: rounds(process))


def test_federated_averaging(everywhere):
    """One of them that is not slow."""
    process = PROCESSES["weighted, other loop"]()
    everywhere(lambda: rounds(process))


def test_lists_are_datasets(everywhere):
    """Each client's data as a list of batches."""
    process = PROCESSES["evaluation"]()

    def evaluate():
        state = process.initialize()
        data = [list(dataset(client).as_numpy_iterator()) for client in range(3)]
        return process.next(state, data)

    everywhere(evaluate)


@tff.tensorflow.computation(tff.SequenceType(np.int64))
def in_order(numbers):
    return numbers.reduce(tf.constant(0, tf.int64), lambda total, n: total * 10 + n)


SEEDED = {
    "shuffle": lambda: tf.data.Dataset.range(9).shuffle(9, seed=3),
    "shuffle inside": lambda: (
        tf.data.Dataset.range(3)
        .map(lambda n: n)
        .flat_map(lambda n: tf.data.Dataset.range(3).map(lambda m: 3 * n + m))
        .shuffle(9, seed=3)
        .prefetch(2)
    ),
    "random map": lambda: tf.data.Dataset.range(9).map(
        lambda n: tf.random.uniform([], maxval=9, dtype=tf.int64, seed=5)
    ),
    "cached": lambda: tf.data.Dataset.range(9).shuffle(9, seed=3).cache(),
}


@pytest.mark.parametrize("name", SEEDED)
def test_a_seeded_dataset_starts_anew_for_each_client(everywhere, name):
    """As in the worker; a dataset itself goes on to another order, for whoever reads it next."""
    given = SEEDED[name]()

    @tff.federated_computation(tff.FederatedType(tff.SequenceType(np.int64), tff.CLIENTS))
    def orders(data):
        return tff.federated_map(in_order, data)

    found = everywhere(lambda: [orders([given] * 6) for _ in range(2)])
    assert len({order for one in found for order in one}) == 1
