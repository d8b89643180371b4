"""Keras models as pure functions give what Keras itself gives, and only what can be kept apart."""

import collections
import functools

import numpy as np
import pytest
import tensorflow as tf

from tff_het.backend.names import keras
from tff_het.models import keras_model, layers
from tff_het.models.model import EXAMPLE_WEIGHT, ClientContext, Variables, Weights

CLIENT = ClientContext(tf.constant(0), tf.constant(7), tf.constant(0))
SEED = tf.constant([3, 4])
SPEC = collections.OrderedDict(
    x=tf.TensorSpec([None, 6], tf.float32), y=tf.TensorSpec([None], tf.int32)
)


def dense(units: int, name: str, **kwargs):
    return keras.layers.Dense(units, name=name, **kwargs)


def mlp() -> keras.Model:
    x = keras.Input([6], name="x")
    return keras.Model(x, dense(3, "output")(dense(5, "hidden", activation="tanh")(x)))


def regularised() -> keras.Model:
    x = keras.Input([6], name="x")
    h = dense(5, "hidden", kernel_regularizer=keras.regularizers.L2(0.1), activation="relu")(x)
    model = keras.Model(x, dense(3, "output")(h))
    model.add_loss(0.01 * tf.reduce_mean(tf.square(h)))
    return model


def batch_norm() -> keras.Model:
    x = keras.Input([6], name="x")
    h = keras.layers.BatchNormalization(name="norm", momentum=0.7)(dense(5, "hidden")(x))
    return keras.Model(x, dense(3, "output")(h))


def convolution() -> keras.Model:
    x = keras.Input([6], name="x")
    h = keras.layers.Reshape([2, 3, 1])(x)
    h = keras.layers.Conv2D(4, 2, name="conv", padding="same")(h)
    h = keras.layers.BatchNormalization(name="norm")(h)  # The fused kernel, on rank 4.
    return keras.Model(x, dense(3, "output")(keras.layers.Flatten()(h)))


def recurrent() -> keras.Model:
    x = keras.Input([6], name="x")
    ids = keras.layers.Lambda(lambda v: tf.cast(v > 0, tf.int32))(x)
    h = keras.layers.Embedding(2, 4, name="embedding")(ids)
    return keras.Model(x, dense(3, "output")(keras.layers.LSTM(5, name="lstm")(h)))


BUILDERS = {f.__name__: f for f in (mlp, regularised, batch_norm, convolution, recurrent)}


def make_batch(n: int = 7, seed: int = 0) -> dict[str, tf.Tensor]:
    rng = np.random.default_rng(seed)
    return {
        "x": tf.constant(rng.normal(size=(n, 6)), tf.float32),
        "y": tf.constant(rng.integers(0, 3, n), tf.int32),
        EXAMPLE_WEIGHT: tf.ones([n]),
    }


def as_keras_weights(model, variables: Variables) -> list[np.ndarray]:
    return [np.asarray(v) for v in model.join(variables)]


def twin(build, model, variables: Variables) -> keras.Model:
    """Keras's own model with the same values."""
    network = build()
    network.set_weights(as_keras_weights(model, variables))
    return network


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("build", BUILDERS.values(), ids=BUILDERS)
def test_outputs_are_those_of_keras(build, training):
    model = keras_model.from_keras(build, SPEC)
    variables, batch = model.initial_variables(5), make_batch()
    expected = twin(build, model, variables)(batch["x"], training=training)
    outputs = model.predict(variables, batch, CLIENT, SEED, training)
    np.testing.assert_array_equal(outputs["logits"], expected)


@pytest.mark.parametrize("build", BUILDERS.values(), ids=BUILDERS)
def test_loss_gradients_and_moving_statistics_are_those_of_keras(build):
    model = keras_model.from_keras(build, SPEC)
    variables, batch = model.initial_variables(5), make_batch()
    network = twin(build, model, variables)

    with tf.GradientTape() as tape:
        logits = network(batch["x"], training=True)
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(batch["y"], logits)
        expected = tf.reduce_sum(losses) / 7.0 + sum(network.losses, tf.zeros([]))
    expected_gradients = tape.gradient(expected, network.trainable_weights)

    trainable = variables.global_weights.trainable
    with tf.GradientTape() as tape:
        tape.watch(trainable)
        result = model.loss(variables, batch, CLIENT, SEED, True)
    gradients = tape.gradient(result.loss, trainable)

    np.testing.assert_array_equal(result.loss, expected)
    for found, wanted in zip(gradients, expected_gradients, strict=True):
        np.testing.assert_array_equal(tf.convert_to_tensor(found), tf.convert_to_tensor(wanted))
    # Keras has moved its statistics in place.
    for found, wanted in zip(
        as_keras_weights(model, result.variables), network.get_weights(), strict=True
    ):
        np.testing.assert_array_equal(found, wanted)


