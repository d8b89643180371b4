"""Model inversion: against a model whose most confident input is known, and NumPy's own search."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf

from tff_het import methods
from tff_het.attacks import inversion
from tff_het.attacks.attacker import Reconstructed
from tff_het.attacks.inversion import Inversion, Settings
from tff_het.backend.names import keras, tff
from tff_het.learning.client_work import ClientState
from tff_het.learning.local_training import LocalTraining
from tff_het.models import architectures
from tff_het.models.model import Weights
from tff_het.simulation import runtime

SHAPE, CLASSES = (6, 5, 1), 3
BIAS = np.zeros(CLASSES, np.float32)
SETTINGS = Settings(steps=25, rate=0.05)


def linear(x: tf.Tensor, num_classes: int, layers):
    hidden = keras.layers.Flatten()(x)
    return hidden, layers.output(num_classes)(hidden)


def build(dtype=np.float32, columns=(), method: str = "fed_avg", **options):
    element = {"x": (np.dtype(dtype), SHAPE), "y": (np.dtype(np.int32), ())}
    element |= {column: (np.dtype(np.int32), ()) for column in columns}
    architecture = architectures.make("linear", element, CLASSES, linear)
    training = LocalTraining(tff.learning.optimizers.build_sgdm(0.1), batch_size=4, epochs=1)
    return methods.build(method, architecture, training, seed=1, **options)


@pytest.fixture(scope="module")
def kernel() -> np.ndarray:
    return np.random.default_rng(0).normal(size=(int(np.prod(SHAPE)), CLASSES)).astype(np.float32)


def model_of(kernel) -> Reconstructed:
    state = ClientState(Weights([], []), (), np.int32(1))
    return Reconstructed(0, Weights([kernel, BIAS], []), state)


def searched(kernel, settings: Settings, x: np.ndarray) -> np.ndarray:
    """The same search in NumPy, from x [classes, ...]."""
    flat = x.reshape(CLASSES, -1).astype(np.float64)
    best, lowest = flat.copy(), np.full(CLASSES, np.inf)
    for step in range(settings.steps + 1):
        logits = flat @ kernel
        p = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
        cost = -np.log(np.diag(p))
        better = cost < lowest
        best[better], lowest[better] = flat[better], cost[better]
        if step < settings.steps:
            slope = (p - np.eye(CLASSES)) @ kernel.T
            slope /= np.abs(slope).max(axis=1, keepdims=True)
            flat = np.clip(flat - settings.rate * slope, 0, 1)
    return best.reshape(x.shape)


def test_against_numpy(kernel):
    found = Inversion(build(), SETTINGS).invert(model_of(kernel), range(CLASSES), seed=0)
    assert found.shape == (CLASSES, *SHAPE) and found.dtype == np.float32
    wanted = searched(kernel, SETTINGS, np.zeros((CLASSES, *SHAPE)))
    np.testing.assert_allclose(found, wanted, atol=1e-3)  # Of steps of 0.05.
    assert found.max() > 0.5


def test_a_linear_models_most_confident_inputs():
    """Where a class's weights are positive and all others' are 0, the input is 1 there, else 0."""
    kernel = np.zeros((30, CLASSES), np.float32)
    for label in range(CLASSES):
        kernel[label::CLASSES, label] = 0.2
    settings = dataclasses.replace(SETTINGS, steps=60)
    found = Inversion(build(), settings).invert(model_of(kernel), range(CLASSES), seed=0)
    for label, x in enumerate(found.reshape(CLASSES, -1)):
        np.testing.assert_allclose(x[label::CLASSES], 1.0)
        others = [x[k::CLASSES] for k in range(CLASSES) if k != label]
        np.testing.assert_allclose(others, 0.0)


def test_the_best_of_all_steps_is_given(kernel):
    """Where long steps jump to and fro over the smoothest image, one more makes it no worse."""
    costs = []
    for steps in range(1, 9):
        settings = Settings(steps=steps, rate=0.5, smoothness=20.0, noise=1.0)
        x = Inversion(build(), settings).invert(model_of(kernel), range(CLASSES), seed=0)
        logits = x.reshape(CLASSES, -1) @ kernel
        cost = np.log(np.exp(logits).sum(axis=1)) - np.diag(logits)
        variation = tf.image.total_variation(tf.constant(x)).numpy() / x[0].size
        costs.append(cost + settings.smoothness * variation)
    assert np.diff(costs, axis=0).max() < 1e-4


def test_the_seed_decides_where_noise_begins(kernel):
    search = Inversion(build(), Settings(steps=3, rate=0.05, noise=1.0))
    found = search.invert(model_of(kernel), range(CLASSES), seed=2)
    again = search.invert(model_of(kernel), range(CLASSES), seed=2)
    other = search.invert(model_of(kernel), range(CLASSES), seed=3)
    np.testing.assert_array_equal(found, again)
    assert not np.array_equal(found, other)


def test_order_and_number_of_classes_do_not_matter(kernel):
    search = Inversion(build(), SETTINGS)
    found = search.invert(model_of(kernel), [0, 1, 2], seed=0)
    np.testing.assert_allclose(search.invert(model_of(kernel), [2], seed=0), found[2:], atol=1e-6)
    np.testing.assert_allclose(
        search.invert(model_of(kernel), [2, 1], seed=0), found[[2, 1]], atol=1e-6
    )


def test_smoothness(kernel):
    def variation(x: np.ndarray) -> float:
        return float(tf.image.total_variation(tf.constant(x)).numpy().sum())

    rough, smooth = (
        Inversion(build(), dataclasses.replace(SETTINGS, smoothness=s)).invert(
            model_of(kernel), range(CLASSES), seed=0
        )
        for s in (0.0, 20.0)
    )
    assert variation(smooth) < 0.7 * variation(rough)


def test_a_clients_own_part_counts(kernel):
    """With the kernel local, it is the state's that is searched."""
    process = build(method="hdafl", local_layers=lambda path: path.endswith("kernel"))
    state = ClientState(Weights([kernel], []), (), np.int32(1))
    model = Reconstructed(0, Weights([BIAS], []), state)
    found = Inversion(process, SETTINGS).invert(model, range(CLASSES), seed=0)
    wanted = Inversion(build(), SETTINGS).invert(model_of(kernel), range(CLASSES), seed=0)
    np.testing.assert_array_equal(found, wanted)


