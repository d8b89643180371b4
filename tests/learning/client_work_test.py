"""Local SGD against loops written out with Keras models and NumPy."""

import collections
import dataclasses
import functools
from collections.abc import Callable

import numpy as np
import pytest
import tensorflow as tf

from tff_het.backend.names import keras, tff
from tff_het.learning.client_work import ClientState, Download
from tff_het.learning.local_training import LocalTraining
from tff_het.learning.server_step import apply_update
from tff_het.learning.steps import fit
from tff_het.learning.works import local_sgd
from tff_het.models import keras_model
from tff_het.models.layers import Dropout
from tff_het.models.model import EXAMPLE_WEIGHT, ClientContext, Variables

optimizers = tff.learning.optimizers

SPEC = collections.OrderedDict(
    x=tf.TensorSpec([None, 6], tf.float32), y=tf.TensorSpec([None], tf.int32)
)
SEED = tf.constant([3, 4])


def mlp(dropout: float = 0.0) -> keras.Model:
    x = keras.Input([6], name="x")
    h = keras.layers.Dense(5, name="hidden", activation="tanh")(x)
    if dropout:
        h = Dropout(dropout)(h)
    return keras.Model(x, keras.layers.Dense(3, name="output")(h))


def make_examples(n: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(n)
    return {
        "x": rng.normal(size=(n, 6)).astype(np.float32),
        "y": rng.integers(0, 3, n).astype(np.int32),
    }


SGD = optimizers.build_sgdm(0.1)


def settings(optimizer=SGD, **kwargs) -> LocalTraining:
    defaults = {"batch_size": 4, "shuffle": False}
    return LocalTraining(optimizer, **(defaults | kwargs))


_traced = {}  # For each model and its settings once: tests share them.


def run(model, training, variables, examples, *, round_num=0, seed=SEED):
    """Our own, on the client with index 2."""

    def train(variables, examples, seed, round_num):
        context = ClientContext(tf.constant(2), tf.shape(examples["y"])[0], tf.constant(0))
        return fit(model, training, variables, examples, context, seed, round_num)

    traced = _traced.setdefault((id(model), training), tf.function(train))
    columns = {
        name: tf.TensorSpec([None, *column.shape[1:]], column.dtype)
        for name, column in examples.items()
    }
    return traced.get_concrete_function(
        tf.nest.map_structure(tf.TensorSpec.from_tensor, variables),
        columns,
        tf.TensorSpec([2], tf.int32),
        tf.TensorSpec([], tf.int32),
    )(
        tf.nest.map_structure(tf.convert_to_tensor, variables),
        tf.nest.map_structure(tf.constant, examples),
        tf.constant(seed),
        tf.constant(round_num),
    )


def batches(examples, batch_size: int = 4):
    """The batches of one pass in order, the last one short."""
    for start in range(0, len(examples["y"]), batch_size):
        yield tuple(examples[name][start : start + batch_size] for name in ("x", "y"))


def keras_twin(model, variables) -> keras.Model:
    network = mlp()
    network.set_weights([v.numpy() for v in model.join(variables)])
    return network


def keras_gradients(network, x, y) -> tuple[list[np.ndarray], np.ndarray, np.ndarray]:
    """Gradients of the mean loss, each example's loss, and whether it was right."""
    with tf.GradientTape() as tape:
        logits = network(x, training=True)
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(y, logits)
        loss = tf.reduce_mean(losses)
    gradients = [g.numpy() for g in tape.gradient(loss, network.trainable_weights)]
    return gradients, losses.numpy(), np.argmax(logits, axis=1) == y


def train_keras(
    model,
    variables,
    batches,
    *,
    rate: float = 0.1,
    momentum: float = 0.0,
    change: Callable[[list[np.ndarray], list[np.ndarray]], list[np.ndarray]] = lambda g, w: g,
) -> list[np.ndarray]:
    """SGD in NumPy on gradients of Keras, as `change`d: (gradients, weights) -> gradients."""
    network = keras_twin(model, variables)
    velocity = [np.zeros(w.shape) for w in network.get_weights()]
    for x, y in batches:
        weights = network.get_weights()
        gradients = change(keras_gradients(network, x, y)[0], weights)
        velocity = [momentum * v + g for v, g in zip(velocity, gradients, strict=True)]
        network.set_weights([w - rate * v for w, v in zip(weights, velocity, strict=True)])
    return network.get_weights()


def assert_close(model, variables, expected: list[np.ndarray]) -> None:
    for found, wanted in zip(model.join(variables), expected, strict=True):
        np.testing.assert_allclose(found, wanted, atol=1e-5)


@pytest.fixture(scope="module")
def model():
    return keras_model.from_keras(mlp, SPEC, local=["output"])


@pytest.fixture(scope="module")
def start(model):
    return model.initial_variables(1)


@pytest.mark.parametrize("n", [8, 9, 3])
def test_epochs(model, start, n):
    """9 examples: a last batch of one; 3: fewer than a batch."""
    examples = make_examples(n)
    after, _ = run(model, settings(epochs=3), start, examples)
    assert_close(model, after, train_keras(model, start, list(batches(examples)) * 3))


def test_steps(model, start):
    examples = make_examples(9)
    passes = list(batches(examples)) * 3
    for steps in (2, 7):  # Within a pass, and beyond it.
        after, _ = run(model, settings(steps=steps), start, examples)
        assert_close(model, after, train_keras(model, start, passes[:steps]))
    after, _ = run(model, settings(steps=7, at_most_one_pass=True), start, examples)
    assert_close(model, after, train_keras(model, start, passes[:3]))


def test_one_epoch_equals_its_number_of_steps(model, start):
    examples = make_examples(9)
    by_epochs = run(model, settings(epochs=2, shuffle=True), start, examples)
    by_steps = run(model, settings(steps=6, shuffle=True), start, examples)
    tf.nest.map_structure(np.testing.assert_array_equal, by_epochs, by_steps)


def test_no_examples(model, start):
    after, metrics = run(model, settings(epochs=2), start, make_examples(0))
    tf.nest.map_structure(np.testing.assert_array_equal, after, start)
    assert metrics["num_examples"] == 0
    assert metrics["loss"].total == metrics["loss"].count == 0.0


def test_metrics_are_measured_before_each_step(model, start):
    examples = make_examples(9)
    network, losses, right = keras_twin(model, start), [], []
    for x, y in list(batches(examples)) * 2:
        gradients, loss, correct = keras_gradients(network, x, y)
        losses.extend(loss)
        right.extend(correct)
        network.set_weights(
            [w - 0.1 * g for w, g in zip(network.get_weights(), gradients, strict=True)]
        )
    _, metrics = run(model, settings(epochs=2), start, examples)
    assert metrics["num_examples"] == 9
    for name, values in (("loss", losses), ("accuracy", right)):
        np.testing.assert_allclose(metrics[name].total, np.sum(values), rtol=1e-5)
        assert metrics[name].count == len(values) == 18


def test_momentum_starts_afresh(model, start):
    """The second training is like the first: nothing of its velocity is left."""
    examples = make_examples(9)
    training = settings(optimizers.build_sgdm(0.1, momentum=0.9), epochs=2)
    once, _ = run(model, training, start, examples)
    expected = train_keras(model, start, list(batches(examples)) * 2, momentum=0.9)
    assert_close(model, once, expected)
    twice, _ = run(model, training, once, examples)
    expected = train_keras(model, once, list(batches(examples)) * 2, momentum=0.9)
    assert_close(model, twice, expected)


def test_weight_decay(model, start):
    """w <- w - rate * (g + decay * w), on every trainable variable."""
    examples = make_examples(9)
    after, _ = run(model, settings(epochs=2, weight_decay=0.3), start, examples)
    expected = train_keras(
        model,
        start,
        list(batches(examples)) * 2,
        change=lambda gs, ws: [g + 0.3 * w for g, w in zip(gs, ws, strict=True)],
    )
    assert_close(model, after, expected)


def clip(limit: float, gradients: list[np.ndarray]) -> list[np.ndarray]:
    norm = np.sqrt(sum((g.astype(np.float64) ** 2).sum() for g in gradients))
    return [g * min(1.0, limit / norm) for g in gradients]


@pytest.mark.parametrize("limit", [0.05, 1000.0])
def test_clipping(model, start, limit):
    """One norm over all variables, local ones included; a large limit changes nothing."""
    examples = make_examples(9)
    after, _ = run(model, settings(epochs=2, clip_norm=limit), start, examples)
    expected = train_keras(
        model, start, list(batches(examples)) * 2, change=lambda gs, ws: clip(limit, gs)
    )
    assert_close(model, after, expected)
    untouched = train_keras(model, start, list(batches(examples)) * 2)
    assert np.allclose(untouched[0], expected[0], atol=1e-5) == (limit == 1000.0)


def test_decay_is_clipped_too(model, start):
    examples = make_examples(9)
    after, _ = run(model, settings(epochs=1, clip_norm=0.05, weight_decay=0.3), start, examples)
    expected = train_keras(
        model,
        start,
        batches(examples),
        change=lambda gs, ws: clip(0.05, [g + 0.3 * w for g, w in zip(gs, ws, strict=True)]),
    )
    assert_close(model, after, expected)


def halved(round_num):
    return 0.2 * tf.pow(0.5, tf.cast(round_num, tf.float32))


@functools.cache
def scheduled(momentum: float) -> LocalTraining:
    optimizer = optimizers.build_sgdm(7.0, momentum=momentum or None)
    return settings(optimizer, epochs=2, learning_rate=halved)


@pytest.mark.parametrize("momentum", [0.0, 0.9])
@pytest.mark.parametrize("round_num", [0, 3])
def test_learning_rate_of_the_round(model, start, momentum, round_num):
    examples = make_examples(9)
    after, _ = run(model, scheduled(momentum), start, examples, round_num=round_num)
    expected = train_keras(
        model,
        start,
        list(batches(examples)) * 2,
        rate=0.2 * 0.5**round_num,
        momentum=momentum,
    )
    assert_close(model, after, expected)


def test_adam(model, start):
    """Kingma and Ba (2015), Algorithm 1, with TFF's place of epsilon (beside the root of v)."""
    examples = make_examples(9)
    rate, beta_1, beta_2, epsilon = 0.05, 0.8, 0.9, 1e-3
    training = settings(optimizers.build_adam(rate, beta_1, beta_2, epsilon), epochs=2)
    after, _ = run(model, training, start, examples)

    network = keras_twin(model, start)
    m = [np.zeros(w.shape) for w in network.get_weights()]
    v = [np.zeros(w.shape) for w in network.get_weights()]
    for t, (x, y) in enumerate(list(batches(examples)) * 2, start=1):
        gradients, _, _ = keras_gradients(network, x, y)
        m = [beta_1 * a + (1 - beta_1) * g for a, g in zip(m, gradients, strict=True)]
        v = [beta_2 * a + (1 - beta_2) * g**2 for a, g in zip(v, gradients, strict=True)]
        scale = rate * np.sqrt(1 - beta_2**t) / (1 - beta_1**t)
        network.set_weights(
            [
                w - scale * a / (np.sqrt(b) + epsilon)
                for w, a, b in zip(network.get_weights(), m, v, strict=True)
            ]
        )
    assert_close(model, after, network.get_weights())


def test_shuffling_follows_the_seed(model, start):
    examples = make_examples(9)
    results = [
        run(model, settings(epochs=1, shuffle=True), start, examples, seed=tf.constant(seed))[0]
        for seed in ([1, 1], [1, 1], [1, 2])
    ]
    flat = [tf.nest.flatten(r) for r in results]
    for one, again in zip(flat[0], flat[1], strict=True):
        np.testing.assert_array_equal(one, again)
    assert not np.array_equal(flat[0][0], flat[2][0])


def test_each_step_has_a_seed_of_its_own():
    """Three steps on the same batch have three dropout masks, hence three losses."""
    dropped = keras_model.from_keras(lambda: mlp(dropout=0.5), SPEC)
    variables = dropped.initial_variables(1)
    examples = make_examples(4)
    batch = examples | {EXAMPLE_WEIGHT: tf.ones([4])}
    seeds = []

    def recording_loss(values, batch, client, seed, training):
        seeds.append(seed)
        return dropped.loss(values, batch, client, seed, training)

    # Eagerly the loop's body is called once a step.
    context = ClientContext(tf.constant(2), tf.constant(4), tf.constant(0))
    recorded = dataclasses.replace(dropped, loss=recording_loss)
    fit(recorded, settings(epochs=3), variables, examples, context, SEED, tf.constant(0))
    assert len({tuple(seed.numpy()) for seed in seeds}) == 3
    losses = {float(dropped.loss(variables, batch, context, s, True).loss) for s in seeds}
    assert len(losses) == 3


def test_augmentation_sees_each_batch_with_seeds_of_its_own(model, start):
    """An augmentation that scales by its seed's draw, against the same by hand."""
    examples = make_examples(8)
    fold_in = tf.random.experimental.stateless_fold_in

    def augment(x, seed):
        return x * tf.random.stateless_uniform([], seed)

    after, _ = run(model, settings(epochs=1, augment=augment), start, examples)
    step_seeds = [fold_in(fold_in(SEED, 1), step) for step in range(2)]
    factors = [tf.random.stateless_uniform([], fold_in(s, 1)).numpy() for s in step_seeds]
    assert factors[0] != factors[1]
    scaled = [(x * f, y) for (x, y), f in zip(batches(examples), factors, strict=True)]
    assert_close(model, after, train_keras(model, start, scaled))


def test_update_is_the_change_of_the_global_part(model, start):
    examples = make_examples(9)
    work = local_sgd(model, settings(epochs=2))
    context = ClientContext(tf.constant(2), tf.constant(9), tf.constant(5))
    state = ClientState(start.local_weights, (), tf.constant(5))
    result = work.train(
        Download(start.global_weights, tf.constant(0)), examples, context, SEED, state
    )
    expected = model.split(train_keras(model, start, list(batches(examples)) * 2))
    for found, new, old in zip(
        result.update.trainable,
        expected.global_weights.trainable,
        start.global_weights.trainable,
        strict=True,
    ):
        np.testing.assert_allclose(found, new - old, atol=1e-5)
    for found, new in zip(
        result.state.model.trainable, expected.local_weights.trainable, strict=True
    ):
        np.testing.assert_allclose(found, new, atol=1e-5)
    assert result.weight == 9.0
    assert result.update.non_trainable == []


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({}, "epochs=None, steps=None"),
        ({"epochs": 1, "steps": 1}, "epochs=1, steps=1"),
        ({"epochs": 0}, "epochs: expected a whole number from 1"),
        ({"steps": -1}, "steps: expected a whole number from 1"),
        ({"epochs": 1, "batch_size": 0}, "batch_size: expected a whole number"),
        ({"epochs": 1, "clip_norm": 0.0}, "clip_norm: expected a number above 0"),
        ({"epochs": 1, "weight_decay": -0.1}, "weight_decay: expected a number from 0"),
        ({"epochs": 1, "at_most_one_pass": True}, "limits `steps`"),
    ],
)
def test_settings_that_make_no_sense(changes, message):
    with pytest.raises(ValueError, match=message):
        settings(**changes)


