"""Local losses against their formulas in NumPy, on dense and convolutional networks."""

import dataclasses
import functools

import numpy as np
import pytest
import tensorflow as tf

from tff_het.models import architectures, auxiliary, calling, networks
from tff_het.models.model import EXAMPLE_WEIGHT, ClientContext

SIZE, CLASSES, WEIGHT = 8, 3, 0.7
CLIENT = ClientContext(tf.constant(0), tf.constant(7), tf.constant(0))
SEED = tf.constant([3, 4])
# By network: what is local, the last of which gives the representation.
LOCAL = {"mlp": ("dense_1", "dense_2"), "digits_cnn": ("conv_1", "conv_2")}
NETWORKS = {"mlp": networks.mlp([7, 6, 5]), "digits_cnn": networks.digits_cnn}
FORMS = ("supervised", "autoencoder", "rotation")


def element(*shape: int) -> dict:
    return {"x": (np.dtype(np.uint8), shape), "y": (np.dtype(np.int32), ())}


def make(network: str, shape=(SIZE, SIZE, 2), **options):
    return architectures.make(network, element(*shape), CLASSES, NETWORKS[network], **options)


def make_batch() -> dict[str, np.ndarray]:
    """Seven examples, of which two fill up."""
    rng = np.random.default_rng(0)
    return {
        "x": rng.integers(0, 256, (7, SIZE, SIZE, 2), np.uint8),
        "y": rng.integers(0, CLASSES, 7).astype(np.int32),
        EXAMPLE_WEIGHT: np.array([1, 1, 1, 0, 1, 1, 0], np.float32),
    }


@pytest.fixture(scope="module")
def models():
    """(network, form, statistics) -> its model with the local loss, and without one."""

    @functools.cache
    def build(network: str, form: str, standardized: bool = False):
        options = {"statistics": STATISTICS} if standardized else {}
        plain = make(network, **options)
        attached = auxiliary.attach(plain, form, LOCAL[network], WEIGHT)
        return attached.model(local=LOCAL[network]), plain.model(local=LOCAL[network])

    return build


STATISTICS = (np.array([120.0, 100.0]), np.array([60.0, 70.0]))


def by_path(model, variables) -> dict[str, np.ndarray]:
    flat = model.join(variables)
    return {spec.path: np.asarray(v) for spec, v in zip(model.specs, flat, strict=True)}


def without_auxiliary(model, plain, variables):
    """The same values as variables of the network alone."""
    values = by_path(model, variables)
    return plain.split([tf.constant(values[spec.path]) for spec in plain.specs])


# --- The formulas -----------------------------------------------------------------------------


def representation(network: str, values, x: np.ndarray) -> np.ndarray:
    """Activations of the last local layer, [b, ...] -> [b, units], of the input as scaled."""
    for name in LOCAL[network]:
        kernel, bias = values[f"{name}/kernel"], values[f"{name}/bias"]
        if network == "mlp":
            x = x.reshape(len(x), -1) @ kernel + bias
        else:
            x = np.stack([convolved(image, kernel) for image in x]) + bias
        x = np.maximum(x, 0)
    return x.reshape(len(x), -1)


