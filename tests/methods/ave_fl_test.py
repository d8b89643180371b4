"""AveFL: the paper's equations (3) and (4), and that every device counts the same."""

import collections

import numpy as np
import pytest

from tff_het import methods
from tff_het.backend.names import tff
from tff_het.learning.local_training import LocalTraining
from tff_het.models import architectures

FEATURES, CLASSES, RATE = 5, 3, 0.4
SIZES = (7, 30, 12)
ELEMENT = {"x": (np.dtype(np.float32), (FEATURES,)), "y": (np.dtype(np.int32), ())}


def make_examples(n: int) -> collections.OrderedDict:
    rng = np.random.default_rng(n)
    return collections.OrderedDict(
        x=rng.normal(size=(n, FEATURES)).astype(np.float32),
        y=rng.integers(0, CLASSES, n).astype(np.int32),
    )


def build(method: str = "ave_fl", *, batch_size: int = max(SIZES), epochs: int = 1):
    architecture = architectures.make(
        "linear", ELEMENT, CLASSES, lambda x, n, layers: (x, layers.output(n)(x))
    )
    optimizer = tff.learning.optimizers.build_sgdm(RATE)
    training = LocalTraining(optimizer, batch_size=batch_size, epochs=epochs)
    return methods.build(method, architecture, training, seed=2)


def clients_of(process, state, sizes=SIZES):
    return [
        collections.OrderedDict(
            client=np.int32(index),
            seed=np.zeros(2, np.int32),
            examples=make_examples(n),
            state=process.init_state(index, 0, state),
        )
        for index, n in enumerate(sizes)
    ]


def gradient(kernel, bias, x, y):
    """Of the mean cross entropy of softmax regression, in closed form."""
    logits = x @ kernel + bias
    odds = np.exp(logits - logits.max(axis=1, keepdims=True))
    error = odds / odds.sum(axis=1, keepdims=True) - np.eye(CLASSES)[y]
    return x.T @ error / len(y), error.mean(axis=0)


def after_a_round(process):
    state = process.initialize()
    new = process.next(state, clients_of(process, state)).state
    return [np.float64(w) for w in state.weights.trainable], new.weights.trainable


def test_one_batch_of_averaged_weights_is_a_step_with_the_averaged_gradient():
    """Equation (3) is equation (4), with alpha_i = 1/n whatever the sizes N_i."""
    start, found = after_a_round(build())
    gradients = [gradient(*start, *make_examples(n).values()) for n in SIZES]
    wanted = [
        w - RATE * np.mean(parts, axis=0) for w, *parts in zip(start, *gradients, strict=True)
    ]
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-6)


@pytest.mark.parametrize("length", [{"epochs": 2}, {"batch_size": 6}], ids=["epochs", "batches"])
def test_of_more_than_one_batch_it_is_not(length):
    """Footing of the equations: the second gradient is taken elsewhere than at W_0."""
    start, found = after_a_round(build(**length))
    gradients = [gradient(*start, *make_examples(n).values()) for n in SIZES]
    mean = [np.mean(parts, axis=0) for parts in zip(*gradients, strict=True)]
    steps = [(w - new) / RATE for w, new in zip(start, found, strict=True)]
    # Not a multiple of the averaged gradient either.
    flat, other = (np.concatenate([np.ravel(v) for v in values]) for values in (steps, mean))
    cosine = flat @ other / np.linalg.norm(flat) / np.linalg.norm(other)
    assert cosine < 0.9999


def test_devices_count_the_same():
    """Federated averaging of the same devices weighs them by their examples, and differs."""
    _, equal = after_a_round(build())
    start, by_examples = after_a_round(build("fed_avg"))
    gradients = [gradient(*start, *make_examples(n).values()) for n in SIZES]
    weights = np.array(SIZES) / sum(SIZES)
    for place, (one, other) in enumerate(zip(equal, by_examples, strict=True)):
        weighted = sum(w * g[place] for w, g in zip(weights, gradients, strict=True))
        np.testing.assert_allclose(other, start[place] - RATE * weighted, atol=1e-6)
        assert np.abs(one - other).max() > 1e-3
