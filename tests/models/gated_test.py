"""The gated layer against eq. (1) in NumPy, its gradients, and whose conditioning counts."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf

from tff_het.backend.names import keras
from tff_het.models import NETWORKS, architectures, calling, networks, objectives
from tff_het.models.gated import Gated, GatedLayers, is_conditioning
from tff_het.models.model import EXAMPLE_WEIGHT, ClientContext, Variables

FEATURES, CLASSES, CLIENTS = 4, 3, 5
ELEMENT = {"x": (np.dtype(np.float32), (FEATURES,)), "y": (np.dtype(np.int32), ())}
SEED = np.array([0, 0], np.int32)


def model_of(kind: GatedLayers, network=None):
    plain = architectures.make("small", ELEMENT, CLASSES, network or networks.mlp([2, 3]))
    local = () if kind.num_clients else is_conditioning
    return dataclasses.replace(plain, kind=kind).model(local=local)


def random_variables(model, seed: int = 0, dtype=np.float32) -> Variables:
    rng = np.random.default_rng(seed)
    return model.split([rng.normal(size=spec.shape).astype(dtype) for spec in model.specs])


def by_path(model, variables: Variables) -> dict[str, np.ndarray]:
    return {
        spec.path: value for spec, value in zip(model.specs, model.join(variables), strict=True)
    }


def gated_numpy(x, value, name: str, client: int | None):
    """Eq. (1) with biases; h selects the client's row of V where there are rows."""

    def conditioning(part: str):
        v = value[f"{name}/{part}_conditioning"]
        if client is None:
            return v
        h = np.eye(CLIENTS, dtype=v.dtype)[client]  # [K]
        return v.T @ h + value.get(f"{name}/{part}_conditioning_bias", 0)

    def linear(part: str):
        return x @ value[f"{name}/{part}/kernel"] + value[f"{name}/{part}/bias"]

    filtered = np.tanh(linear("filter") + conditioning("filter"))
    return filtered / (1 + np.exp(-(linear("gate") + conditioning("gate"))))


@pytest.mark.parametrize(("num_clients", "drawn"), [(None, 0), (CLIENTS, 0), (CLIENTS, 1)])
@pytest.mark.parametrize("output_too", [False, True])
def test_against_the_formula(num_clients, drawn, output_too):
    model = model_of(GatedLayers(num_clients=num_clients, output_too=output_too, drawn=drawn))
    variables = random_variables(model)
    value = by_path(model, variables)
    client = 3
    row = None if num_clients is None else client
    x = np.random.default_rng(1).normal(size=(6, FEATURES)).astype(np.float32)
    hidden = gated_numpy(gated_numpy(x, value, "dense_1", row), value, "dense_2", row)
    if output_too:
        shift = value["output/conditioning"] if row is None else value["output/conditioning"][row]
        shift = shift + value.get("output/conditioning_bias", 0)
        logits = hidden @ value["output/linear/kernel"] + value["output/linear/bias"] + shift
    else:
        logits = hidden @ value["output/kernel"] + value["output/bias"]
    found = model.predict(variables, {"x": x}, ClientContext(client, 6, 1), SEED, False)
    np.testing.assert_allclose(found["hidden"], hidden, atol=1e-6)
    np.testing.assert_allclose(found["logits"], logits, atol=1e-5)


def test_conditioning_begins_at_zero_and_is_local():
    model = model_of(GatedLayers(output_too=True))
    value = by_path(model, model.initial_variables(3))
    local = {spec.path for spec in model.specs if spec.local}
    layers = [f"dense_{i}/{part}_conditioning" for i in (1, 2) for part in ("filter", "gate")]
    assert local == {*layers, "output/conditioning"}
    for path, initial in value.items():
        assert np.any(initial) == (path not in local and not path.endswith("bias"))


def test_drawn_conditioning_begins_at_random():
    model = model_of(GatedLayers(num_clients=CLIENTS, drawn=True))
    value = by_path(model, model.initial_variables(3))
    assert np.std(value["dense_1/gate_conditioning"]) > 0.1
    assert not np.any(value["dense_1/gate_conditioning_bias"])