def convolved(image: np.ndarray, kernel: np.ndarray) -> np.ndarray:
    """[size, size, channels], a kernel [3, 3, channels, filters], with zeros around."""
    padded = np.pad(image, ((1, 1), (1, 1), (0, 0)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(0, 1))
    return np.einsum("ijcuv,uvcf->ijf", windows, kernel)


def cross_entropy(labels: np.ndarray, logits: np.ndarray) -> np.ndarray:
    logits = logits.astype(np.float64)
    log_sum = np.log(np.exp(logits - logits.max(1, keepdims=True)).sum(1)) + logits.max(1)
    return log_sum - logits[np.arange(len(labels)), labels]


def formula(form: str, network: str, values, batch, scale, quarters) -> np.ndarray:
    """The local loss of each example."""
    x = batch["x"]
    if form == "rotation":
        x = np.stack([np.rot90(image, k) for image, k in zip(x, quarters, strict=True)])
    guess = representation(network, values, scale(x.astype(np.float64)))
    guess = guess @ values["auxiliary/kernel"] + values["auxiliary/bias"]
    if form == "autoencoder":
        return np.square(guess - scale(x.astype(np.float64)).reshape(len(x), -1)).mean(axis=1)
    return cross_entropy(batch["y"] if form == "supervised" else quarters, guess)


def bytes_scaled(x: np.ndarray) -> np.ndarray:
    return x / 255


def standardized(x: np.ndarray) -> np.ndarray:
    mean, deviation = STATISTICS
    return (x - mean) / deviation


@pytest.mark.parametrize(
    ("form", "scale"),
    [*((form, bytes_scaled) for form in FORMS), ("autoencoder", standardized)],
)
@pytest.mark.parametrize("network", NETWORKS)
def test_loss_is_the_networks_and_the_formula(models, network, form, scale):
    model, plain = models(network, form, scale is standardized)
    variables, batch = model.initial_variables(1), make_batch()
    values = by_path(model, variables)
    result = model.loss(variables, batch, CLIENT, SEED, True)
    quarters = result.outputs["auxiliary_target"].numpy() if form == "rotation" else None
    local = formula(form, network, values, batch, scale, quarters)
    own = plain.loss(without_auxiliary(model, plain, variables), batch, CLIENT, SEED, True).loss
    counted = local[batch[EXAMPLE_WEIGHT] == 1].mean()
    np.testing.assert_allclose(result.loss, own + WEIGHT * counted, rtol=1e-5)
    found = model.metrics["local_loss"](batch, result.outputs)
    np.testing.assert_allclose(found, local, rtol=1e-4)
    assert list(model.metrics) == ["loss", "accuracy", "local_loss"]
    # Only what is local is trained by it.
    assert {s.path.split("/")[0] for s in model.specs if s.local} == {*LOCAL[network], "auxiliary"}
    assert len(model.specs) == len(plain.specs) + 2


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("network", NETWORKS)
def test_global_variables_do_not_feel_it(models, network, form):
    model, plain = models(network, form)
    variables, batch = model.initial_variables(1), make_batch()
    own = without_auxiliary(model, plain, variables)
    gradients = []
    for one, values in ((model, variables), (plain, own)):
        with tf.GradientTape() as tape:
            tape.watch(values)
            loss = one.loss(values, batch, CLIENT, SEED, True).loss
        gradients.append(tape.gradient(loss, values))
    with_it, without = gradients
    for found, wanted in zip(
        with_it.global_weights.trainable, without.global_weights.trainable, strict=True
    ):
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-7)
    assert len(with_it.local_weights.trainable) == len(without.local_weights.trainable) + 2
    kernel, wanted = (g.local_weights.trainable[0] for g in gradients)
    assert not np.allclose(kernel, wanted, rtol=1e-2)


@pytest.mark.parametrize("form", FORMS)
def test_what_fills_up_does_not_count(models, form):
    model, _ = models("mlp", form)
    variables, batch = model.initial_variables(1), make_batch()
    other = {**batch, "x": batch["x"].copy(), "y": batch["y"].copy()}
    fillers = batch[EXAMPLE_WEIGHT] == 0
    other["x"][fillers] = 255 - other["x"][fillers]
    other["y"][fillers] = (other["y"][fillers] + 1) % CLASSES
    one, two = (model.loss(variables, b, CLIENT, SEED, True).loss for b in (batch, other))
    np.testing.assert_array_equal(one, two)
    nothing = batch | {EXAMPLE_WEIGHT: np.zeros(7, np.float32)}
    assert model.loss(variables, nothing, CLIENT, SEED, True).loss == 0.0


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("network", NETWORKS)
def test_predictions_are_the_networks(models, network, form):
    """What is for training alone is left out, and the network itself is as it was."""
    model, plain = models(network, form)
    variables, batch = model.initial_variables(1), make_batch()
    found = model.predict(variables, batch, CLIENT, SEED, False)
    own = without_auxiliary(model, plain, variables)
    wanted = plain.predict(own, batch, CLIENT, SEED, False)
    assert set(found) == set(wanted) == {"logits", "hidden"}
    for name in found:
        np.testing.assert_array_equal(found[name], wanted[name])