def test_moving_statistics_move_in_training_only():
    model = keras_model.from_keras(batch_norm, SPEC)
    variables, batch = model.initial_variables(5), make_batch()
    before = [v.numpy() for v in variables.global_weights.non_trainable]
    trained = model.loss(variables, batch, CLIENT, SEED, True).variables
    evaluated = model.loss(variables, batch, CLIENT, SEED, False).variables
    assert len(before) == 2  # Moving mean and variance.
    for old, moved, same in zip(
        before,
        trained.global_weights.non_trainable,
        evaluated.global_weights.non_trainable,
        strict=True,
    ):
        assert not np.array_equal(old, moved)
        np.testing.assert_array_equal(old, same)


def test_graphs_do_not_hold_on_to_values():
    """One traced function serves any variables: Keras keeps nothing of an earlier call."""
    model = keras_model.from_keras(recurrent, SPEC)
    batch = make_batch()
    predict = tf.function(lambda v: model.predict(v, batch, CLIENT, SEED, False)["logits"])
    for seed in (1, 2):
        variables = model.initial_variables(seed)
        expected = twin(recurrent, model, variables)(batch["x"])
        np.testing.assert_allclose(predict(variables), expected, atol=1e-6)


def test_weights_of_examples():
    """The loss is the mean of those that count; none of them: 0, not NaN."""
    model = keras_model.from_keras(mlp, SPEC)
    variables, batch = model.initial_variables(5), make_batch()
    weight = np.array([1, 1, 0, 1, 0, 0, 0], np.float32)
    logits = twin(mlp, model, variables)(batch["x"]).numpy().astype(np.float64)
    log_p = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
    losses = -log_p[np.arange(7), batch["y"].numpy()]
    found = model.loss(variables, batch | {EXAMPLE_WEIGHT: weight}, CLIENT, SEED, True).loss
    np.testing.assert_allclose(found, losses[weight == 1].mean(), rtol=1e-6)
    nothing = batch | {EXAMPLE_WEIGHT: tf.zeros([7])}
    assert model.loss(variables, nothing, CLIENT, SEED, True).loss == 0.0


def test_several_inputs_and_outputs_by_name():
    def build():
        a, b = keras.Input([2], name="a"), keras.Input([2], name="b")
        total = keras.layers.Add()([a, b])
        return keras.Model([a, b], {"logits": dense(3, "output")(total), "sum": total})

    spec = {"a": tf.TensorSpec([None, 2]), "b": tf.TensorSpec([None, 2])}
    model = keras_model.from_keras(build, spec)
    a, b = tf.constant([[1.0, 2.0]]), tf.constant([[10.0, 20.0]])
    outputs = model.predict(
        model.initial_variables(0), {"b": b, "a": a, "y": [0]}, CLIENT, SEED, False
    )
    np.testing.assert_array_equal(outputs["sum"], [[11.0, 22.0]])
    assert outputs["logits"].shape == (1, 3)
    with pytest.raises(ValueError, match="no column b; they have: a, y"):
        model.predict(model.initial_variables(0), {"a": a, "y": [0]}, CLIENT, SEED, False)


def test_one_input_reads_the_column_of_its_name_or_else_x():
    def build(name):
        a = keras.Input([2], name=name)
        return keras.Model(a, {"logits": dense(3, "output")(a), "same": a + 0.0})

    columns = {"a": tf.constant([[1.0, 2.0]]), "x": tf.constant([[3.0, 4.0]])}
    for name, column in (("a", "a"), ("other", "x")):
        spec = {column: tf.TensorSpec([None, 2])}
        model = keras_model.from_keras(lambda name=name: build(name), spec)
        outputs = model.predict(model.initial_variables(0), columns, CLIENT, SEED, False)
        np.testing.assert_array_equal(outputs["same"], columns[column])


# --- Which variables are local ----------------------------------------------------------------


def test_all_global_by_default():
    model = keras_model.from_keras(mlp, SPEC)
    assert not any(s.local for s in model.specs)
    # Keras: 6 x 5 + 5 of the hidden layer, 5 x 3 + 3 of the output.
    assert model.num_parameters == model.num_global_parameters == (6 * 5 + 5) + (5 * 3 + 3)


