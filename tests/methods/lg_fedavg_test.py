"""LG-FedAvg: the paper's numbers of parameters, and its rounds against a transcription."""

import collections
from types import SimpleNamespace

import numpy as np
import pytest
import tensorflow as tf

from tff_het import methods, seeding
from tff_het.backend.names import keras, tff
from tff_het.learning.local_training import LocalTraining
from tff_het.models import architectures
from tff_het.models.model import Variables

RATE, MOMENTUM, BATCH, EPOCHS = 0.2, 0.5, 4, 2
ELEMENT = {"x": (np.dtype(np.float32), (6,)), "y": (np.dtype(np.int32), ())}
SIZES = {0: 8, 1: 9, 2: 3}
COHORTS = [(0, 1), (2, 1), (0, 2)]  # Client 2 starts late, client 1 misses the last round.
TRAINING = LocalTraining(
    tff.learning.optimizers.build_sgdm(RATE, MOMENTUM),
    batch_size=BATCH,
    epochs=EPOCHS,
    shuffle=False,
)


# --- Numbers of parameters --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("network", "shape", "options", "total", "global_part"),
    [
        # MNIST: 15.8 % in the authors' code, 5.4 % in the text.
        ("mlp_lg", (28, 28, 1), {"local_layers": ["dense_1", "dense_2"]}, 633_226, 99_978),
        ("mlp_lg", (28, 28, 1), {}, 633_226, 34_186),
        # CIFAR-10: 4.5 %, the two convolutions.
        ("lenet5", (32, 32, 3), {"local_layers": ["dense_1", "dense_2", "output"]}, 64_102, 2_872),
    ],
)
def test_number_of_parameters(monkeypatch, network, shape, options, total, global_part):
    monkeypatch.setattr(  # Of the process only the model is needed.
        "tff_het.methods.lg_fedavg.compose", lambda model, *_, **__: SimpleNamespace(model=model)
    )
    element = {"x": (np.dtype(np.uint8), shape), "y": ELEMENT["y"]}
    architecture = architectures.make(network, element, 10)
    model = methods.build("lg_fedavg", architecture, TRAINING, seed=0, **options).model
    assert (model.num_parameters, model.num_global_parameters) == (total, global_part)


# --- Rounds -----------------------------------------------------------------------------------


def small(x, num_classes, layers):
    hidden = keras.layers.Dense(5, activation="tanh", name="dense_1")(x)
    hidden = keras.layers.Dense(4, activation="tanh", name="dense_2")(hidden)
    return hidden, keras.layers.Dense(num_classes, name="output")(hidden)


def build(**options):
    architecture = architectures.make("small", ELEMENT, 3, small)
    return methods.build("lg_fedavg", architecture, TRAINING, seed=1, **options)


def make_examples(client: int) -> collections.OrderedDict:
    rng = np.random.default_rng(client)
    n = SIZES[client]
    return collections.OrderedDict(
        x=rng.normal(size=(n, 6)).astype(np.float32), y=rng.integers(0, 3, n).astype(np.int32)
    )


def rounds_of(process, state):
    """The server's variables, and those of all clients so far, by path, after each round."""
    paths = {local: [s.path for s in process.model.specs if s.local == local] for local in (0, 1)}
    kept = {}
    for round_num, cohort in enumerate(COHORTS):
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
        yield (
            dict(zip(paths[0], state.weights.trainable, strict=True)),
            {c: dict(zip(paths[1], s.model.trainable, strict=True)) for c, s in kept.items()},
        )


def client_training(values, client: int, auxiliary_weight: float):
    """Momentum SGD on the client's batches in order; the auxiliary network sees dense_1's units."""
    values = {path: tf.constant(value, tf.float32) for path, value in values.items()}
    velocity = {path: tf.zeros_like(value) for path, value in values.items()}
    examples = make_examples(client)

    def dense(x, name):
        return x @ values[f"{name}/kernel"] + values[f"{name}/bias"]

    def cross_entropy(y, logits):
        return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(y, logits))

    for _ in range(EPOCHS):
        for first in range(0, SIZES[client], BATCH):
            x, y = (examples[name][first : first + BATCH] for name in ("x", "y"))
            with tf.GradientTape() as tape:
                tape.watch(values)
                representation = tf.tanh(dense(x, "dense_1"))
                loss = cross_entropy(y, dense(tf.tanh(dense(representation, "dense_2")), "output"))
                if auxiliary_weight:
                    loss += auxiliary_weight * cross_entropy(y, dense(representation, "auxiliary"))
            gradients = tape.gradient(loss, values)
            velocity = {path: MOMENTUM * velocity[path] + gradients[path] for path in values}
            values = {path: values[path] - RATE * velocity[path] for path in values}
    return {path: value.numpy() for path, value in values.items()}


