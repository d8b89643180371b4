"""Factorised layers against quadrature, Monte Carlo, finite differences and NumPy."""

import dataclasses
import functools

import numpy as np
import pytest
import scipy.integrate
import scipy.stats
import tensorflow as tf
import tensorflow_probability as tfp

from tff_het.backend.names import keras
from tff_het.models import architectures, factorized
from tff_het.models.factorized import FactorizedLayers, is_posterior
from tff_het.models.model import EXAMPLE_WEIGHT, ClientContext, Model, Variables
from tff_het.models.sampling import averaging_samples

F = 6
CLIENT = ClientContext(np.int32(0), np.int32(50), np.int32(3))
UNMET = CLIENT._replace(rounds=np.int32(0))
MLP = {"x": (np.dtype(np.float32), (4,)), "y": (np.dtype(np.int32), ())}
IMAGES = MLP | {"x": (np.dtype(np.float32), (5, 7, 2))}


def make(network, element=MLP, **options) -> Model:
    plain = architectures.make("small", element, 3, network)
    kind = FactorizedLayers(**{"factors": {"hidden": F}, **options})
    return dataclasses.replace(plain, kind=kind).model(local=is_posterior)


def dense(x, num_classes, layers):
    hidden = layers.dense(5, "hidden")(x)
    return hidden, layers.output(num_classes)(hidden)


def conv(x, num_classes, layers, padding="same"):
    hidden = keras.layers.Flatten()(layers.conv(4, 3, "hidden", padding)(x))
    return hidden, layers.output(num_classes)(hidden)


def conv1d(x, num_classes, layers):
    x = keras.layers.Reshape((7, 10))(x)
    hidden = keras.layers.Flatten()(layers.conv1d(4, 3, "hidden")(x))
    return hidden, layers.output(num_classes)(hidden)


def drawn(model: Model, seed: int = 0) -> Variables:
    """Values of all variables, of both signs."""
    rng = np.random.default_rng(seed)
    values = [tf.constant(rng.normal(0, 0.7, spec.shape), tf.float32) for spec in model.specs]
    return model.split(values)


def by_path(model: Model, variables: Variables) -> dict[str, np.ndarray]:
    values = model.join(variables)
    return {spec.path: np.asarray(v) for spec, v in zip(model.specs, values, strict=True)}


def batch_of(element=MLP, n: int = 8) -> dict[str, tf.Tensor]:
    rng = np.random.default_rng(1)
    return {
        "x": tf.constant(rng.normal(size=(n, *element["x"][1])), tf.float32),
        "y": tf.constant(rng.integers(0, 3, n), tf.int32),
        EXAMPLE_WEIGHT: tf.ones([n]),
    }


def sigmoid(x):
    return 1 / (1 + np.exp(-np.asarray(x, np.float64)))


def softplus(x):
    return np.log1p(np.exp(np.asarray(x, np.float64)))


def v_of(u, c, d):
    """Draws of Kumaraswamy(c, d) by uniform ones."""
    return (1 - u ** (1 / d)) ** (1 / c)


# --- The KL terms of eq. (13) -----------------------------------------------------------------


def kl_of_v(c, d, alpha):
    """KL(Kumaraswamy(c, d) || Beta(alpha, 1)) by quadrature."""

    # Over u, uniform, v = (1 - u^(1/d))^(1/c): there is no density left to be singular.
    def integrand(u):
        rest = u ** (1 / d)  # 1 - v^c.
        log_v = np.log1p(-rest) / c
        log_q = np.log(c * d) + (c - 1) * log_v + (d - 1) * np.log(rest)
        return log_q - np.log(alpha) - (alpha - 1) * log_v

    return sum(
        scipy.integrate.quad(integrand, *ends, limit=400)[0] for ends in ((0, 0.5), (0.5, 1))
    )


