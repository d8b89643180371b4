"""Clients on threads do not meet in TensorFlow's resources."""

import numpy as np
import pytest
import tensorflow as tf

from tff_het.backend.names import keras, tff

CLIENTS = 24
STEPS = tff.FederatedType(np.int32, tff.CLIENTS)


@tff.tensorflow.computation(np.int32)
def count_in_a_variable(steps):
    """Long enough for others to come between: a shared variable would count for all."""
    variable = tf.Variable(0, dtype=tf.int32)

    def body(i):
        with tf.control_dependencies([variable.assign_add(1)]):
            return i + 1

    (end,) = tf.while_loop(lambda i: i < steps, lambda i: (body(i),), (0,))
    with tf.control_dependencies([end]):
        return variable.read_value()


@tff.tensorflow.computation(np.int32)
def count_in_a_function(steps):
    """The variable is read and written by functions of the graph's library."""
    variable = tf.Variable(0, dtype=tf.int32)

    @tf.function
    def add(i):
        variable.assign_add(1)
        return i + 1

    @tf.function
    def run():
        i = 0
        while i < steps:
            i = add(i)
        return variable.read_value()

    return run()


@tff.tensorflow.computation(np.int32)
def count_in_a_dataset(steps):
    """The functions of a dataset write it."""
    variable = tf.Variable(0, dtype=tf.int32)

    @tf.function
    def run():
        for _ in tf.data.Dataset.range(tf.cast(steps, tf.int64)):
            variable.assign_add(1)
        return variable.read_value()

    return run()


@tff.tensorflow.computation(np.int32)
def look_up(steps):
    """A table that is initialised before each call."""
    keys = tf.constant([0, 1, 2], tf.int64)
    initializer = tf.lookup.KeyValueTensorInitializer(keys, tf.constant([5, 6, 7], tf.int64))
    table = tf.lookup.StaticHashTable(initializer, -1)
    return tf.cast(table.lookup(tf.cast(steps, tf.int64) % 4), tf.int32)


@tff.tensorflow.computation(np.int32)
def count_in_a_table(steps):
    """A table that calls fill: it is empty whenever a call begins."""
    table = tf.lookup.experimental.MutableHashTable(tf.int64, tf.int32, -1)

    def body(i):
        with tf.control_dependencies([table.insert(tf.cast([i], tf.int64), [i])]):
            return i + 1

    (end,) = tf.while_loop(lambda i: i < steps, lambda i: (body(i),), (0,))
    with tf.control_dependencies([end]):
        return tf.cast(table.size(), tf.int32)


@tff.tensorflow.computation(np.int32)
def count_in_a_functions_table(steps):
    """A table that a function of the graph's library opens by its name."""

    def table():
        return tf.raw_ops.MutableHashTableV2(
            key_dtype=tf.int32, value_dtype=tf.int32, shared_name="numbers"
        )

    def insert(total, i):
        number = [tf.cast(i, tf.int32)]
        inserted = tf.raw_ops.LookupTableInsertV2(table_handle=table(), keys=number, values=number)
        with tf.control_dependencies([inserted]):
            return total + 1

    end = tf.data.Dataset.range(tf.cast(steps, tf.int64)).reduce(0, insert)
    with tf.control_dependencies([end]):
        return tf.cast(tf.raw_ops.LookupTableSizeV2(table_handle=table()), tf.int32)


COMPUTATIONS = [
    count_in_a_variable,
    count_in_a_function,
    count_in_a_dataset,
    look_up,
    count_in_a_table,
    count_in_a_functions_table,
]
NAMES = ["variable", "function", "dataset", "table", "filled table", "function's table"]


@pytest.mark.parametrize("work", COMPUTATIONS, ids=NAMES)
def test_clients_do_not_meet(contexts, work):
    @tff.federated_computation(STEPS)
    def run(steps):
        return tff.federated_map(work, steps), tff.federated_sum(tff.federated_map(work, steps))

    steps = np.random.default_rng(0).integers(1, 200, CLIENTS).astype(np.int32)
    wanted = [(-1, 5, 6, 7)[(n + 1) % 4] for n in steps] if work is look_up else list(steps)
    for count, context in contexts.items():
        with tff.framework.get_context_stack().install(context):
            for _ in range(3):
                found, total = run(list(steps))
                assert found == wanted, f"{count} threads"
                assert total == sum(wanted)


@pytest.mark.parametrize("work", COMPUTATIONS, ids=NAMES)
def test_as_the_worker(everywhere, work):
    everywhere(lambda: [work(n) for n in (1, 3, 7)])


def test_equal_functions_of_different_computations(in_process):
    """Grappler gives functions of different graphs one name; each keeps its own."""

    @tf.function(autograph=False)
    def shared(x, n):
        return tf.while_loop(lambda i, _: i < n, lambda i, x: (i + 1, x * n), (0, x))[1]

    def make(n):
        return tff.tensorflow.computation(lambda x: shared(x, tf.constant(n)), np.int32)

    computations = {n: make(n) for n in (1, 2, 3)}
    for _ in range(2):
        assert {n: int(one(1)) for n, one in computations.items()} == {1: 1, 2: 4, 3: 27}


def model_fn():
    layers = keras.layers
    keras_model = keras.Sequential(
        [
            layers.InputLayer([4]),
            layers.Dense(8, "tanh", kernel_initializer=keras.initializers.GlorotUniform(1)),
            layers.BatchNormalization(),
            layers.Dense(3, kernel_initializer=keras.initializers.GlorotUniform(2)),
        ]
    )
    return tff.learning.models.from_keras_model(
        keras_model,
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        input_spec=dataset(0).element_spec,
        metrics=[keras.metrics.SparseCategoricalAccuracy()],
    )


def dataset(client: int) -> tf.data.Dataset:
    rng = np.random.default_rng(client)
    x = rng.normal(size=(20, 4)).astype(np.float32)
    return tf.data.Dataset.from_tensor_slices((x, rng.integers(3, size=20))).batch(4)


def test_models_of_many_clients(everywhere):
    """Models, optimizers and metrics that live in variables: several rounds, many clients."""
    process = tff.learning.algorithms.build_weighted_fed_avg(
        model_fn,
        tff.learning.optimizers.build_sgdm(0.1, momentum=0.9),
        loop_implementation=tff.learning.LoopImplementation.DATASET_ITERATOR,
    )
    data = [dataset(client) for client in range(16)]

    def rounds():
        state = process.initialize()
        for _ in range(2):  # Ten steps: rounding grows with every one.
            state, metrics = process.next(state, data)
        return state, metrics

    everywhere(rounds)