def transcription(initial, local_layers, *, auxiliary_weight=0.0, norm_weights=False):
    """Liang et al. (2019), Algorithm 1 with eq. 1: as `rounds_of`."""
    is_local = {path: path.split("/")[0] in local_layers for path in initial}
    shared = {path: value for path, value in initial.items() if not is_local[path]}
    first = {path: value for path, value in initial.items() if is_local[path]}
    own = {}
    for cohort in COHORTS:
        received, counts = [], []
        for client in cohort:
            trained = client_training(shared | own.get(client, first), client, auxiliary_weight)
            own[client] = {path: trained[path] for path in first}
            received.append({path: trained[path] for path in shared})
            change = [received[-1][path] - shared[path] for path in shared]
            norm = np.sqrt(sum(np.sum(np.square(part)) for part in change))
            counts.append(SIZES[client] * (norm if norm_weights else 1.0))
        shared = {
            path: np.average([one[path] for one in received], axis=0, weights=counts)
            for path in shared
        }
        yield shared, dict(own)


@pytest.mark.parametrize(
    ("options", "local", "transcribed"),
    [
        ({}, ["dense_1"], {}),
        ({"local_layers": ["output"]}, ["output"], {}),
        (
            {"local_loss": "supervised", "local_loss_weight": 0.7},
            ["dense_1", "auxiliary"],
            {"auxiliary_weight": 0.7},
        ),
        ({"norm_weights": True}, ["dense_1"], {"norm_weights": True}),
    ],
    ids=["plain", "local-classifier", "supervised", "norms"],
)
def test_rounds_are_those_of_the_paper(options, local, transcribed):
    process = build(**options)
    model, start = process.model, process.initialize()
    assert {s.path.split("/")[0] for s in model.specs if s.local} == set(local)
    flat = model.join(Variables(start.weights, start.initial_local))
    initial = dict(zip((s.path for s in model.specs), flat, strict=True))
    wanted_rounds = list(transcription(initial, local, **transcribed))
    for (shared, own), (wanted_shared, wanted_own) in zip(
        rounds_of(process, start), wanted_rounds, strict=True
    ):
        assert_close(shared, wanted_shared)
        assert own.keys() == wanted_own.keys()
        for client in own:
            assert_close(own[client], wanted_own[client])
    # What stays with the clients, the auxiliary network too, is each one's own.
    for path in wanted_own[0]:
        assert not np.allclose(wanted_own[0][path], wanted_own[1][path], atol=1e-3)
    # And the options matter: without them the rounds would be others.
    if transcribed:
        network = {path: initial[path] for path in initial if not path.startswith("auxiliary")}
        *_, (plain, _) = transcription(network, local)
        last, _ = wanted_rounds[-1]
        assert not all(np.allclose(last[path], plain[path], atol=1e-4) for path in plain)


def assert_close(found, wanted) -> None:
    assert found.keys() == wanted.keys()
    for path in found:
        np.testing.assert_allclose(found[path], wanted[path], atol=1e-5, err_msg=path)


def test_norms_of_clients_that_hold_nothing_weigh_nothing():
    """No update at all has a norm of 0: the model stays, and is no number divided by 0."""
    process = build(norm_weights=True)
    state = process.initialize()
    empty = collections.OrderedDict((k, v[:0]) for k, v in make_examples(0).items())
    client = collections.OrderedDict(
        client=np.int32(0),
        seed=np.zeros(2, np.int32),
        examples=empty,
        state=process.init_state(0, 1, state),
    )
    after = process.next(state, [client]).state
    tf.nest.map_structure(np.testing.assert_array_equal, after.weights, state.weights)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"local_layers": ["head"]}, "No layer with variables is called 'head'"),
        (
            {"local_loss": "supervised", "local_layers": ["output"]},
            "from the first on; found output",
        ),
        ({"local_loss": "supervised", "local_layers": []}, "from the first on; found none"),
        ({"local_loss_weight": 2.0}, "local_loss_weight is what a local_loss counts"),
    ],
)
def test_options_that_do_not_fit(options, message):
    with pytest.raises(ValueError, match=message):
        build(**options)
