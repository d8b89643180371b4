"""Divergence by hand and against SciPy, counts against scikit-learn, patterns against NumPy."""

import numpy as np
import pytest
import scipy.spatial
import tensorflow as tf
from sklearn import metrics

from tff_het import seeding
from tff_het.backend.names import keras
from tff_het.evaluation.divergence import by_layer, correct_by_class, pattern_correlation
from tff_het.models import keras_model
from tff_het.models.model import Model, Variables, Weights


def network() -> keras.Model:
    inputs = keras.Input([3], name="x")
    hidden = keras.layers.Dense(4, name="first")(inputs)
    hidden = keras.layers.BatchNormalization(name="norm")(hidden)
    logits = keras.layers.Dense(2, name="last")(hidden)
    return keras.Model([inputs], {"logits": logits, "hidden": hidden})


def model(local=()) -> Model:
    spec = {"x": tf.TensorSpec([None, 3], tf.float32), "y": tf.TensorSpec([None], tf.int32)}
    return keras_model.from_keras(network, spec, local=local)


def draw(of: Model, key: int) -> Variables:
    rng = seeding.generator(0, seeding.DATA, key)
    return of.split([rng.normal(size=spec.shape).astype(np.float32) for spec in of.specs])


def test_relative_distances_of_layers():
    """Kernel and bias are one vector; moving statistics are not weights."""
    own = model()
    devices = [draw(own, key) for key in range(3)]
    ensemble = draw(own, 3)
    found = by_layer(own, [d.global_weights for d in devices], ensemble.global_weights)
    assert list(found) == ["first", "norm", "last"]

    def vector(variables: Variables, layer: str) -> np.ndarray:
        pairs = zip(own.specs, own.join(variables), strict=True)
        return np.concatenate(
            [value.ravel() for s, value in pairs if s.path.startswith(layer) and s.trainable]
        )

    assert vector(ensemble, "norm").shape == (8,)  # Scale and shift, of four variables.
    for layer, values in found.items():
        wanted = [
            scipy.spatial.distance.euclidean(vector(device, layer), vector(ensemble, layer))
            / np.sqrt(np.sum(vector(device, layer).astype(float) ** 2))
            for device in devices
        ]
        np.testing.assert_allclose(values, wanted, rtol=1e-6)


def test_known_answers():
    """A device twice the ensemble is half of itself away; one that is all zeros is at no ratio."""
    own = model()
    ensemble = draw(own, 0).global_weights
    double = tf.nest.map_structure(lambda value: 2 * value, ensemble)
    nothing = tf.nest.map_structure(np.zeros_like, ensemble)
    for values in by_layer(own, [double, ensemble, nothing], ensemble).values():
        np.testing.assert_allclose(values, [0.5, 0.0, np.inf])
    for values in by_layer(own, [nothing], nothing).values():
        assert np.isnan(values).all()


def test_what_clients_keep_has_no_divergence():
    own = model(local=("last",))
    devices = [draw(own, key).global_weights for key in range(2)]
    assert list(by_layer(own, devices, devices[0])) == ["first", "norm"]


def test_other_models_are_refused():
    own = model()
    weights = draw(own, 0).global_weights
    with pytest.raises(ValueError, match="found 0"):
        by_layer(own, [], weights)
    with pytest.raises(ValueError, match=r"have the shapes .*\(3, 4\).* found \[\(2,\)\]"):
        by_layer(own, [weights], Weights([np.zeros(2)], []))


def test_correct_examples_of_each_class():
    rng = seeding.generator(0, seeding.DATA)
    labels = rng.integers(0, 4, 200)
    logits = rng.normal(size=(200, 5)) + np.eye(5)[labels]
    found = correct_by_class(logits, labels)
    table = metrics.confusion_matrix(labels, logits.argmax(axis=1), labels=range(5))
    np.testing.assert_array_equal(found, np.diag(table))
    assert found[4] == 0 and found.sum() == np.sum(logits.argmax(axis=1) == labels)


def test_correlation_of_patterns():
    rng = seeding.generator(0, seeding.DATA)
    one, other = rng.normal(size=(2, 10, 16))
    wanted = np.corrcoef(one.ravel(), other.ravel())[0, 1]
    assert pattern_correlation(one, other) == pytest.approx(wanted)
    assert pattern_correlation(one, 3 * one + 1) == pytest.approx(1)
    assert pattern_correlation(one, -one) == pytest.approx(-1)
    assert pattern_correlation(one, np.ones_like(one)) == 0
    with pytest.raises(ValueError, match=r"\(10, 16\) and \(16, 10\)"):
        pattern_correlation(one, one.T)
