"""The composer: TFF's own parts fit, metrics are of all examples, the user's functions count."""

import collections
from typing import NamedTuple

import numpy as np
import pytest
import tensorflow as tf

from tff_het import seeding
from tff_het.backend.names import keras, tff
from tff_het.evaluation import communication
from tff_het.learning.client_work import (
    ClientResult,
    ClientWork,
    Download,
    Mean,
    reads_round,
    starts_with_nothing,
)
from tff_het.learning.composer import compose
from tff_het.learning.local_training import LocalTraining
from tff_het.learning.process import FederatedProcess
from tff_het.learning.server_step import ServerStep, apply_update
from tff_het.learning.works import local_sgd
from tff_het.models import keras_model
from tff_het.models.model import Variables, Weights

pytestmark = pytest.mark.usefixtures("worker")

SPEC = collections.OrderedDict(
    x=tf.TensorSpec([None, 6], tf.float32), y=tf.TensorSpec([None], tf.int32)
)
TRAINING = LocalTraining(
    tff.learning.optimizers.build_sgdm(0.1), batch_size=4, epochs=1, shuffle=False
)


def mlp() -> keras.Model:
    x = keras.Input([6], name="x")
    h = keras.layers.Dense(5, name="hidden", activation="tanh")(x)
    return keras.Model(x, keras.layers.Dense(3, name="output")(h))


def batch_norm() -> keras.Model:
    x = keras.Input([6], name="x")
    h = keras.layers.BatchNormalization(name="norm", momentum=0.7)(x)
    return keras.Model(x, keras.layers.Dense(3, name="output")(h))


def make_examples(n: int, seed: int) -> collections.OrderedDict:
    rng = np.random.default_rng(seed)
    return collections.OrderedDict(
        x=rng.normal(seed, 1 + seed, size=(n, 6)).astype(np.float32),
        y=rng.integers(0, 3, n).astype(np.int32),
    )


def make_clients(process, state, sizes, round_num=0):
    return [
        collections.OrderedDict(
            client=np.int32(client),
            seed=seeding.stateless_seed(0, seeding.CLIENT_WORK, round_num, client),
            examples=make_examples(n, client),
            state=process.init_state(client, 0, state),
        )
        for client, n in enumerate(sizes)
    ]


def make_process(model, **parts):
    return compose(model, local_sgd(model, TRAINING), seed=1, **parts)


def one_round(process, sizes=(8, 5, 3)):
    """State before, state and metrics after, and what each client sent."""
    state = process.initialize()
    clients = make_clients(process, state, sizes)
    sent = process.client_update(process.download(state), clients)
    output = process.next(state, clients)
    return state, output, sent


@pytest.fixture(scope="module")
def model():
    return keras_model.from_keras(mlp, SPEC)


def expect_change(state, output, changes):
    for old, new, change in zip(
        state.weights.trainable, output.state.weights.trainable, changes, strict=True
    ):
        np.testing.assert_allclose(new, old + change, atol=1e-6)


def mean_update(sent, weights):
    weights = np.asarray(weights, np.float64) / np.sum(weights)
    updates = [result["update"].trainable for result in sent]
    return [
        sum(w * u for w, u in zip(weights, us, strict=True)) for us in zip(*updates, strict=True)
    ]


# --- Aggregators ------------------------------------------------------------------------------


def test_weighted_mean_is_the_default(model):
    state, output, sent = one_round(make_process(model))
    assert [result["weight"] for result in sent] == [8.0, 5.0, 3.0]
    expect_change(state, output, mean_update(sent, [8, 5, 3]))


def test_unweighted_mean(model):
    process = make_process(model, aggregator=tff.aggregators.UnweightedMeanFactory())
    state, output, sent = one_round(process)
    expect_change(state, output, mean_update(sent, [1, 1, 1]))