def test_local_by_layer_names():
    model = keras_model.from_keras(batch_norm, SPEC, local=["norm"])
    assert {s.path for s in model.specs if s.local} == {
        "norm/gamma",
        "norm/beta",
        "norm/moving_mean",
        "norm/moving_variance",
    }
    assert {s.path for s in model.specs if not s.trainable} == {
        "norm/moving_mean",
        "norm/moving_variance",
    }
    assert model.num_parameters - model.num_global_parameters == 4 * 5


def test_local_by_predicate_takes_part_of_a_layer():
    model = keras_model.from_keras(mlp, SPEC, local=lambda path: path.endswith("bias"))
    assert [s.path for s in model.specs if s.local] == ["hidden/bias", "output/bias"]
    variables = model.initial_variables(0)
    assert [v.shape for v in variables.local_weights.trainable] == [(5,), (3,)]
    assert [v.shape for v in variables.global_weights.trainable] == [(6, 5), (5, 3)]


def test_outputs_do_not_depend_on_what_is_local():
    batch = make_batch()
    outputs = []
    for local in ((), ["hidden"], ["output"], lambda path: "bias" in path):
        model = keras_model.from_keras(mlp, SPEC, local=local)
        outputs.append(model.predict(model.initial_variables(5), batch, CLIENT, SEED, False))
    for other in outputs[1:]:
        np.testing.assert_array_equal(other["logits"], outputs[0]["logits"])


def test_split_and_join_are_inverse():
    model = keras_model.from_keras(
        batch_norm, SPEC, local=lambda path: path in ("norm/moving_mean", "hidden/kernel")
    )
    values = list(range(len(model.specs)))
    split = model.split(values)
    assert model.join(split) == values
    by_path = {spec.path: place for place, spec in enumerate(model.specs)}
    assert split.local_weights == Weights([by_path["hidden/kernel"]], [by_path["norm/moving_mean"]])


def test_split_and_join_refuse_other_numbers_of_values():
    model = keras_model.from_keras(mlp, SPEC, local=["output"])
    with pytest.raises(ValueError, match="4 variables, found 3"):
        model.split([1, 2, 3])
    good = model.split([1, 2, 3, 4])
    for trainable in ([1], [1, 2, 3]):
        with pytest.raises(
            ValueError, match=f"2 local trainable variables, found {len(trainable)}"
        ):
            model.join(good._replace(local_weights=Weights(trainable, [])))


# --- Refusals ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("local", "message"),
    [
        (["head"], "'head'; the model has: hidden, output"),
        ("output", r"write \['output'\]"),
        (lambda path: path == "head", "matches no variable .* hidden/kernel, hidden/bias"),
    ],
)
def test_local_that_is_not_there(local, message):
    with pytest.raises(ValueError, match=message):
        keras_model.from_keras(mlp, SPEC, local=local)


def around(layer_fn, shape=(6,)):
    def build():
        x = keras.Input(shape, name="x")
        h = keras.layers.Flatten()(layer_fn()(x))
        return keras.Model(x, dense(3, "output")(h))

    return build


@pytest.mark.parametrize(
    "layer_fn",
    [
        lambda: keras.layers.Dropout(0.5, name="bad"),
        lambda: keras.layers.GaussianNoise(0.5, name="bad"),
        lambda: keras.layers.GaussianDropout(0.5, name="bad"),
        lambda: keras.layers.AlphaDropout(0.5, name="bad"),
        lambda: keras.Sequential([keras.layers.Dropout(0.5, name="bad")]),
    ],
    ids=["dropout", "noise", "gaussian", "alpha", "nested"],
)
def test_layers_with_keras_random_numbers(layer_fn):
    with pytest.raises(ValueError, match=r"'bad'.*shared random generator"):
        keras_model.from_keras(around(layer_fn), SPEC)


@pytest.mark.parametrize(
    ("layer_fn", "shape"),
    [
        (lambda: keras.layers.SpatialDropout1D(0.5), (4, 3)),
        (lambda: keras.layers.LSTM(2, dropout=0.5), (4, 3)),
        (lambda: keras.layers.GRU(2, recurrent_dropout=0.5), (4, 3)),
        (lambda: keras.layers.ConvLSTM1D(2, 2, dropout=0.5), (4, 6, 3)),
        (lambda: keras.layers.RandomFlip(), (6, 6, 3)),
        (lambda: keras.layers.RandomContrast(0.3), (6, 6, 3)),
    ],
    ids=["spatial", "lstm", "gru", "conv_lstm", "flip", "contrast"],
)
def test_other_layers_with_keras_random_numbers(layer_fn, shape):
    with pytest.raises(ValueError, match="shared random generator"):
        keras_model.from_keras(around(layer_fn, shape), SPEC)


