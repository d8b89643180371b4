"""q-FFL: its rounds against the published formula, and its edges."""

import collections
import dataclasses

import numpy as np
import pytest
import tensorflow as tf

from tff_het import methods
from tff_het.backend.names import keras, tff
from tff_het.learning import measuring
from tff_het.learning.local_training import LocalTraining
from tff_het.models import architectures
from tff_het.models.model import ClientContext, Variables, Weights

RATE, BATCH, ROUNDS, CLASSES = 0.1, 4, 2, 3
# The first needs three batches for its loss, of which the last is short.
SIZES = (150, 9, 3)
ELEMENT = {"x": (np.dtype(np.float32), (6,)), "y": (np.dtype(np.int32), ())}
TRAINING = LocalTraining(
    tff.learning.optimizers.build_sgdm(RATE), batch_size=BATCH, epochs=1, shuffle=False
)


def make_examples(n: int) -> collections.OrderedDict:
    rng = np.random.default_rng(n)
    return collections.OrderedDict(
        x=rng.normal(size=(n, 6)).astype(np.float32), y=rng.integers(0, CLASSES, n).astype(np.int32)
    )


def network(x, num_classes, layers):
    hidden = keras.layers.Dense(8, activation="tanh", name="dense_1")(x)
    return hidden, keras.layers.Dense(num_classes, name="output")(hidden)


def with_normalization(x, num_classes, layers):
    hidden = keras.layers.BatchNormalization(momentum=0.5, name="norm")(x)
    return hidden, keras.layers.Dense(num_classes, name="output")(hidden)


def build(method: str = "q_ffl", training: LocalTraining = TRAINING, body=network, **options):
    architecture = architectures.make("small", ELEMENT, CLASSES, body)
    return methods.build(method, architecture, training, seed=3, **options)


def make_clients(process, state, sizes=SIZES, examples=make_examples):
    return [
        collections.OrderedDict(
            client=np.int32(index),
            seed=np.zeros(2, np.int32),
            examples=examples(n),
            state=process.init_state(index, 0, state),
        )
        for index, n in enumerate(sizes)
    ]


def rounds_of(process, sizes=SIZES):
    """The server's trainable weights after each round."""
    state = process.initialize()
    for _ in range(ROUNDS):
        state = process.next(state, make_clients(process, state, sizes)).state
        yield state.weights.trainable


def transcription(start: list[np.ndarray], q: float, rate: float = RATE):
    """Li et al. (2020), Algorithm 2, as it is printed."""
    lipschitz = 1 / rate
    w_t = [np.float64(w) for w in start]

    def loss(weights, x, y):
        first, first_bias, second, second_bias = weights
        logits = tf.tanh(x @ first + first_bias) @ second + second_bias
        return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(y, logits))

    for _ in range(ROUNDS):
        deltas, hs = [], []
        for n in SIZES:
            x, y = np.float64(make_examples(n)["x"]), make_examples(n)["y"]
            w_k = [tf.constant(w) for w in w_t]
            for begin in range(0, n, BATCH):
                rows = slice(begin, begin + BATCH)
                with tf.GradientTape() as tape:
                    tape.watch(w_k)
                    value = loss(w_k, x[rows], y[rows])
                w_k = [w - rate * g for w, g in zip(w_k, tape.gradient(value, w_k), strict=True)]
            f_k = float(loss(w_t, x, y))
            delta_w = [lipschitz * (w - own.numpy()) for w, own in zip(w_t, w_k, strict=True)]
            norm_squared = sum(np.sum(d**2) for d in delta_w)
            deltas.append([f_k**q * d for d in delta_w])
            hs.append(q * f_k ** (q - 1) * norm_squared + lipschitz * f_k**q)
        w_t = [w - sum(d) / sum(hs) for w, *d in zip(w_t, *deltas, strict=True)]
        yield w_t


@pytest.mark.parametrize("q", [0.5, pytest.param(5.0, marks=pytest.mark.slow)])
def test_rounds_are_those_of_the_paper(q):
    process = build(q=q)
    initial = process.initialize().weights.trainable
    for found, wanted in zip(rounds_of(process), transcription(initial, q), strict=True):
        for one, other in zip(found, wanted, strict=True):
            np.testing.assert_allclose(one, other, rtol=0, atol=1e-6)


