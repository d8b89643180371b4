"""Functions of users mean inside of TFF what they mean in TensorFlow 2."""

import collections
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from tff_het.backend.names import tff
from tff_het.learning.types import computation, type_of

VECTOR = tff.TensorType(np.int32, [3])


class Pair(NamedTuple):
    left: object
    right: object


def count_equal(a, b):
    return tf.reduce_sum(tf.cast(a == b, tf.int32))


def test_equality_compares_values(worker):
    a, b = np.array([1, 2, 3], np.int32), np.array([1, 5, 3], np.int32)
    assert computation(count_equal, VECTOR, VECTOR)(a, b) == 2
    # Why this is not left to TFF: in its graphs `==` compares objects, which are never the same.
    assert tff.tensorflow.computation(count_equal, (VECTOR, VECTOR))(a, b) == 0


def test_containers_come_and_go(worker):
    argument = tff.to_type(collections.OrderedDict(pair=Pair(np.int32, [np.float32, np.float32])))

    def swap(value):
        pair = value["pair"]
        assert isinstance(pair, Pair)
        return Pair(left=list(pair.right), right=collections.OrderedDict(was=pair.left))

    swapped = computation(swap, argument)(collections.OrderedDict(pair=Pair(1, [2.0, 3.0])))
    assert swapped == Pair([2.0, 3.0], collections.OrderedDict(was=1))


def test_one_argument_is_not_a_tuple():
    assert computation(lambda x: x + 1, VECTOR).type_signature.compact_representation() == (
        "(int32[3] -> int32[3])"
    )
    two = computation(lambda x, y: x + y, VECTOR, VECTOR)
    assert two.type_signature.compact_representation() == "(<x=int32[3],y=int32[3]> -> int32[3])"


def test_random_numbers_and_loops(worker):
    def walk(seed):
        return tf.while_loop(
            lambda step, _: step < 5,
            lambda step, x: (
                step + 1,
                x
                + tf.random.stateless_normal(
                    [3], tf.random.experimental.stateless_fold_in(seed, step)
                ),
            ),
            (tf.constant(0), tf.zeros([3])),
        )[1]

    seed = np.array([3, 4], np.int32)
    found = computation(walk, tff.TensorType(np.int32, [2]))(seed)
    np.testing.assert_allclose(found, walk(tf.constant(seed)), rtol=1e-6)


def test_type_of():
    specs = Pair([tf.TensorSpec([2], tf.float32)], tf.TensorSpec([None], tf.uint8))
    assert type_of(specs).compact_representation() == "<left=<float32[2]>,right=uint8[?]>"
