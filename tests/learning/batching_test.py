"""Every pass covers every example once, whatever the sizes."""

import numpy as np
import pytest
import tensorflow as tf

from tff_het.backend.names import tff
from tff_het.learning import batching
from tff_het.learning.local_training import LocalTraining


def steps_of(n: int, batch_size: int, **settings) -> int:
    """Of a number in a computation, as in Python."""
    training = LocalTraining(tff.learning.optimizers.build_sgdm(0.1), batch_size, **settings)
    found = int(training.num_steps(tf.constant(n)))
    assert training.num_steps(n) == found
    return found


def plan(n: int, batch_size: int, steps: int, *, shuffle: bool = True, seed=(1, 2)):
    indices, weights = batching.plan(
        tf.constant(n), batch_size, tf.constant(steps), tf.constant(seed), shuffle=shuffle
    )
    return indices.numpy(), weights.numpy()


@pytest.mark.parametrize(
    ("n", "batch_size", "epochs", "expected"),
    [(8, 4, 1, 2), (9, 4, 1, 3), (9, 4, 3, 9), (3, 4, 2, 2), (0, 4, 5, 0)],
)
def test_steps_of_epochs(n, batch_size, epochs, expected):
    assert steps_of(n, batch_size, epochs=epochs) == expected


@pytest.mark.parametrize(
    ("n", "steps", "at_most_one_pass", "expected"),
    [
        (9, 2, False, 2),
        (9, 7, False, 7),  # More than the 3 of a pass.
        (9, 7, True, 3),
        (9, 2, True, 2),
        (0, 7, False, 0),  # Nothing to train on.
        (0, 7, True, 0),
    ],
)
def test_number_of_steps(n, steps, at_most_one_pass, expected):
    assert steps_of(n, 4, steps=steps, at_most_one_pass=at_most_one_pass) == expected


@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize(("n", "batch_size"), [(8, 4), (9, 4), (11, 4), (3, 4), (1, 1), (5, 1)])
def test_each_pass_has_each_example_once(n, batch_size, shuffle):
    a_pass = int(np.ceil(n / batch_size))
    indices, weights = plan(n, batch_size, 3 * a_pass, shuffle=shuffle)
    assert indices.shape == weights.shape == (3 * a_pass, batch_size)
    for start in range(0, 3 * a_pass, a_pass):
        rows, counts = indices[start : start + a_pass], weights[start : start + a_pass]
        np.testing.assert_array_equal(np.sort(rows[counts == 1]), np.arange(n))
        assert set(np.unique(counts)) <= {0.0, 1.0}
        # Only the last batch may be short, and its examples come first.
        last = n - (a_pass - 1) * batch_size
        assert (counts[:-1] == 1).all()
        np.testing.assert_array_equal(counts[-1], np.arange(batch_size) < last)


def test_fillers_are_the_first_examples_of_the_pass():
    """So that batch statistics are of several examples, not of one many times."""
    indices, weights = plan(5, 4, 2, shuffle=False)
    np.testing.assert_array_equal(indices, [[0, 1, 2, 3], [4, 0, 1, 2]])
    np.testing.assert_array_equal(weights, [[1, 1, 1, 1], [1, 0, 0, 0]])
    indices, _ = plan(5, 4, 2)
    np.testing.assert_array_equal(indices[1, 1:], indices[0, :3])
    indices, _ = plan(3, 8, 1, shuffle=False)
    np.testing.assert_array_equal(indices, [[0, 1, 2, 0, 1, 2, 0, 1]])


def test_steps_end_in_the_middle_of_a_pass():
    whole = plan(9, 4, 6)
    part = plan(9, 4, 4)
    np.testing.assert_array_equal(part[0], whole[0][:4])
    np.testing.assert_array_equal(part[1], whole[1][:4])


def test_no_examples_make_no_batches():
    indices, weights = plan(0, 4, 0)
    assert indices.shape == weights.shape == (0, 4)


def test_order():
    """Shuffled passes follow the seed and differ from each other; others keep the order."""
    one, again, other = (plan(50, 10, 10, seed=s)[0] for s in ((1, 2), (1, 2), (1, 3)))
    np.testing.assert_array_equal(one, again)
    assert not np.array_equal(one, other)
    assert not np.array_equal(one[:5], one[5:])
    kept = plan(50, 10, 10, shuffle=False)[0]
    np.testing.assert_array_equal(kept.reshape(2, 50), np.tile(np.arange(50), [2, 1]))


def test_shuffling_is_uniform():
    """Each example comes first equally often: chi-square of 2000 shuffles of 5 examples."""
    indices, _ = plan(5, 5, 2000)
    counts = np.bincount(indices[:, 0], minlength=5)
    statistic = ((counts - 400) ** 2 / 400).sum()
    assert statistic < 18.5  # The 0.999 quantile with 4 degrees of freedom.


def test_plans_can_be_traced_for_any_number_of_examples():
    traced = tf.function(
        lambda n, steps: batching.plan(n, 4, steps, tf.constant([1, 2]), shuffle=True),
        input_signature=[tf.TensorSpec([], tf.int32), tf.TensorSpec([], tf.int32)],
    )
    for n, steps in ((9, 6), (3, 2), (0, 0)):
        for found, wanted in zip(traced(n, steps), plan(n, 4, steps), strict=True):
            np.testing.assert_array_equal(found, wanted)