@pytest.mark.parametrize("c", [0.3, 1.0, 7.5, 120.0])
@pytest.mark.parametrize("d", [0.4, 1.0, 9.0])
@pytest.mark.parametrize("alpha", [0.5, 6.0, 120.0])
def test_kl_and_its_gradient(c, d, alpha):
    rng = np.random.default_rng(0)
    logits, u = rng.normal(0, 10, F), rng.uniform(0.1, 0.9, F)
    own, of_prior = map(
        tfp.distributions.Bernoulli, (logits, None), (None, np.cumprod(v_of(u, c, d)))
    )
    flat = [tf.constant(logits), tf.fill([F], np.float64(c)), tf.fill([F], np.float64(d))]

    def kl(*values):
        return factorized.kl_posterior(*values, tf.constant(np.log(u)), alpha)

    expected = np.sum(tfp.distributions.kl_divergence(own, of_prior)) + F * kl_of_v(c, d, alpha)
    np.testing.assert_allclose(kl(*flat), expected, rtol=5e-5)
    for found, numerical in zip(*tf.test.compute_gradient(kl, flat, 1e-6), strict=True):
        np.testing.assert_allclose(found, numerical, rtol=1e-5, atol=1e-5)


def test_kl_in_the_loss_against_monte_carlo():
    model = make(dense, alpha_over_factors=0.5)
    variables = drawn(model)
    values = by_path(model, variables)
    c, d = softplus(values["hidden/posterior_c"]), softplus(values["hidden/posterior_d"])
    q, alpha = sigmoid(values["hidden/posterior_logits"]), 0.5 * F
    rng = np.random.default_rng(0)
    rest = rng.uniform(size=(400_000, F)) ** (1 / d)  # 1 - v^c.
    v = (1 - rest) ** (1 / c)
    b = rng.uniform(size=v.shape) < q
    pi = np.cumprod(v, axis=1)
    log_ratio = np.where(b, np.log(q / pi), np.log((1 - q) / -np.expm1(np.log(pi))))
    log_v = np.log(v)
    log_q = np.log(c * d) + (c - 1) * log_v + (d - 1) * np.log(rest)
    log_ratio += log_q - np.log(alpha) - (alpha - 1) * log_v
    expected = log_ratio.sum(axis=1).mean()

    batch = batch_of()

    def kl(index):
        result = model.loss(variables, batch, CLIENT, tf.stack([index, 7]), True)
        return result.loss - tf.reduce_mean(model.metrics["loss"](batch, result.outputs))

    draws = tf.function(lambda: tf.map_fn(kl, tf.range(20_000), fn_output_signature=tf.float32))()
    found = np.mean(draws) * float(CLIENT.num_examples)
    np.testing.assert_allclose(found, expected, rtol=0.01)


def test_kl_is_shared_among_the_clients_examples():
    model = make(dense)
    variables, seed = drawn(model), [3, 4]
    batch = batch_of()
    more = CLIENT._replace(num_examples=np.int32(5000))
    few, many = (
        model.loss(variables, batch, client, seed, True).loss
        - tf.reduce_mean(
            model.metrics["loss"](batch, model.loss(variables, batch, client, seed, True).outputs)
        )
        for client in (CLIENT, more)
    )
    np.testing.assert_allclose(few, 100 * many, rtol=1e-2)


def test_predictions_have_no_kl_term():
    model = make(dense)
    batch = batch_of()
    result = model.loss(drawn(model), batch, CLIENT, [0, 0], False)
    mean = tf.reduce_mean(model.metrics["loss"](batch, result.outputs))
    assert float(result.loss) == pytest.approx(float(mean), rel=1e-6)