@pytest.mark.parametrize(
    "layer_fn", [lambda: keras.layers.Dropout(0.0), lambda: keras.layers.GaussianNoise(0.0)]
)
def test_random_layers_that_draw_nothing_are_fine(layer_fn):
    assert len(keras_model.from_keras(around(layer_fn), SPEC).specs) == 2


class Counting(keras.layers.Layer):
    """Counts its calls in an integer variable."""

    def build(self, input_shape):
        self.count = self.add_weight("count", [], tf.int32, "zeros", trainable=False)

    def call(self, inputs):
        return inputs


def test_integer_variables():
    with pytest.raises(ValueError, match="counting/count is int32: only floating point"):
        keras_model.from_keras(around(lambda: Counting(name="counting")), SPEC)


def test_models_that_were_there_before():
    """Their variables would be constants: training would go nowhere, silently."""
    ready = mlp()
    with pytest.raises(ValueError, match="hidden/kernel was there before"):
        keras_model.from_keras(lambda: ready, SPEC)


def test_assignment_outside_of_a_call():
    kept = []

    def build():
        kept.append(mlp())
        return kept[0]

    keras_model.from_keras(build, SPEC)
    with pytest.raises(RuntimeError, match="assigned to outside of a call"):
        kept[0].weights[0].assign(tf.zeros([6, 5]))


# --- Initial values ---------------------------------------------------------------------------


def initial_bytes(model, seed: int) -> list[bytes]:
    return [v.tobytes() for v in as_keras_weights(model, model.initial_variables(seed))]


def test_seeds_decide_the_initial_values():
    model = keras_model.from_keras(mlp, SPEC)
    assert initial_bytes(model, 1) == initial_bytes(model, 1)
    one, two = initial_bytes(model, 1), initial_bytes(model, 2)
    kernels = [place for place, s in enumerate(model.specs) if s.path.endswith("kernel")]
    assert len(kernels) == 2
    assert all(one[place] != two[place] for place in kernels)


def test_initial_values_depend_on_nothing_else():
    first = initial_bytes(keras_model.from_keras(mlp, SPEC), 1)
    tf.random.set_seed(99)
    np.random.seed(99)
    mlp()  # Numbers and draws of Keras go on.
    later = keras_model.from_keras(mlp, SPEC, local=["output"])
    later.initial_variables(7)
    assert initial_bytes(later, 1) == first


def test_paths_do_not_depend_on_what_was_built_before():
    def build():
        x = keras.Input([6])
        hidden = keras.layers.Dense(5)(x)
        return keras.Model(x, keras.layers.Dense(3)(hidden))

    first = [s.path for s in keras_model.from_keras(build, SPEC).specs]
    keras.layers.Dense(1)(keras.Input([1]))
    assert [s.path for s in keras_model.from_keras(build, SPEC).specs] == first
    assert first == ["dense/kernel", "dense/bias", "dense_1/kernel", "dense_1/bias"]


def test_layers_of_equal_shape_start_differently():
    model = keras_model.from_keras(
        around(lambda: keras.Sequential([dense(6, "a"), dense(6, "b")])), SPEC
    )
    values = dict(zip((s.path for s in model.specs), initial_bytes(model, 1), strict=True))
    assert values["a/kernel"] != values["b/kernel"]


def test_an_initialisers_own_seed_is_respected():
    initializer = functools.partial(keras.initializers.RandomNormal, seed=11)
    model = keras_model.from_keras(
        around(lambda: dense(4, "fixed", kernel_initializer=initializer())), SPEC
    )
    expected = initializer()([6, 4]).numpy()
    for seed in (1, 2):
        kernel = as_keras_weights(model, model.initial_variables(seed))[0]
        np.testing.assert_array_equal(kernel, expected)


def test_initial_values_have_the_initialisers_distribution():
    """Glorot uniform: limit sqrt(6 / (fan_in + fan_out)), variance limit^2 / 3."""
    model = keras_model.from_keras(around(lambda: dense(4000, "wide")), SPEC)
    kernel = as_keras_weights(model, model.initial_variables(1))[0]
    limit = np.sqrt(6 / (6 + 4000))
    assert np.abs(kernel).max() <= limit
    np.testing.assert_allclose(kernel.var(), limit**2 / 3, rtol=0.05)
    np.testing.assert_array_equal(
        as_keras_weights(model, model.initial_variables(1))[1], np.zeros(4000)
    )


