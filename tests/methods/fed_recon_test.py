"""Federated reconstruction gives TFF's own numbers, on the same batches."""

import collections

import numpy as np
import pytest
import tensorflow as tf

from tff_het import methods
from tff_het.backend.names import keras, tff
from tff_het.learning.local_training import LocalTraining
from tff_het.models import architectures, networks
from tff_het.models.model import ClientContext, Model, Variables, Weights

BATCH, ROUNDS, SEED = 4, 3, 1
SIZES = (8, 9, 3)
ELEMENT = {"x": (np.dtype(np.float32), (6,)), "y": (np.dtype(np.int32), ())}


@pytest.fixture(scope="module", autouse=True)
def _runtime(worker):
    """On the worker instead: TFF's own processes have variables."""
    with tff.framework.get_context_stack().install(worker):
        yield


def make_examples(n: int) -> collections.OrderedDict:
    rng = np.random.default_rng(n)
    return collections.OrderedDict(
        x=rng.normal(size=(n, 6)).astype(np.float32), y=rng.integers(0, 3, n).astype(np.int32)
    )


def build(epochs: int, client, local_optimizer, **options):
    architecture = architectures.make("small", ELEMENT, 3, networks.mlp([7]))
    return methods.build(
        "fed_recon",
        architecture,
        LocalTraining(client, batch_size=BATCH, epochs=1, shuffle=False),
        seed=SEED,
        reconstruction=LocalTraining(
            local_optimizer, batch_size=BATCH, epochs=epochs, shuffle=False
        ),
        **options,
    )


class ForTff(tff.learning.models.ReconstructionModel):
    """Our model as TFF's own algorithm takes it: for a client -1 that never trained."""

    def __init__(self, model: Model):
        self._model = model
        initial = zip(model.join(model.initial_variables(SEED)), model.specs, strict=True)
        self._variables = model.split([tf.Variable(v, trainable=s.trainable) for v, s in initial])

    global_trainable_variables = property(lambda self: self._variables.global_weights.trainable)
    global_non_trainable_variables = property(
        lambda self: self._variables.global_weights.non_trainable
    )
    local_trainable_variables = property(lambda self: self._variables.local_weights.trainable)
    local_non_trainable_variables = property(
        lambda self: self._variables.local_weights.non_trainable
    )
    input_spec = property(lambda self: collections.OrderedDict(self._model.example_spec))

    def forward_pass(self, batch_input, training=True):
        n = tf.shape(batch_input["x"])[0]
        values = Variables(
            *(Weights(*([v.read_value() for v in w] for w in side)) for side in self._variables)
        )
        client = ClientContext(tf.constant(-1), n, tf.constant(0))
        seed = tf.zeros([2], tf.int32)
        outputs = self._model.predict(values, batch_input, client, seed, training)
        return tff.learning.models.reconstruction_model.ReconstructionBatchOutput(
            predictions=outputs["logits"], labels=batch_input["y"], num_examples=n
        )


@pytest.mark.parametrize(
    ("local", "epochs"),
    [(["output"], 2), pytest.param(["dense_1"], 1, marks=pytest.mark.slow)],
    ids=["head", "features"],
)
def test_equals_tff(local, epochs):
    client = tff.learning.optimizers.build_sgdm(0.1, momentum=0.9)
    local_optimizer = tff.learning.optimizers.build_sgdm(0.3)
    ours = build(epochs, client, local_optimizer, local_layers=local)
    theirs = tff.learning.algorithms.build_fed_recon(
        lambda: ForTff(ours.model),
        loss_fn=lambda: keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        client_optimizer_fn=client,
        reconstruction_optimizer_fn=local_optimizer,
        dataset_split_fn=tff.learning.models.ReconstructionModel.build_dataset_split_fn(
            recon_epochs=epochs
        ),
    )
    data = [tf.data.Dataset.from_tensor_slices(make_examples(n)).batch(BATCH) for n in SIZES]
    state, their_state = ours.initialize(), theirs.initialize()
    kept = {}
    for round_num in range(ROUNDS):
        clients = [
            collections.OrderedDict(
                client=np.int32(index),
                seed=np.array([round_num, index], np.int32),
                examples=make_examples(n),
                state=kept.get(index, ours.init_state(index, SEED, state)),
            )
            for index, n in enumerate(SIZES)
        ]
        before = state.weights.trainable
        output = ours.next(state, clients)
        state, kept = output.state, {int(k["client"]): k["state"] for k in output.client_states}
        their_state = theirs.next(their_state, data).state
        wanted = theirs.get_model_weights(their_state).trainable
        for found, value, old in zip(state.weights.trainable, wanted, before, strict=True):
            np.testing.assert_allclose(found, value, atol=1e-5)
            assert not np.allclose(found, old, atol=1e-3)


def test_a_client_predicts_with_what_it_reconstructs():
    """As in a round, from the same start and on the same global variables, whatever it has kept."""
    process = build(2, *[tff.learning.optimizers.build_sgdm(0.1)] * 2)
    state, examples = process.initialize(), make_examples(8)
    fresh = process.init_state(3, SEED, state)
    client = collections.OrderedDict(
        client=np.int32(3), seed=np.zeros(2, np.int32), examples=examples, state=fresh
    )
    (sent,) = process.client_update(process.download(state), [client])
    other = fresh._replace(model=tf.nest.map_structure(lambda v: v + 1.0, fresh.model))
    weights, adapted = process.adapt(state, other, examples, client=3)
    for found, wanted in ((adapted.model, sent["state"].model), (weights, state.weights)):
        for a, b in zip(tf.nest.flatten(found), tf.nest.flatten(wanted), strict=True):
            np.testing.assert_array_equal(a, b)


def test_nothing_is_read_of_what_was_kept():
    """Another state gives the same update and the same new state."""
    process = build(1, *[tff.learning.optimizers.build_sgdm(0.1)] * 2)
    state = process.initialize()
    fresh = process.init_state(0, SEED, state)
    other = fresh._replace(model=tf.nest.map_structure(lambda v: v + 1.0, fresh.model))

    def updated(kept):
        client = collections.OrderedDict(
            client=np.int32(0), seed=np.zeros(2, np.int32), examples=make_examples(8), state=kept
        )
        return process.client_update(process.download(state), [client])[0]

    one, two = updated(fresh), updated(other)
    for name in ("update", "state"):
        for a, b in zip(tf.nest.flatten(one[name]), tf.nest.flatten(two[name]), strict=True):
            np.testing.assert_array_equal(a, b)
    # Not because nothing happens to it.
    changed = tf.nest.map_structure(
        lambda a, b: np.abs(a - b).max(), one["state"].model.trainable, fresh.model.trainable
    )
    assert min(changed) > 1e-3
