"""Passes under dropout: their mean is the integral over masks, and each has a mask of its own."""

import numpy as np
import pytest
import tensorflow as tf

from tff_het.learning import mc_dropout
from tff_het.models import architectures
from tff_het.models.layers import Dropout
from tff_het.models.model import ClientContext, Variables, Weights

ELEMENT = {"x": (np.dtype(np.float32), (2,)), "y": (np.dtype(np.int32), ())}
CLIENT = ClientContext(*map(tf.constant, (0, 1, 1)))
KERNEL = np.array([[3.0, -1.0], [0.5, 2.0]], np.float32)
BIAS = np.array([-2.0, 0.5], np.float32)
X = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, -2.0]], np.float32)


def network(x, num_classes, layers):
    return x, layers.output(num_classes)(Dropout(0.5)(x))


def softmax(logits):
    odds = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return odds / odds.sum(axis=-1, keepdims=True)


@pytest.fixture(scope="module")
def passes():
    model = architectures.make("small", ELEMENT, 2, network).model(local=())
    variables = Variables(Weights([KERNEL, BIAS], []), Weights([], []))

    def run(seed, number):
        call = tf.function(
            lambda x, seed: mc_dropout.probabilities(
                model, variables, {"x": x}, CLIENT, seed, number
            )
        )
        return call(X, tf.constant(seed)).numpy()

    return run


def test_the_mean_is_over_masks(passes):
    """Each of two inputs is 0 or doubled, with the same probability: four masks in all."""
    exact = np.mean(
        [softmax((X * mask) @ KERNEL + BIAS) for mask in ([0, 0], [2, 0], [0, 2], [2, 2])], axis=0
    )
    found = passes([1, 2], 4000)
    assert found.shape == (4000, 3, 2)
    np.testing.assert_allclose(found.mean(axis=0), exact, atol=0.03)
    # Neither the network without dropout nor the mean of logits would do.
    plain = softmax(X @ KERNEL + BIAS)
    assert np.abs(plain - exact).max() > 0.1


def test_passes_follow_from_the_seed(passes):
    found = passes([1, 2], 40)
    np.testing.assert_array_equal(found, passes([1, 2], 40))
    np.testing.assert_array_equal(found[:7], passes([1, 2], 7))  # However many follow.
    assert not np.array_equal(found, passes([1, 3], 40))
    # Each pass draws its own masks, and each example has its own in a pass.
    assert len(np.unique(found[:, 0, 0].round(4))) == 2
    assert len(np.unique(found[:, 2, 0].round(4))) == 4