@pytest.mark.slow
def test_clipping(model):
    """Updates longer than the norm are scaled down to it, before the weighted mean."""
    factory = tff.aggregators.clipping_factory(0.05, tff.aggregators.MeanFactory())
    state, output, sent = one_round(make_process(model, aggregator=factory))
    norms = [
        np.sqrt(sum((u.astype(np.float64) ** 2).sum() for u in r["update"].trainable)) for r in sent
    ]
    assert min(norms) > 0.05
    clipped = [
        collections.OrderedDict(
            update=Weights([u * 0.05 / norm for u in r["update"].trainable], [])
        )
        for r, norm in zip(sent, norms, strict=True)
    ]
    expect_change(state, output, mean_update(clipped, [8, 5, 3]))


@pytest.mark.slow
def test_zeroing(model):
    """An update with a number beyond the threshold counts as 0, with its weight."""
    _, _, sent = one_round(make_process(model))
    largest = [max(np.abs(u).max() for u in r["update"].trainable) for r in sent]
    limit = float(np.mean(np.sort(largest)[-2:]))  # Between the largest update and the others.
    factory = tff.aggregators.zeroing_factory(limit, tff.aggregators.MeanFactory())
    state, output, sent = one_round(make_process(model, aggregator=factory))
    zeroed = [
        collections.OrderedDict(
            update=Weights([u * (top <= limit) for u in r["update"].trainable], [])
        )
        for r, top in zip(sent, largest, strict=True)
    ]
    expect_change(state, output, mean_update(zeroed, [8, 5, 3]))


@pytest.mark.slow
def test_robust_aggregator(model):
    """Its first limits are far above these updates, so it is the mean; its state moves."""
    process = make_process(model, aggregator=tff.learning.robust_aggregator())
    state, output, sent = one_round(process)
    expect_change(state, output, mean_update(sent, [8, 5, 3]))
    before, after = tf.nest.flatten(state.aggregator), tf.nest.flatten(output.state.aggregator)
    assert any(not np.array_equal(a, b) for a, b in zip(before, after, strict=True))


@pytest.mark.slow
def test_compression(model):
    """Lossy, yet near the mean. It leaves alone what has fewer than 20,000 numbers."""
    wide = keras_model.from_keras(
        lambda: keras.Sequential(
            [keras.Input([6]), keras.layers.Dense(4000), keras.layers.Dense(3)]
        ),
        SPEC,
    )
    process = make_process(wide, aggregator=tff.learning.compression_aggregator())
    state, output, sent = one_round(process)
    exact = np.concatenate([np.ravel(u) for u in mean_update(sent, [8, 5, 3])])
    found = np.concatenate(
        [
            np.ravel(new - old)
            for old, new in zip(
                state.weights.trainable, output.state.weights.trainable, strict=True
            )
        ]
    )
    error = np.linalg.norm(found - exact) / np.linalg.norm(exact)
    assert 0 < error < 0.1


@pytest.mark.slow
def test_differential_privacy_without_noise(model):
    """DP-FedAvg (McMahan et al. 2018): clipped sums over the expected number of clients."""
    factory = tff.aggregators.DifferentiallyPrivateFactory.gaussian_fixed(
        noise_multiplier=0.0, clients_per_round=3.0, clip=0.05
    )
    state, output, sent = one_round(make_process(model, aggregator=factory))
    clipped = []
    for result in sent:
        update = [u.astype(np.float64) for u in result["update"].trainable]
        norm = np.sqrt(sum((u**2).sum() for u in update))
        clipped.append([u * min(1, 0.05 / norm) for u in update])
    expect_change(state, output, [sum(us) / 3 for us in zip(*clipped, strict=True)])


@pytest.mark.slow
def test_differential_privacy_adds_noise(model):
    """Noise of standard deviation multiplier * clip / clients on each of the 53 numbers."""
    factory = tff.aggregators.DifferentiallyPrivateFactory.gaussian_fixed(
        noise_multiplier=100.0, clients_per_round=3.0, clip=0.05
    )
    state, output, _ = one_round(make_process(model, aggregator=factory))
    change = np.concatenate(
        [
            np.ravel(new - old)
            for old, new in zip(
                state.weights.trainable, output.state.weights.trainable, strict=True
            )
        ]
    )
    assert change.size == (6 * 5 + 5) + (5 * 3 + 3)
    expected = 100.0 * 0.05 / 3  # Against which the clipped updates, at most 0.05, are nothing.
    # The standard error of a standard deviation of n normals is sigma / sqrt(2 n); five of them.
    assert abs(change.std() - expected) < 5 * expected / np.sqrt(2 * change.size)