def test_it_is_added_to_the_loss_that_the_network_has():
    def zero(batch, outputs):
        return tf.zeros_like(outputs["logits"][:, 0])

    network = dataclasses.replace(make("mlp"), loss=zero)
    model = auxiliary.attach(network, "supervised", ("dense_1",), WEIGHT).model(local=["dense_1"])
    variables, batch = model.initial_variables(1), make_batch()
    result = model.loss(variables, batch, CLIENT, SEED, True)
    local = model.metrics["local_loss"](batch, result.outputs).numpy()
    wanted = WEIGHT * local[batch[EXAMPLE_WEIGHT] == 1].mean()
    np.testing.assert_allclose(result.loss, wanted, rtol=1e-6)


# --- Rotations --------------------------------------------------------------------------------


def turn(x, seed):
    layer = auxiliary.RandomRotation()
    with calling.call(CLIENT, seed):
        return [value.numpy() for value in layer(x)]


@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
def test_images_are_turned_by_the_quarters_drawn(dtype):
    x = np.random.default_rng(0).integers(0, 256, (200, 5, 5, 2)).astype(dtype)
    turned, quarters = turn(x, SEED)
    assert turned.dtype == dtype and quarters.dtype == np.int32
    wanted = np.stack([np.rot90(image, k) for image, k in zip(x, quarters, strict=True)])
    np.testing.assert_array_equal(turned, wanted)
    counts = np.bincount(quarters, minlength=4)
    # Binomial: 200 draws at 1/4, five standard deviations.
    assert len(counts) == 4 and np.all(np.abs(counts - 50) < 5 * np.sqrt(200 * 0.25 * 0.75))


def test_quarters_follow_the_seed():
    x = np.zeros((50, 5, 5, 1), np.uint8)
    _, first = turn(x, SEED)
    tf.random.set_seed(9)
    np.testing.assert_array_equal(turn(x, SEED)[1], first)
    assert not np.array_equal(turn(x, SEED + 1)[1], first)


def test_rotation_outside_of_a_model():
    with pytest.raises(RuntimeError, match="needs the client and seed of a call"):
        auxiliary.RandomRotation(name="by_hand")(np.zeros((1, 2, 2, 1), np.float32))


# --- Refusals ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "local", "weight", "message"),
    [
        ("jigsaw", ["dense_1"], 1.0, "one of supervised, autoencoder, rotation; found 'jigsaw'"),
        ("supervised", ["dense_1"], 0.0, "is positive, found 0"),
        ("supervised", ["dense_1"], -1.0, "is positive, found -1"),
        ("supervised", ["dense_1"], np.nan, "is positive, found nan"),
        ("supervised", ["dense_1"], np.inf, "is positive, found inf"),
        ("supervised", ["dense_2"], 1.0, "dense_3, output, from the first on; found dense_2"),
        ("supervised", ["dense_1", "output"], 1.0, "from the first on; found dense_1, output"),
        ("supervised", ["dense_1", "dense_2", "dense_3", "output"], 1.0, "from the first on"),
        ("supervised", [], 1.0, "from the first on; found none"),
    ],
)
def test_what_is_no_local_loss(name, local, weight, message):
    with pytest.raises(ValueError, match=message):
        auxiliary.attach(make("mlp"), name, tuple(local), weight)


@pytest.mark.parametrize("shape", [(10,), (8, 6, 1)])
def test_only_square_images_are_turned(shape):
    network = make("mlp", shape)
    with pytest.raises(ValueError, match=rf"turns square images .* of shape \[{shape[0]}"):
        auxiliary.attach(network, "rotation", ("dense_1",), 1.0).model(local=["dense_1"])


@pytest.mark.parametrize("form", ["autoencoder", "rotation"])
def test_networks_with_other_inputs(form, for_network):
    _, network = for_network("vqa_lstm", CLASSES)
    local = network.layers[:2]
    with pytest.raises(ValueError, match="whose one input is x; found x, question"):
        auxiliary.attach(network, form, local, 1.0).model(local=local)


def test_local_layers_may_be_named_in_any_order():
    made = [
        auxiliary.attach(make("mlp"), "supervised", local, 1.0).model(local=local)
        for local in (("dense_1", "dense_2"), ("dense_2", "dense_1"))
    ]
    assert made[0].specs == made[1].specs
    # The representation is that of dense_2, six units, either way.
    shapes = {spec.path: spec.shape for spec in made[0].specs}
    assert shapes["auxiliary/kernel"] == (6, CLASSES)