def test_the_rate_is_that_of_the_round():
    """A schedule has a say in L, which matters where q is not small."""
    process = build(
        training=dataclasses.replace(TRAINING, learning_rate=lambda round_num: 0.3), q=1.0
    )
    initial = process.initialize().weights.trainable
    *_, found = rounds_of(process)
    *_, wanted = transcription(initial, 1.0, rate=0.3)
    *_, other = transcription(initial, 1.0)
    np.testing.assert_allclose(found[0], wanted[0], rtol=0, atol=1e-6)
    assert not np.allclose(found[0], other[0], atol=1e-3)


@pytest.mark.slow
def test_q_of_0_is_fed_avg_without_weights():
    unweighted = build("fed_avg", aggregator=tff.aggregators.UnweightedMeanFactory())
    for found, wanted, weighted in zip(
        rounds_of(build(q=0.0)), rounds_of(unweighted), rounds_of(build("fed_avg")), strict=True
    ):
        for one, other in zip(found, wanted, strict=True):
            np.testing.assert_allclose(one, other, rtol=0, atol=1e-6)
        assert not np.allclose(found[0], weighted[0], atol=1e-3)


@pytest.mark.parametrize("q", [0.5, pytest.param(0.0, marks=pytest.mark.slow)])
def test_a_client_without_loss_changes_nothing_it_should_not(q):
    """Where all examples are predicted with certainty the loss is 0, and so is the step."""
    process = build(q=q)
    start = process.initialize()
    certain = [np.zeros_like(w) for w in start.weights.trainable]
    certain[-1][0] = 1e4
    state = process.with_weights(start, Weights(certain, []))

    def of_class_0(n):
        return make_examples(n) | {"y": np.zeros(n, np.int32)}

    output = process.next(state, make_clients(process, state, examples=of_class_0))
    for found, wanted in zip(output.state.weights.trainable, certain, strict=True):
        np.testing.assert_array_equal(found, wanted)


def test_moving_statistics_are_averaged_with_the_same_weights():
    process = build(body=with_normalization, q=1.0)
    start = process.initialize()
    clients = make_clients(process, start)
    sent = process.client_update(process.download(start), clients)
    after = process.next(start, clients).state
    weights = [float(one["weight"]) for one in sent]
    assert max(weights) > 1.1 * min(weights)
    for place, (old, new) in enumerate(
        zip(start.weights.non_trainable, after.weights.non_trainable, strict=True)
    ):
        changes = [one["update"].non_trainable[place] for one in sent]
        np.testing.assert_allclose(new - old, np.average(changes, 0, weights), atol=1e-6)
        assert not np.allclose(new, old)


@pytest.mark.parametrize("n", [0, 1, 63, 64, 65, 150])
def test_the_loss_is_that_of_all_examples(n):
    model = architectures.make("small", ELEMENT, CLASSES, network).model(local=())
    variables, examples = model.initial_variables(0), make_examples(n)
    client = ClientContext(*(tf.constant(v) for v in (0, n, 0)))
    found = measuring.mean_loss(model, variables, examples, client, tf.constant([0, 0]))
    w = variables.global_weights.trainable
    logits = np.tanh(examples["x"] @ w[0] + w[1]) @ w[2] + w[3]
    each = tf.nn.sparse_softmax_cross_entropy_with_logits(examples["y"], logits)
    np.testing.assert_allclose(found, np.mean(each) if n else 0.0, rtol=1e-5)
    assert isinstance(variables, Variables)


class WithoutRate(tff.learning.optimizers.Optimizer):
    """Steps of length 1."""

    def initialize(self, specs):
        return collections.OrderedDict()

    def next(self, state, weights, gradients):
        return state, [w - g for w, g in zip(weights, gradients, strict=True)]

    def get_hparams(self, state):
        return collections.OrderedDict()


def test_what_is_refused():
    for q in (-0.1, float("nan"), float("inf")):
        with pytest.raises(ValueError, match=f"q_ffl.q: expected a number from 0 .* found {q}"):
            build(q=q)
    training = LocalTraining(WithoutRate(), batch_size=BATCH, epochs=1)
    with pytest.raises(ValueError, match=r"with a learning rate is needed .* WithoutRate has none"):
        build(training=training)