def test_class_means_and_likeness():
    rng = np.random.default_rng(1)
    x, y = rng.random((12, 16, 16, 1)).astype(np.float32), np.array([4, 7] * 6)
    means = inversion.class_means({"x": x, "y": y})
    assert set(means) == {4, 7}
    np.testing.assert_allclose(means[7], x[1::2].mean(axis=0), atol=1e-6)
    assert inversion.similarity(means[4], means[4]) == pytest.approx(1.0, abs=1e-5)
    assert inversion.similarity(1 - means[4], means[4]) < 0.5
    # Smaller than the usual filter, which is Gaussian: only of equal images the same.
    small = means[4][:8, :8]
    assert inversion.similarity(small, small) == pytest.approx(1.0, abs=1e-5)


def test_what_is_refused(kernel):
    with pytest.raises(ValueError, match="found uint8"):
        Inversion(build(np.uint8), SETTINGS)
    with pytest.raises(ValueError, match=r"read nothing else.*x, y, race"):
        Inversion(build(columns=("race",)), SETTINGS)
    with pytest.raises(ValueError, match="At least one class"):
        Inversion(build(), SETTINGS).invert(model_of(kernel), [], seed=0)
    for wrong in ({"steps": 0}, {"rate": 0.0}, {"smoothness": -1.0}, {"noise": 2.0}):
        with pytest.raises(ValueError, match="expected a"):
            dataclasses.replace(SETTINGS, **wrong)
    for shapes in ((3, 3), ((4, 4, 1), (4, 5, 1))):
        with pytest.raises(ValueError, match="Expected images of one shape"):
            inversion.similarity(*map(np.zeros, shapes))


@pytest.fixture(autouse=True, scope="module")
def _runtime():
    with runtime.use("in_process"):
        yield