@pytest.mark.parametrize("network", [dense, conv])
def test_gradients_against_finite_differences(network):
    element = MLP if network is dense else IMAGES
    model = make(network, element)
    variables, batch = drawn(model), batch_of(element)
    flat = model.join(variables)

    @tf.function
    def loss(values):
        return model.loss(model.split(values), batch, CLIENT, [1, 2], True).loss

    with tf.GradientTape() as tape:
        tape.watch(flat)
        value = loss(flat)
    gradients = tape.gradient(value, flat)
    rng = np.random.default_rng(0)
    for index, spec in enumerate(model.specs):
        direction = tf.constant(rng.normal(size=spec.shape), tf.float32)
        direction /= tf.norm(direction)
        step = 2e-3  # Short, for few ReLUs to turn on or off on the way.
        ends = []
        for sign in (1, -1):
            moved = list(flat)
            moved[index] = flat[index] + sign * step * direction
            ends.append(float(loss(moved)))
        expected = (ends[0] - ends[1]) / (2 * step)
        found = float(tf.reduce_sum(gradients[index] * direction))
        assert found == pytest.approx(expected, rel=0.02, abs=3e-4), spec.path


@functools.cache
def gradients_of(temperature: float):
    """A model, and the loss and its gradients at values and a seed, traced once."""
    model = make(dense, temperature=temperature)

    @tf.function
    def gradients(flat, seed):
        with tf.GradientTape() as tape:
            tape.watch(flat)
            loss = model.loss(model.split(flat), batch_of(), CLIENT, seed, True).loss
        return loss, *tape.gradient(loss, flat)

    return model, gradients


def assert_finite_gradients(temperature: float, stream: int, **changes: float) -> None:
    model, gradients = gradients_of(temperature)
    values = by_path(model, drawn(model))
    for name, value in changes.items():
        assert f"hidden/{name}" in values
        values[f"hidden/{name}"] = np.full(F, value, np.float32)
    flat = [tf.constant(values[spec.path]) for spec in model.specs]
    for seed in range(20):
        found = gradients(flat, tf.constant([seed, stream]))
        assert all(np.isfinite(value).all() for value in found)


@pytest.mark.parametrize("logit", [-1000.0, -20.0, 20.0, 60.0, 1000.0])
def test_gradients_are_finite_at_certain_factors(logit):
    assert_finite_gradients(0.1, 0, posterior_logits=logit)


@pytest.mark.parametrize("d", [-8.0, 0.5, 8.0])
@pytest.mark.parametrize("c", [-8.0, 8.0])
def test_gradients_are_finite_where_v_is_0_or_1(c, d):
    assert_finite_gradients(2 / 3, 1, posterior_c=c, posterior_d=d)


def test_v_is_drawn_as_tensorflow_probability_has_it():
    u = np.random.default_rng(0).uniform(0.01, 0.99, 50)
    c, d = 2.5, 0.7
    ours = v_of(u, c, d)
    theirs = tfp.distributions.Kumaraswamy(np.float64(c), np.float64(d)).quantile(1 - u)
    np.testing.assert_allclose(ours, theirs, rtol=1e-9)


# --- The forward pass -------------------------------------------------------------------------


def expected_matrix(values, b):
    scores = values["hidden/strength"] * b
    return values["hidden/left"] @ np.diag(scores) @ values["hidden/right"]


@pytest.mark.parametrize("client", [CLIENT, UNMET], ids=["met", "unmet"])
@pytest.mark.parametrize("bias", [True, False])
def test_dense_is_the_product_of_the_factors(client, bias):
    model = make(dense, bias=bias)
    variables, batch = drawn(model), batch_of()
    values = by_path(model, variables)
    b = np.ones(F) if client is UNMET else sigmoid(values["hidden/posterior_logits"])
    x = batch["x"].numpy() @ expected_matrix(values, b)
    expected = np.maximum(x + values.get("hidden/bias", 0), 0)
    found = model.predict(variables, batch, client, [0, 0], False)["hidden"]
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    assert ("hidden/bias" in values) == bias and ("output/bias" in values) == bias


