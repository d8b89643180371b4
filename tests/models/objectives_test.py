"""Losses against their formulas in NumPy."""

import numpy as np
import pytest
import tensorflow as tf

from tff_het.models import objectives

CLASSES = 4


def softmax(x: np.ndarray) -> np.ndarray:
    powers = np.exp(x - x.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


@pytest.fixture
def batch():
    """(labels, logits) of six examples."""
    rng = np.random.default_rng(0)
    return rng.integers(0, CLASSES, 6).astype(np.int32), rng.normal(0, 3, (6, CLASSES))


def call(loss, y, logits) -> np.ndarray:
    return loss({"y": tf.constant(y)}, {"logits": tf.constant(logits, tf.float32)}).numpy()


def test_cross_entropy(batch):
    y, logits = batch
    wanted = -np.log(softmax(logits)[np.arange(6), y])
    np.testing.assert_allclose(call(objectives.cross_entropy, y, logits), wanted, rtol=1e-5)


def test_cross_entropy_of_softmax(batch):
    """The softmax is taken twice."""
    y, logits = batch
    wanted = -np.log(softmax(softmax(logits))[np.arange(6), y])
    found = call(objectives.cross_entropy_of_softmax, y, logits)
    np.testing.assert_allclose(found, wanted, rtol=1e-5)
    assert not np.allclose(found, call(objectives.cross_entropy, y, logits), atol=0.01)


def test_cross_entropy_of_softmax_cannot_vanish():
    """However sure the network is of the label: log(e + classes - 1) - 1 nats are left."""
    sure = 1000 * np.eye(CLASSES)
    found = call(objectives.cross_entropy_of_softmax, np.arange(CLASSES, dtype=np.int32), sure)
    np.testing.assert_allclose(found, np.log(np.e + CLASSES - 1) - 1, rtol=1e-5)