# --- Dropout ----------------------------------------------------------------------------------


def two_dropouts() -> keras.Model:
    x = keras.Input([1000], name="x")
    a, b = layers.Dropout(0.3, name="a")(x), layers.Dropout(0.3, name="b")(x)
    return keras.Model(x, {"logits": dense(2, "output")(x), "a": a, "b": b})


@pytest.fixture(scope="module")
def dropped():
    """(seed, training) -> the two layers' outputs for ones [20, 1000]."""
    model = keras_model.from_keras(two_dropouts, {"x": tf.TensorSpec([None, 1000])})
    variables = model.initial_variables(0)

    def call(seed, training=True):
        batch = {"x": tf.ones([20, 1000])}
        outputs = model.predict(variables, batch, CLIENT, tf.constant(seed), training)
        return outputs["a"].numpy(), outputs["b"].numpy()

    return call


def test_dropout_follows_the_seed(dropped):
    np.testing.assert_array_equal(dropped([1, 2]), dropped([1, 2]))
    assert not np.array_equal(dropped([1, 2])[0], dropped([1, 3])[0])


def test_dropout_ignores_global_random_state(dropped):
    before = dropped([1, 2])
    tf.random.set_seed(5)
    tf.random.uniform([3])
    np.testing.assert_array_equal(dropped([1, 2]), before)


def test_dropout_layers_and_rows_differ(dropped):
    a, b = dropped([1, 2])
    assert not np.array_equal(a, b)
    assert not np.array_equal(a[0], a[1])


def test_dropout_keeps_its_share_and_scales_it(dropped):
    for output in dropped([1, 2]):
        kept = output != 0
        # Binomial: 20,000 draws at 0.7, five standard deviations.
        assert abs(kept.mean() - 0.7) < 5 * np.sqrt(0.7 * 0.3 / 20_000)
        np.testing.assert_allclose(output[kept], 1 / 0.7, rtol=1e-6)


def test_dropout_is_off_outside_of_training(dropped):
    for output in dropped([1, 2], training=False):
        np.testing.assert_array_equal(output, np.ones([20, 1000]))


@pytest.mark.parametrize("rate", [-0.1, 1.0])
def test_dropout_rates(rate):
    with pytest.raises(ValueError, match=rf"\[0, 1\), found {rate}"):
        layers.Dropout(rate)


def test_dropout_by_hand():
    with pytest.raises(RuntimeError, match="'by_hand' needs the client and seed"):
        layers.Dropout(0.5, name="by_hand")(tf.ones([2, 2]), training=True)


@pytest.mark.parametrize("build", [mlp, convolution, recurrent])
def test_models_built_in_graphs_of_tensorflow_1_do_not_spoil_ours(build):
    model = keras_model.from_keras(build, SPEC)
    variables = model.initial_variables(0)
    context = ClientContext(tf.constant(0), tf.constant(7), tf.constant(1))

    def predict():
        return model.predict(variables, make_batch(), context, tf.constant([0, 0]), False)

    expected = predict()["logits"].numpy()
    with tf.Graph().as_default():  # As TFF's `from_keras_model` in a computation.
        build()
    np.testing.assert_array_equal(predict()["logits"].numpy(), expected)


@pytest.mark.parametrize(
    ("initialization", "limit"), [("glorot", 6 / (30 + 50)), ("fan_in", 1 / 30)]
)
def test_initialization(initialization, limit):
    """Uniform within sqrt(limit); biases stay 0, and what is given to a layer stays as given."""

    def build():
        ones = keras.layers.Dense(2, kernel_initializer="ones")
        return keras.Sequential([keras.Input([30]), keras.layers.Dense(50), ones])

    spec = {"x": tf.TensorSpec([None, 30], tf.float32), "y": tf.TensorSpec([None], tf.int32)}
    model = keras_model.from_keras(build, spec, initialization=initialization)
    kernel, bias, given, _ = (
        v.numpy() for v in model.initial_variables(0).global_weights.trainable
    )
    assert 0.95 * np.sqrt(limit) < np.abs(kernel).max() <= np.sqrt(limit)
    np.testing.assert_allclose(kernel.var(), limit / 3, rtol=0.1)
    np.testing.assert_array_equal(bias, 0)
    np.testing.assert_array_equal(given, 1)
    with pytest.raises(ValueError, match="one of glorot, fan_in; found 'he'"):
        keras_model.from_keras(build, spec, initialization="he")