def test_aggregators_that_are_none():
    model = keras_model.from_keras(mlp, SPEC)
    with pytest.raises(TypeError, match=r"factory of tff.aggregators .* found function"):
        make_process(model, aggregator=tff.learning.robust_aggregator)


def test_rounds_without_examples_change_nothing(model):
    state, output, _ = one_round(make_process(model), sizes=(0, 0))
    expect_change(state, output, [0.0] * 4)
    assert output.state.round == 1
    assert output.metrics["train"] == {"loss": 0.0, "accuracy": 0.0, "num_examples": 0}


# --- Server steps -----------------------------------------------------------------------------


@pytest.mark.slow
def test_server_momentum(model):
    optimizer = tff.learning.optimizers.build_sgdm(0.5, momentum=0.9)
    process = make_process(model, server_step=apply_update(model, optimizer))
    state = process.initialize()
    velocity = [0.0] * 4
    for round_num in range(3):
        clients = make_clients(process, state, (8, 5, 3), round_num)
        sent = process.client_update(process.download(state), clients)
        output = process.next(state, clients)
        mean = mean_update(sent, [8, 5, 3])
        velocity = [0.9 * v + u for v, u in zip(velocity, mean, strict=True)]
        expect_change(state, output, [0.5 * v for v in velocity])
        state = output.state


def test_server_adam(model):
    """Reddi et al. (2021), FedAdam, with the bias correction of Kingma and Ba (2015)."""
    rate, beta_1, beta_2, epsilon = 0.02, 0.9, 0.99, 1e-3
    optimizer = tff.learning.optimizers.build_adam(rate, beta_1, beta_2, epsilon)
    process = make_process(model, server_step=apply_update(model, optimizer))
    state = process.initialize()
    m, v = [0.0] * 4, [0.0] * 4
    for t in (1, 2, 3):
        clients = make_clients(process, state, (8, 5, 3), t)
        sent = process.client_update(process.download(state), clients)
        output = process.next(state, clients)
        mean = mean_update(sent, [8, 5, 3])
        m = [beta_1 * a + (1 - beta_1) * u for a, u in zip(m, mean, strict=True)]
        v = [beta_2 * a + (1 - beta_2) * u**2 for a, u in zip(v, mean, strict=True)]
        scale = rate * np.sqrt(1 - beta_2**t) / (1 - beta_1**t)
        expect_change(
            state,
            output,
            [scale * a / (np.sqrt(b) + epsilon) for a, b in zip(m, v, strict=True)],
        )
        state = output.state


@pytest.mark.parametrize(
    "optimizer",
    [None, pytest.param(tff.learning.optimizers.build_adam(0.01), marks=pytest.mark.slow)],
)
def test_moving_statistics_become_the_mean_of_the_clients(optimizer):
    """Whatever the server's optimizer, each moves by its mean change; here by NumPy."""
    model = keras_model.from_keras(batch_norm, SPEC)
    process = make_process(model, server_step=apply_update(model, optimizer))
    sizes = (8, 4)  # Whole batches of 4.
    _, output, _ = one_round(process, sizes)
    moved_means, moved_variances = [], []
    for client, n in enumerate(sizes):
        x = make_examples(n, client)["x"]
        mean, variance = np.zeros(6), np.ones(6)  # As Keras initialises them.
        for batch in (x[i : i + 4] for i in range(0, n, 4)):
            mean = 0.7 * mean + 0.3 * batch.mean(axis=0)
            variance = 0.7 * variance + 0.3 * batch.var(axis=0)
        moved_means.append(mean)
        moved_variances.append(variance)
    found_mean, found_variance = output.state.weights.non_trainable
    np.testing.assert_allclose(
        found_mean, np.average(moved_means, axis=0, weights=sizes), atol=1e-5
    )
    np.testing.assert_allclose(
        found_variance, np.average(moved_variances, axis=0, weights=sizes), atol=1e-5
    )


