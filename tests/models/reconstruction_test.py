"""Reconstruction models of TFF, taken and given."""

import collections

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tff_het.models import keras_model, layers, reconstruction
from tff_het.models.model import EXAMPLE_WEIGHT, ClientContext

CLIENT = ClientContext(tf.constant(0), tf.constant(7), tf.constant(0))
SEED = tf.constant([3, 4])
SPEC = collections.OrderedDict(
    x=tf.TensorSpec([None, 6], tf.float32), y=tf.TensorSpec([None], tf.int32)
)
RNG = np.random.default_rng(0)
BATCH = {
    "x": tf.constant(RNG.normal(size=(7, 6)), tf.float32),
    "y": tf.constant(RNG.integers(0, 3, 7), tf.int32),
    EXAMPLE_WEIGHT: tf.ones([7]),
}


def mlp(dropout: float = 0.0) -> tf.keras.Model:
    x = tf.keras.Input([6], name="x")
    h = tf.keras.layers.Dense(5, name="hidden", activation="tanh")(x)
    for _ in range(2 if dropout else 0):
        h = layers.Dropout(dropout)(h)
    h = tf.keras.layers.BatchNormalization(name="norm")(h)
    return tf.keras.Model(x, tf.keras.layers.Dense(3, name="output")(h))


def keras_reconstruction(keras=None, input_spec=SPEC) -> tff.learning.models.ReconstructionModel:
    """TFF's own wrapper, whose forward pass is a `tf.function`; the last layer is local."""
    keras = keras or mlp()
    return tff.learning.models.ReconstructionModel.from_keras_model_and_layers(
        keras,
        global_layers=keras.layers[:-1],
        local_layers=keras.layers[-1:],
        input_spec=input_spec,
    )


class Factorization(tff.learning.models.ReconstructionModel):
    """A user's own: ratings are the product of an item's and the client's vector."""

    input_spec = (tf.TensorSpec([None], tf.int32), tf.TensorSpec([None], tf.float32))

    def __init__(self):
        self._items = tf.Variable(tf.ones([4, 2]) * 0.5, name="items")
        self._user = tf.Variable(lambda: tf.constant([1.0, -2.0]), name="user")
        self._scale = tf.Variable(3.0, trainable=False, name="scale")

    global_trainable_variables = property(lambda self: [self._items])
    global_non_trainable_variables = property(lambda self: [self._scale])
    local_trainable_variables = property(lambda self: [self._user])
    local_non_trainable_variables = property(lambda self: [])

    def forward_pass(self, batch_input, training=True):
        item, rating = batch_input
        predictions = self._scale * tf.linalg.matvec(tf.gather(self._items, item), self._user)
        return tff.learning.models.reconstruction_model.ReconstructionBatchOutput(
            predictions, labels=rating, num_examples=tf.size(item)
        )


def squared_error(batch, outputs):
    return tf.square(outputs["logits"] - outputs["labels"])


def test_taken_from_keras_equals_from_keras():
    """The same network by two ways: the same initial values, outputs, gradients and statistics."""
    ours = keras_model.from_keras(mlp, SPEC, local=["output"])
    taken = reconstruction.from_reconstruction_model(keras_reconstruction)
    place = {spec.path: i for i, spec in enumerate(taken.specs)}
    assert {s.path: (s.local, s.trainable) for s in ours.specs} == {
        s.path: (s.local, s.trainable) for s in taken.specs
    }
    values = ours.initial_variables(1)
    joined = ours.join(values)
    by_place = {place[spec.path]: v for spec, v in zip(ours.specs, joined, strict=True)}
    same = taken.split([by_place[i] for i in range(len(joined))])
    for training in (False, True):
        with tf.GradientTape(persistent=True) as tape:
            tape.watch([values, same])
            expected = ours.loss(values, BATCH, CLIENT, SEED, training)
            found = taken.loss(same, BATCH, CLIENT, SEED, training)
        np.testing.assert_array_equal(found.loss, expected.loss)
        np.testing.assert_array_equal(found.outputs["logits"], expected.outputs["logits"])
        for side in ("global_weights", "local_weights"):
            np.testing.assert_equal(
                [v.numpy() for v in tape.gradient(found.loss, getattr(same, side).trainable)],
                [v.numpy() for v in tape.gradient(expected.loss, getattr(values, side).trainable)],
            )
        np.testing.assert_equal(
            [v.numpy() for v in found.variables.global_weights.non_trainable],
            [v.numpy() for v in expected.variables.global_weights.non_trainable],
        )


