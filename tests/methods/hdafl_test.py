"""HDAFL against Algorithm 1 of the paper, written out; without a local part it is FedAvg."""

import collections

import numpy as np
import tensorflow as tf

from tff_het import methods, seeding
from tff_het.backend.names import keras, tff
from tff_het.learning.local_training import LocalTraining
from tff_het.models import architectures

RATE, BATCH, EPOCHS = 0.2, 4, 2
ELEMENT = {"x": (np.dtype(np.float32), (6,)), "y": (np.dtype(np.int32), ())}
SIZES = {0: 8, 1: 9, 2: 3}


def network(x, num_classes, layers):
    hidden = keras.layers.Dense(5, activation="tanh", name="dense_1")(x)
    return hidden, keras.layers.Dense(num_classes, name="output")(hidden)


def build(method: str, *, shuffle: bool, **options):
    return methods.build(
        method,
        architectures.make("small", ELEMENT, 3, network),
        LocalTraining(
            tff.learning.optimizers.build_sgdm(RATE),
            batch_size=BATCH,
            epochs=EPOCHS,
            shuffle=shuffle,
        ),
        seed=1,
        **options,
    )


def make_examples(client: int) -> collections.OrderedDict:
    rng = np.random.default_rng(client)
    n = SIZES[client]
    return collections.OrderedDict(
        x=rng.normal(size=(n, 6)).astype(np.float32), y=rng.integers(0, 3, n).astype(np.int32)
    )


def run(process, state, cohorts):
    """Server state and all clients' states after each round."""
    kept = {}
    for round_num, cohort in enumerate(cohorts):
        clients = [
            collections.OrderedDict(
                client=np.int32(client),
                seed=seeding.stateless_seed(1, seeding.CLIENT_WORK, round_num, client),
                examples=make_examples(client),
                state=kept.get(client, process.init_state(client, 1, state)),
            )
            for client in cohort
        ]
        output = process.next(state, clients)
        state = output.state
        kept |= {int(one["client"]): one["state"] for one in output.client_states}
        yield state, dict(kept)


def client_training(plain: keras.Model, client: int) -> None:
    """Local SGD by Keras on the client's batches in order."""
    examples = make_examples(client)
    optimizer = keras.optimizers.SGD(RATE)
    for _ in range(EPOCHS):
        for start in range(0, SIZES[client], BATCH):
            x, y = (examples[name][start : start + BATCH] for name in ("x", "y"))
            with tf.GradientTape() as tape:
                losses = tf.nn.sparse_softmax_cross_entropy_with_logits(y, plain(x))
                loss = tf.reduce_mean(losses)
            gradients = tape.gradient(loss, plain.trainable_weights)
            optimizer.apply_gradients(zip(gradients, plain.trainable_weights, strict=True))


def algorithm_1(initial: list[np.ndarray], cohorts):
    """Yang et al. (2020), Algorithm 1: wb and every wl^k after each round."""
    x = keras.Input([6])
    hidden = keras.layers.Dense(5, activation="tanh")(x)
    plain = keras.Model(x, keras.layers.Dense(3)(hidden))
    wb, wl_0 = initial[:2], initial[2:]
    wl = dict.fromkeys(SIZES, wl_0)  # ClientInit.
    for cohort in cohorts:
        received = []
        for k in cohort:
            plain.set_weights([*wb, *wl[k]])
            client_training(plain, k)
            trained = plain.get_weights()
            received.append(trained[:2])
            wl = wl | {k: trained[2:]}
        total = sum(SIZES[k] for k in cohort)
        wb = [
            sum(SIZES[k] / total * w for k, w in zip(cohort, ws, strict=True))
            for ws in zip(*received, strict=True)
        ]
        yield wb, wl


def test_equals_algorithm_1():
    """Three clients, two a round: client 1 keeps its head between, client 2 starts late."""
    cohorts = [(0, 1), (2, 1), (0, 2)]
    process = build("hdafl", shuffle=False)
    start = process.initialize()
    initial = [*start.weights.trainable, *start.initial_local.trainable]
    for (state, kept), (wb, wl) in zip(
        run(process, start, cohorts), algorithm_1(initial, cohorts), strict=True
    ):
        for found, wanted in zip(state.weights.trainable, wb, strict=True):
            np.testing.assert_allclose(found, wanted, atol=1e-5)
        for client, client_state in kept.items():
            for found, wanted in zip(client_state.model.trainable, wl[client], strict=True):
                np.testing.assert_allclose(found, wanted, atol=1e-5)
    assert not np.allclose(wl[0][0], wl[1][0], atol=1e-3)
    assert {client: int(s.rounds) for client, s in kept.items()} == {0: 2, 1: 2, 2: 2}


def test_without_a_local_part_it_is_fed_avg():
    cohorts = [(0, 1), (2, 1), (0, 2), (0, 1, 2)]
    fed_avg, hdafl = build("fed_avg", shuffle=True), build("hdafl", shuffle=True, local_layers=())
    for (one, kept), (other, also_kept) in zip(
        run(fed_avg, fed_avg.initialize(), cohorts),
        run(hdafl, hdafl.initialize(), cohorts),
        strict=True,
    ):
        tf.nest.map_structure(np.testing.assert_array_equal, one, other)
        tf.nest.map_structure(np.testing.assert_array_equal, kept, also_kept)


def test_head_is_local_by_default():
    local = [s.path for s in build("hdafl", shuffle=True).model.specs if s.local]
    assert local == ["output/kernel", "output/bias"]