@pytest.mark.parametrize("padding", ["same", "valid"])
def test_convolution_is_that_of_the_reshaped_matrix(padding):
    model = make(lambda *args: conv(*args, padding), IMAGES)
    variables, batch = drawn(model), batch_of(IMAGES)
    values = by_path(model, variables)
    matrix = expected_matrix(values, sigmoid(values["hidden/posterior_logits"]))
    x = batch["x"].numpy()
    if padding == "same":
        x = np.pad(x, [(0, 0), (1, 1), (1, 1), (0, 0)])
    height, width = x.shape[1] - 2, x.shape[2] - 2
    patches = np.stack(
        [
            x[:, i : i + 3, j : j + 3].reshape(len(x), -1)
            for i in range(height)
            for j in range(width)
        ],
        axis=1,
    )  # [b, places, 3 * 3 * channels]
    expected = np.maximum(patches @ matrix + values["hidden/bias"], 0).reshape(len(x), -1)
    found = model.predict(variables, batch, CLIENT, [0, 0], False)["hidden"]
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_convolution_in_one_dimension():
    model = make(conv1d, IMAGES)
    variables, batch = drawn(model), batch_of(IMAGES)
    values = by_path(model, variables)
    matrix = expected_matrix(values, sigmoid(values["hidden/posterior_logits"]))
    x = batch["x"].numpy().reshape(-1, 7, 10)
    patches = np.stack([x[:, i : i + 3].reshape(len(x), -1) for i in range(5)], axis=1)
    expected = np.maximum(patches @ matrix + values["hidden/bias"], 0).reshape(len(x), -1)
    found = model.predict(variables, batch, CLIENT, [0, 0], False)["hidden"]
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_training_draws_from_the_relaxed_bernoulli():
    temperature = 0.5
    # One example, weights that give each factor an output of its own: the draws can be read off.
    model = make(
        lambda x, n, layers: (h := layers.dense(F, "hidden")(x), layers.output(n)(h)),
        temperature=temperature,
        bias=False,
    )
    values = {path: np.zeros(v.shape) for path, v in by_path(model, drawn(model)).items()}
    values["hidden/left"][:] = 1 / 4
    values["hidden/right"][:] = np.eye(F)
    values["hidden/strength"][:] = 1
    logits = values["hidden/posterior_logits"] = np.linspace(-2, 2, F)
    variables = model.split([tf.constant(values[s.path], tf.float32) for s in model.specs])
    batch = {"x": tf.ones([1, 4])}

    def read(seed):
        return model.predict(variables, batch, CLIENT, seed, True)["hidden"]

    seeds = tf.stack([tf.range(4000), tf.fill([4000], 5)], axis=1)
    many = tf.function(lambda seeds: tf.map_fn(read, seeds, fn_output_signature=tf.float32))
    draws = many(seeds).numpy()[:, 0]
    for k in range(F):
        # b < x where the logistic noise is below temperature * logit(x) - logits.
        def cdf(x, k=k):
            return sigmoid(temperature * (np.log(x) - np.log1p(-x)) - logits[k])

        inside = np.clip(draws[:, k], 1e-7, 1 - 1e-7)
        assert scipy.stats.kstest(inside, cdf).pvalue > 1e-3
    np.testing.assert_array_equal(read(tf.constant([1, 5])), read(tf.constant([1, 5])))


def test_layers_draw_each_for_itself():
    def network(x, num_classes, layers):
        first = layers.dense(4, "one")(x)
        second = layers.dense(4, "two")(x)
        return first - second, layers.output(num_classes)(first)

    model = make(network, factors={"one": F, "two": F})
    values = by_path(model, drawn(model))
    for path, value in list(values.items()):
        if path.startswith("two/"):
            values[path] = values["one/" + path.split("/")[1]]
        del value
    variables = model.split([tf.constant(values[s.path]) for s in model.specs])
    same = model.predict(variables, batch_of(), CLIENT, [0, 1], False)["hidden"]
    drawn_apart = model.predict(variables, batch_of(), CLIENT, [0, 1], True)["hidden"]
    assert np.max(np.abs(same)) == 0 and np.max(np.abs(drawn_apart)) > 0.01


