"""Every method of the suite, against the worker."""

import collections

import numpy as np
import pytest
import tensorflow as tf

from tff_het import methods, seeding
from tff_het.backend.names import keras, tff
from tff_het.learning import example_files
from tff_het.learning.acquisition import Acquisition
from tff_het.learning.local_training import LocalTraining
from tff_het.models import architectures
from tff_het.models.layers import Dropout, Layers
from tff_het.simulation import feeding

FEATURES, CLASSES, SEED = 6, 3, 1
# Its default rate multiplies what rounding makes different by 100,000.
OPTIONS: dict[str, dict] = {"waffle": {"posterior_rate": 1.0}}
OPTIONS |= {name: {"num_clients": 8} for name in ("scaffold", "fed_dyn")}
PLAIN = ("scaffold", "p_fed_me")  # Without momentum.
SIZES = {0: 5, 2: 1, 4: 9, 7: 3}  # Examples of each client, by its index.


def network(x: tf.Tensor, num_classes: int, layers: Layers):
    hidden = keras.layers.BatchNormalization()(layers.dense(5, "dense_1")(x))
    hidden = Dropout(0.2)(hidden)
    return hidden, layers.output(num_classes)(hidden)


def build(method: str, acquisition: Acquisition | None = None, **options):
    element = {"x": (np.dtype(np.float32), (FEATURES,)), "y": (np.dtype(np.int32), ())}
    architecture = architectures.make("small", element, CLASSES, network)
    optimizer = tff.learning.optimizers.build_sgdm(0.3, None if method in PLAIN else 0.9)
    training = LocalTraining(optimizer, batch_size=4, epochs=1, acquisition=acquisition)
    return methods.build(method, architecture, training, seed=SEED, **options)


def examples(client: int) -> collections.OrderedDict:
    rng = np.random.default_rng(client)
    return collections.OrderedDict(
        x=rng.normal(size=(SIZES[client], FEATURES)).astype(np.float32),
        y=rng.integers(0, CLASSES, SIZES[client]).astype(np.int32),
    )


# What the server judges by: many, so that no two models are equally good.
_SELECTION = {
    "x": np.random.default_rng(9).normal(size=(997, FEATURES)).astype(np.float32),
    "y": np.random.default_rng(8).integers(0, CLASSES, 997).astype(np.int32),
}
for _method in ("opt_fl", "mix_fl"):
    OPTIONS[_method] = {"selection": _SELECTION, "ensemble_dropout_samples": 3}


def rounds(process):
    """Three rounds of differing clients, at most 7 steps each: rounding grows with every one."""
    state, kept, outputs = process.initialize(), {}, []
    for round_num, cohort in enumerate(([4, 0, 7], [2, 7], [0, 4, 2, 7])):
        clients = [
            feeding.ClientInput(
                client,
                seeding.stateless_seed(SEED, seeding.CLIENT_WORK, round_num, client),
                examples(client),
                kept.get(client, process.init_state(client, SEED, state)),
            )
            for client in cohort
        ]
        output = feeding.run_round(process, state, clients)
        assert [int(one["client"]) for one in output.client_states] == cohort
        kept |= {int(one["client"]): one["state"] for one in output.client_states}
        state = output.state
        outputs.append(output)
    return outputs


@pytest.mark.slow
@pytest.mark.parametrize("method", methods.names())
def test_methods(everywhere, method):
    process = build(method, **OPTIONS.get(method, {}))
    # SCAFFOLD divides the difference of two models by rate and steps, and its rounding too.
    everywhere(lambda: rounds(process), atol=5e-6 if method == "scaffold" else 1e-6)


@pytest.mark.slow
def test_stateful_method(everywhere):
    """One of them that is not slow."""
    process = build("hdafl", local_layers=["dense_1"])
    everywhere(lambda: rounds(process))


@pytest.mark.slow
def test_acquired_examples(everywhere):
    """Loops within loops, and lists of tensors in them."""
    process = build("fed_avg", Acquisition("max_entropy", 2, pool_size=6, dropout_samples=2))
    everywhere(lambda: rounds(process))


@pytest.mark.slow
def test_aggregators_and_server_optimizers(everywhere):
    process = build(
        "fed_avg", server_optimizer=tff.learning.optimizers.build_adam(0.01, epsilon=1e-3)
    )
    everywhere(lambda: rounds(process))


def clients_of(process, state, form=lambda client: examples(client)):
    return [
        collections.OrderedDict(
            client=np.int32(client),
            seed=seeding.stateless_seed(SEED, seeding.CLIENT_WORK, 0, client),
            examples=form(client),
            state=process.init_state(client, SEED, state),
        )
        for client in SIZES
    ]


@pytest.mark.slow
def test_halves_of_a_round_and_files(everywhere, in_process, same, tmp_path):
    process = build("hdafl")

    def path(client: int) -> str:
        file = tmp_path / str(client)
        spec = process.model.example_spec
        file.write_bytes(b"".join(example_files.to_bytes(examples(client), spec)))
        return str(file)

    def halves():
        state = process.initialize()
        clients = clients_of(process, state)
        sent = process.client_update(process.download(state), clients)
        uploads = [
            collections.OrderedDict((name, one[name]) for name in ("update", "weight", "metrics"))
            for one in sent
        ]
        stepped = process.server_update(state, uploads)
        read = process.reading_files.next(state, clients_of(process, state, path))
        return sent, stepped, read

    _, stepped, read = everywhere(halves)
    state = process.initialize()
    whole = process.next(state, clients_of(process, state))
    same(stepped["state"], whole.state)
    same(read, whole)


@pytest.mark.slow
def test_a_client_by_its_index_and_its_id(in_process):
    """What TensorFlow raised, with the client; the next round is as if nothing had happened."""
    process = build("fed_avg").reading_files
    state = process.initialize()
    paths = {0: "/nowhere", 2: "/nowhere", 4: "/nowhere", 7: "/nowhere"}
    with pytest.raises(tf.errors.NotFoundError) as error:
        process.next(state, clients_of(process, state, paths.__getitem__))
    assert "/nowhere; No such file or directory" in str(error.value)
    index, client = next(
        (i, c)
        for i, c in enumerate(SIZES)
        if f"Client {i} of this call (client={c})" in str(error.value)
    )
    assert list(SIZES)[index] == client
    process = build("fed_avg")
    process.next(state, clients_of(process, state))