# --- The parts together -----------------------------------------------------------------------


def test_metrics_are_means_over_all_examples(model):
    """A large client counts for more; two batches of one client for what they hold."""
    _, output, sent = one_round(make_process(model), (8, 5, 3))
    for name in ("loss", "accuracy"):
        totals = [result["metrics"][name] for result in sent]
        assert [t.count for t in totals] == [8.0, 5.0, 3.0]
        np.testing.assert_allclose(
            output.metrics["train"][name], sum(t.total for t in totals) / 16, rtol=1e-6
        )
    assert output.metrics["train"]["num_examples"] == 16


def test_users_losses_and_metrics_compare_tensors_by_value():
    """A metric written with `==` means in the process what it means in TensorFlow 2."""
    model = keras_model.from_keras(
        mlp,
        SPEC,
        metrics={"zeros": lambda batch, outputs: tf.cast(batch["y"] == 0, tf.float32)},
    )
    _, output, _ = one_round(make_process(model), (8, 5, 3))
    labels = np.concatenate([make_examples(n, c)["y"] for c, n in enumerate((8, 5, 3))])
    assert 0 < (labels == 0).mean() < 1
    np.testing.assert_allclose(output.metrics["train"]["zeros"], (labels == 0).mean(), rtol=1e-6)


def rounds_work(model) -> ClientWork:
    """Sends the round and what it keeps: how many examples it saw so far."""

    def train(download, examples, client, seed, state):
        seen = state.work + client.num_examples
        update = tf.nest.map_structure(tf.zeros_like, download.weights)
        return ClientResult(
            update=update,
            weight=tf.constant(1.0),
            metrics=collections.OrderedDict(
                round=Mean(tf.cast(download.round, tf.float32), tf.constant(1.0)),
                client=client.index,
                seen=seen,
                trained=client.rounds,
            ),
            state=state._replace(work=seen),
        )

    def init(client, seed, server_state):
        return starts_with_nothing(client, seed, server_state)._replace(work=np.int32(100))

    return ClientWork(train, init, reads_round)


def test_client_works_see_round_client_and_their_state(model):
    process = compose(model, rounds_work(model), seed=1)
    state = process.initialize()
    clients = make_clients(process, state, (8, 5, 3))
    for round_num in range(3):
        output = process.next(state, clients)
        train = output.metrics["train"]
        assert train["round"] == round_num
        assert train["client"] == 0 + 1 + 2
        assert train["seen"] == 3 * 100 + (round_num + 1) * (8 + 5 + 3)
        assert train["trained"] == 3 * round_num
        kept = {int(c["client"]): c["state"] for c in output.client_states}
        for client in clients:
            client["state"] = kept[int(client["client"])]
        state = output.state
    download = process.download(state)
    assert download.round == 3
    assert process.client_update(download, clients)[0]["metrics"]["round"].total == 3.0


def test_parts_where_nothing_travels():
    model = keras_model.from_keras(mlp, SPEC, local=lambda path: True)
    for parts in (
        {"aggregator": tff.aggregators.MeanFactory()},
        {"server_step": apply_update(model)},
    ):
        with pytest.raises(ValueError, match="nothing to aggregate"):
            make_process(model, **parts)


def test_initial_values_are_the_models(model):
    """Drawn inside of TFF's graph they are the same bits as outside."""
    state = make_process(model).initialize()
    for found, wanted in zip(
        state.weights.trainable, model.initial_variables(1).global_weights.trainable, strict=True
    ):
        np.testing.assert_array_equal(found, wanted)


# --- Weights from elsewhere, and predictions --------------------------------------------------


@pytest.fixture(scope="module")
def split_process():
    model = keras_model.from_keras(mlp, SPEC, local=["output"])
    return make_process(model)