# --- Beginnings, counts, refusals ---------------------------------------------------------------


def test_posterior_starts_at_the_prior():
    model = make(dense, alpha_over_factors=0.5)
    values = by_path(model, model.initial_variables(0))
    alpha = 0.5 * F
    np.testing.assert_allclose(softplus(values["hidden/posterior_c"]), alpha, rtol=1e-5)
    np.testing.assert_allclose(softplus(values["hidden/posterior_d"]), 1, rtol=1e-5)
    v = np.random.default_rng(0).beta(alpha, 1, size=(200_000, F))
    expected = np.cumprod(v, axis=1).mean(axis=0)
    np.testing.assert_allclose(sigmoid(values["hidden/posterior_logits"]), expected, rtol=0.01)
    np.testing.assert_array_equal(values["hidden/strength"], 1)


@pytest.mark.parametrize(
    ("name", "shape", "factors", "expected"),
    [
        ("mlp", (28, 28, 1), {"dense_1": 120}, (158_800, 120_200)),  # Printed: 155,800, 120,200.
        ("cnn_16_32", (28, 28, 1), {"conv_1": 25, "conv_2": 25}, (28_880, 27_555)),
        (
            "cnn_16_16",
            (32, 32, 3),
            {"conv_1": 10, "conv_2": 10, "dense_1": 80, "dense_2": 40},
            (54_216, 60_850),
        ),
    ],
)
def test_parameters_of_the_papers_networks(name, shape, factors, expected):
    """Those that travel, without biases; printed 28,880 and 18,155, 61,770 and 42,780 as well."""
    element = {"x": (np.dtype(np.uint8), shape), "y": (np.dtype(np.int32), ())}
    plain = architectures.make(name, element, 10)
    counts = [
        dataclasses.replace(plain, kind=kind).model(local).num_global_parameters
        for kind, local in (
            (architectures.Layers(bias=False), ()),
            (FactorizedLayers(bias=False, factors=factors), is_posterior),
        )
    ]
    assert tuple(counts) == expected


@pytest.mark.parametrize(
    "options", [{"factors": {"hidden": 0}}, {"alpha_over_factors": 0.0}, {"temperature": -1.0}]
)
def test_numbers_that_are_not_positive_are_refused(options):
    with pytest.raises(ValueError, match="must be positive, found"):
        FactorizedLayers(**options)


def test_by_default_all_hidden_layers_have_as_many_factors_as_outputs():
    values = by_path(model := make(conv, IMAGES, factors=None), model.initial_variables(0))
    assert values["hidden/left"].shape == (18, 4) and "output/left" not in values


# --- Averages over draws ------------------------------------------------------------------------


def test_predictions_averaged_over_draws():
    model = make(dense)
    variables, batch = drawn(model), batch_of()
    averaged = averaging_samples(model, 3)
    found = averaged.predict(variables, batch, CLIENT, [0, 9], False)
    seeds = [tf.random.experimental.stateless_fold_in([0, 9], k) for k in range(3)]
    draws = [model.predict(variables, batch, CLIENT, seed, True) for seed in seeds]
    expected = np.mean([tf.nn.softmax(draw["logits"]) for draw in draws], axis=0)
    np.testing.assert_allclose(tf.nn.softmax(found["logits"]), expected, rtol=1e-5)
    hidden = np.mean([draw["hidden"] for draw in draws], axis=0)
    np.testing.assert_allclose(found["hidden"], hidden, rtol=1e-5)
    assert np.ptp([draw["logits"] for draw in draws], axis=0).min() > 1e-4
    unmet = averaged.predict(variables, batch, UNMET, [0, 9], False)["logits"]
    plain = model.predict(variables, batch, UNMET, [0, 9], False)["logits"]
    np.testing.assert_array_equal(unmet, plain)
    with pytest.raises(ValueError, match="1 draw or more, found 0"):
        averaging_samples(model, 0)