def test_values_are_never_those_of_an_earlier_trace():
    """TFF's wrapper is a `tf.function`: called as such, it would keep its first call's tensors."""
    taken = reconstruction.from_reconstruction_model(keras_reconstruction)
    outputs = []
    for seed in (1, 2):
        # Two graphs, as two computations of a process are.
        predict = tf.function(lambda v: taken.predict(v, BATCH, CLIENT, SEED, False)["logits"])
        variables = taken.initial_variables(seed)
        outputs.append(predict(variables).numpy())
        twin = mlp()
        specs = {spec.path: v for spec, v in zip(taken.specs, taken.join(variables), strict=True)}
        twin.set_weights([specs[w.name.removesuffix(":0")].numpy() for w in twin.weights])
        np.testing.assert_allclose(outputs[-1], twin(BATCH["x"]), atol=1e-6)
    assert not np.allclose(outputs[0], outputs[1])


def test_taken_from_a_users_own():
    model = reconstruction.from_reconstruction_model(
        Factorization, loss=squared_error, metrics={"squared_error": squared_error}
    )
    assert [(s.path, s.trainable, s.local) for s in model.specs] == [
        ("items", True, False),
        ("scale", False, False),
        ("user", True, True),
    ]
    # The pair of its input_spec are the columns x and y.
    assert {name: s.dtype for name, s in model.example_spec.items()} == {
        "x": tf.int32,
        "y": tf.float32,
    }
    variables = model.split([tf.reshape(tf.range(8.0), [4, 2]), tf.constant(2.0), [1.0, 3.0]])
    batch = {"x": [2, 0], "y": [40.0, 0.0], EXAMPLE_WEIGHT: tf.ones([2])}
    result = model.loss(variables, batch, CLIENT, SEED, True)
    # Items [4, 5] and [0, 1], the user [1, 3], scale 2.
    np.testing.assert_array_equal(result.outputs["logits"], [2 * (4 + 15), 2 * (0 + 3)])
    np.testing.assert_array_equal(result.loss, ((38 - 40) ** 2 + 6**2) / 2)
    initial = model.initial_variables(0)
    np.testing.assert_array_equal(initial.local_weights.trainable[0], [1.0, -2.0])
    np.testing.assert_array_equal(initial.global_weights.trainable[0], np.full([4, 2], 0.5))


def test_dropout_layers_inside_are_kept_apart():
    kept = []

    def model_fn():
        kept.append(mlp(dropout=0.5))
        return keras_reconstruction(kept[0])

    reconstruction.from_reconstruction_model(model_fn)
    salts = [layer.salt for layer in kept[0].layers if isinstance(layer, layers.Dropout)]
    assert len(set(salts)) == 2


def test_refusals_when_taking():
    ready = keras_reconstruction()
    with pytest.raises(ValueError, match="hidden/kernel was there before"):
        reconstruction.from_reconstruction_model(lambda: ready)
    with pytest.raises(TypeError, match="found Functional"):
        reconstruction.from_reconstruction_model(mlp)

    def random():
        x = tf.keras.Input([6])
        h = tf.keras.layers.Dropout(0.5, name="bad")(x)
        return keras_reconstruction(tf.keras.Model(x, tf.keras.layers.Dense(3)(h)))

    with pytest.raises(ValueError, match=r"'bad'.*shared random generator"):
        reconstruction.from_reconstruction_model(random)

    class Nested(Factorization):
        input_spec = ((tf.TensorSpec([None]), tf.TensorSpec([None])), tf.TensorSpec([None]))

    with pytest.raises(ValueError, match="input_spec must be a mapping"):
        reconstruction.from_reconstruction_model(Nested)