def test_gradients_against_finite_differences():
    """In float64, of the layer's weights, biases and conditioning."""
    layer = Gated(
        lambda name: keras.layers.Dense(2, name=name, dtype="float64"), 2, dtype="float64"
    )
    x = tf.constant(np.random.default_rng(0).normal(size=(5, 3)))
    target = np.random.default_rng(1).normal(size=(5, 2))
    layer(x)
    rng = np.random.default_rng(2)
    for variable in layer.trainable_variables:
        variable.assign(rng.normal(size=variable.shape))
    assert len(layer.trainable_variables) == 6

    def loss() -> tf.Tensor:
        return tf.reduce_sum((layer(x) - target) ** 2)

    with tf.GradientTape() as tape:
        value = loss()
    gradients = tape.gradient(value, layer.trainable_variables)
    step = 1e-5
    for variable, gradient in zip(layer.trainable_variables, gradients, strict=True):
        start = variable.numpy()
        for index in np.ndindex(*start.shape):
            up, down = start.copy(), start.copy()
            up[index] += step
            down[index] -= step
            variable.assign(up)
            above = loss()
            variable.assign(down)
            difference = (above - loss()) / (2 * step)
            variable.assign(start)
            np.testing.assert_allclose(gradient[index], difference, rtol=1e-6, atol=1e-8)


def test_a_clients_conditioning_changes_no_other_clients_predictions():
    """At equal global weights: the same bytes."""
    model = model_of(GatedLayers(num_clients=CLIENTS, output_too=True))
    variables = random_variables(model)
    x = np.random.default_rng(1).normal(size=(6, FEATURES)).astype(np.float32)

    def logits(values, client: int) -> bytes:
        context = ClientContext(client, 6, 1)
        return model.predict(values, {"x": x}, context, SEED, False)["logits"].numpy().tobytes()

    changed = []
    for spec, value in zip(model.specs, model.join(variables), strict=True):
        value = value.copy()
        if is_conditioning(spec.path):
            value[2] += 1.0
        changed.append(value)
    moved = model.split(changed)
    same = [logits(variables, client) == logits(moved, client) for client in range(CLIENTS)]
    assert same == [True, True, False, True, True]


def test_one_row_or_a_vector_of_ones_own_is_the_same():
    shared, private = model_of(GatedLayers(num_clients=CLIENTS)), model_of(GatedLayers())
    all_rows = by_path(shared, random_variables(shared))
    client = 4
    own = [
        all_rows[spec.path][client] if is_conditioning(spec.path) else all_rows[spec.path]
        for spec in private.specs
    ]
    batch = {
        "x": np.random.default_rng(1).normal(size=(6, FEATURES)).astype(np.float32),
        "y": np.arange(6, dtype=np.int32) % CLASSES,
        EXAMPLE_WEIGHT: np.ones(6, np.float32),
    }
    context = ClientContext(client, 6, 1)
    results = [
        model.loss(variables, batch, context, SEED, True)
        for model, variables in (
            (shared, shared.split([all_rows[spec.path] for spec in shared.specs])),
            (private, private.split(own)),
        )
    ]
    assert results[0].loss.numpy() == results[1].loss.numpy()


@pytest.mark.slow
def test_every_network_can_be_gated(for_network):
    for name in {*NETWORKS} - {"logistic"}:  # It has no hidden layer.
        batch, plain = for_network(name, 7)
        gated = dataclasses.replace(plain, kind=GatedLayers())
        if name.endswith("_bn"):
            with pytest.raises(ValueError, match="conv_1 is normalised before its activation"):
                gated.model(local=is_conditioning)
            continue
        model = gated.model(local=is_conditioning)
        outputs = model.predict(
            model.initial_variables(0), batch, ClientContext(0, 3, 0), SEED, False
        )
        assert outputs["logits"].shape == (3, 7)
        # Filter and gate are twice the weights of hidden layers; linear ones, words and LSTMs stay.
        once = ("output", "representation", "word_embedding", "lstm_1", "lstm_2")
        sizes = [s.size * (1 if s.path.split("/")[0] in once else 2) for s in plain.model().specs]
        assert model.num_global_parameters == sum(sizes)


def test_rows_need_a_call():
    layer = Gated(lambda name: keras.layers.Dense(2, name=name), 2, CLIENTS, name="gated")
    with pytest.raises(RuntimeError, match="'gated' needs the client"):
        layer(np.zeros((1, 3), np.float32))
    with calling.call(ClientContext(1, 1, 0), SEED):
        assert layer(np.zeros((1, 3), np.float32)).shape == (1, 2)


def test_class_weights_multiply_the_cross_entropy():
    logits = np.array([[0.0, 1.0], [2.0, -1.0], [0.5, 0.5]], np.float32)
    batch, outputs = {"y": np.array([1, 1, 0], np.int32)}, {"logits": logits}
    probability = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    plain = -np.log(probability[np.arange(3), batch["y"]])
    found = objectives.class_weighted([1.0, 50.0])(batch, outputs)
    np.testing.assert_allclose(found, plain * [50, 50, 1], rtol=1e-6)