def test_a_round_too_short_for_a_step_against_the_adversary_is_refused():
    chosen = dataclasses.replace(settings(epochs=2, batch_size=4), opponent_steps=5)
    assert chosen.within(12).opponent_steps == 5
    with pytest.raises(ValueError, match="the largest client's round has 4"):
        chosen.within(8)


def test_keras_optimizers_are_refused():
    with pytest.raises(TypeError, match=r"tff.learning.optimizers .* found SGD"):
        settings(keras.optimizers.SGD(0.1), epochs=1)
    with pytest.raises(TypeError, match=r"tff.learning.optimizers .* found SGD"):
        apply_update(None, keras.optimizers.SGD(0.1))


def test_gradients_of_unused_variables_are_zero():
    """A variable that a loss does not reach stays as it is."""

    def build():
        x = keras.Input([6], name="x")
        unused = keras.layers.Dense(2, name="unused")(x)
        return keras.Model(x, {"logits": keras.layers.Dense(3, name="output")(x), "extra": unused})

    model = keras_model.from_keras(build, SPEC)
    start = model.initial_variables(0)
    after: Variables = run(model, settings(epochs=1), start, make_examples(8))[0]
    for spec, old, new in zip(model.specs, model.join(start), model.join(after), strict=True):
        assert np.array_equal(old, new) == spec.path.startswith("unused"), spec.path