def test_given_has_the_same_outputs_and_split():
    model = keras_model.from_keras(mlp, SPEC, local=["output"])
    given = reconstruction.to_reconstruction_model(model, seed=4)
    variables = model.initial_variables(4)
    for found, wanted in (
        (given.global_trainable_variables, variables.global_weights.trainable),
        (given.global_non_trainable_variables, variables.global_weights.non_trainable),
        (given.local_trainable_variables, variables.local_weights.trainable),
        (given.local_non_trainable_variables, variables.local_weights.non_trainable),
    ):
        np.testing.assert_equal([v.numpy() for v in found], [v.numpy() for v in wanted])
    batch = collections.OrderedDict(x=BATCH["x"], y=BATCH["y"])
    for training in (False, True):
        output = given.forward_pass(batch, training=training)
        expected = model.predict(variables, batch, CLIENT, SEED, training)["logits"]
        np.testing.assert_array_equal(output.predictions, expected)
    np.testing.assert_array_equal(output.labels, BATCH["y"])
    assert output.num_examples == 7


def test_given_sees_assignments_and_gives_gradients():
    model = keras_model.from_keras(mlp, SPEC, local=["output"])
    given = reconstruction.to_reconstruction_model(model, seed=4)
    bias = given.local_trainable_variables[1]
    with tf.GradientTape() as tape:
        before = given.forward_pass(BATCH).predictions
    # d(sum of logits) / d(bias of the last layer) is the number of examples.
    np.testing.assert_array_equal(tape.gradient(before, bias), [7.0, 7.0, 7.0])
    bias.assign_add([1.0, 2.0, 3.0])
    after = given.forward_pass(BATCH).predictions
    np.testing.assert_allclose(after - before, np.tile([1.0, 2.0, 3.0], [7, 1]), atol=1e-6)


def test_given_trains_with_fed_recon(worker):
    """TFF's federated reconstruction takes it: SGD on one batch, against Keras."""
    model = keras_model.from_keras(mlp, SPEC, local=["output"])
    process = tff.learning.algorithms.build_fed_recon(
        lambda: reconstruction.to_reconstruction_model(model, seed=4),
        loss_fn=lambda: tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        client_optimizer_fn=tff.learning.optimizers.build_sgdm(0.5),
        reconstruction_optimizer_fn=tff.learning.optimizers.build_sgdm(0.25),
        server_optimizer_fn=tff.learning.optimizers.build_sgdm(1.0),
        dataset_split_fn=tff.learning.models.ReconstructionModel.simple_dataset_split_fn,
    )
    batch = collections.OrderedDict(x=BATCH["x"].numpy(), y=BATCH["y"].numpy())
    output = process.next(process.initialize(), [[batch]])
    found = process.get_model_weights(output.state).trainable

    keras = mlp()
    keras.set_weights([v.numpy() for v in model.join(model.initial_variables(4))])
    for part, rate in ((keras.layers[-1:], 0.25), (keras.layers[:-1], 0.5)):
        weights = [w for layer in part for w in layer.trainable_weights]
        with tf.GradientTape() as tape:
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(
                BATCH["y"], keras(BATCH["x"], training=True)
            )
            loss = tf.reduce_mean(losses)
        for weight, gradient in zip(weights, tape.gradient(loss, weights), strict=True):
            weight.assign_sub(rate * gradient)
    for value, weight in zip(found, weights, strict=True):
        np.testing.assert_allclose(value, weight, atol=1e-5)