def test_with_weights_round_trip(split_process):
    """Keras's list sets both sides, `Weights` the global one; training goes on from there."""
    network = mlp()
    state = split_process.initialize()
    loaded = split_process.with_weights(state, network.get_weights())
    again = Variables(loaded.weights, loaded.initial_local)
    for found, wanted in zip(split_process.model.join(again), network.get_weights(), strict=True):
        np.testing.assert_array_equal(found, wanted)
    from_variables = split_process.with_weights(state, again)
    tf.nest.map_structure(np.testing.assert_array_equal, from_variables, loaded)
    only_global = split_process.with_weights(state, loaded.weights)
    np.testing.assert_array_equal(only_global.weights.trainable[0], network.get_weights()[0])
    np.testing.assert_array_equal(
        only_global.initial_local.trainable[0], state.initial_local.trainable[0]
    )
    first = split_process.init_state(0, 0, loaded)
    np.testing.assert_array_equal(first.model.trainable[0], network.get_weights()[2])
    output = split_process.next(loaded, make_clients(split_process, loaded, (4,)))
    assert output.state.round == 1


def test_with_weights_refuses_other_shapes(split_process):
    state = split_process.initialize()
    weights = mlp().get_weights()
    with pytest.raises(ValueError, match="4 variables, found 3"):
        split_process.with_weights(state, weights[:3])
    with pytest.raises(ValueError, match=r"hidden/kernel has shape \(6, 5\), found \(5, 6\)"):
        split_process.with_weights(state, [weights[0].T, *weights[1:]])
    with pytest.raises(ValueError, match="2 global trainable variables, found 1"):
        split_process.with_weights(state, Weights(weights[:1], []))


@pytest.mark.parametrize("batch_size", [1000, 4, 1])
def test_predictions_are_those_of_keras(split_process, batch_size):
    network = mlp()
    state = split_process.with_weights(split_process.initialize(), network.get_weights())
    examples = make_examples(9, 1)
    outputs = split_process.predict(
        state.weights, split_process.init_state(0, 0, state), examples, batch_size=batch_size
    )
    np.testing.assert_allclose(outputs["logits"], network(examples["x"]), atol=1e-5)


def test_predictions_for_no_examples(split_process):
    state = split_process.initialize()
    outputs = split_process.predict(
        state.weights, split_process.init_state(0, 0, state), make_examples(0, 0)
    )
    assert outputs["logits"].shape == (0, 3)


# --- What clients read, and how many take part ---------------------------------------------------


class Sent(NamedTuple):
    change: Weights
    read: tf.Tensor


def reading_process(model) -> FederatedProcess:
    """Clients send back a number that the server keeps for its step; it counts participants."""

    def train(download, examples, client, seed, state):
        del examples, seed
        assert download.round == ()
        change = tf.nest.map_structure(tf.zeros_like, download.weights)
        return ClientResult(
            update=Sent(change, download.more),
            weight=tf.cast(tf.minimum(client.num_examples, 1), tf.float32),
            metrics=collections.OrderedDict(),
            state=state,
        )

    def step(state, weights, sent, participants):
        return sent.read + participants, weights, collections.OrderedDict(count=participants)

    work = ClientWork(train, reads=lambda state: Download(state.weights, (), state.server_step))
    server_step = ServerStep(lambda: tf.constant(7.0), step, counts_participants=True)
    return compose(model, work, server_step=server_step, seed=1)


def test_clients_read_the_server_step_and_those_with_examples_are_counted(model):
    process = reading_process(model)
    state, output, sent = one_round(process, (8, 0, 3))
    assert output.state.server_step == 7 + 2
    assert output.metrics["server_step"]["count"] == 2
    uploads = [
        collections.OrderedDict((k, result[k]) for k in ("update", "weight", "metrics"))
        for result in sent
    ]
    halves = process.server_update(state, uploads)["state"]
    tf.nest.map_structure(np.testing.assert_array_equal, output.state, halves)
    plain = communication.ledger(make_process(model))
    found = communication.ledger(process)
    assert found.bytes_down == plain.bytes_down + 4
    # Both numbers, the one that was read and the one that is counted; no metrics.
    assert found.bytes_up == plain.bytes_up - plain.metrics_bytes_up + 8
