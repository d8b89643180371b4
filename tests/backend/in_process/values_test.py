"""Arguments and results are those of TFF's own contexts."""

import collections
from typing import Any, NamedTuple

import attrs
import numpy as np
import pytest
import tensorflow as tf

from tff_het.backend.names import tff


class Pair(NamedTuple):
    b: Any
    a: Any


@attrs.define
class Point:
    z: Any
    y: Any


def computation(*types):
    return lambda fn: tff.tensorflow.computation(fn, *types)


VECTOR = tff.TensorType(np.float32, [None])
ORDERED = tff.to_type(collections.OrderedDict(b=np.int32, a=np.int32))


@computation()
def constants():
    return collections.OrderedDict(
        text=tf.constant("a\x00b"),
        texts=tf.constant(["x", "yy"]),
        none=tf.zeros([0, 3]),
        flags=tf.constant([True]),
        flag=tf.constant(True),
        wide=tf.constant(1, tf.int64),
        brain=tf.constant(1.5, tf.bfloat16),
        half=tf.constant([2.5], tf.float16),
        byte=tf.constant(3, tf.uint8),
        imaginary=tf.constant(1j),
    )


@computation(np.int32)
def containers(n):
    return Pair(n, 2.0), {"q": n, "b": [n]}, collections.OrderedDict(z=n, a=(n, ())), []


@computation(tff.StructWithPythonType([("z", np.int32), ("y", np.float32)], Point))
def attrs_class(point):
    return Point(point.z + 1, point.y)


@computation(np.int64, np.float64, VECTOR, np.bool_)
def tensors(a, b, c, d):
    return a, b, c, d


@computation(np.str_, tff.TensorType(np.str_, [None]))
def strings(a, b):
    return a, b


@computation(ORDERED)
def ordered(struct):
    return struct


CALLS = {
    "no argument": constants,
    "containers": lambda: containers(3),
    "attrs class": lambda: attrs_class(Point(1, 2.0)),
    "Python numbers": lambda: tensors(1, 2.5, [1.0, 2.0], True),
    "NumPy": lambda: tensors(np.int64(1), np.array(2.0), np.ones(2, np.float32), np.bool_(0)),
    "wider types": lambda: tensors(np.int32(1), np.float32(2), np.ones(2, np.float16), False),
    "tensors": lambda: tensors(
        tf.constant(1, tf.int64), tf.constant(2.0), tf.Variable([1.0]), tf.constant(True)
    ),
    "strings": lambda: strings("a", ["b", "cc"]),
    "bytes": lambda: strings(b"a\xff", np.array([b"a\x00b", b"c"], object)),
    "NumPy strings": lambda: strings(np.str_("a"), np.array(["a", "bc"])),
    "tuple for names": lambda: ordered((1, 2)),
    "keywords": lambda: ordered(b=1, a=2),
    "other container": lambda: ordered({"b": 1, "a": 2}),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_the_same_as_the_workers(everywhere, call):
    everywhere(call)


WRONG = {
    "int for float": lambda: tensors(1, 2, [1.0], True),
    "float for int": lambda: tensors(1.5, 2.0, [1.0], True),
    "bool for int": lambda: tensors(True, 2.0, [1.0], True),
    "int for bool": lambda: tensors(1, 2.0, [1.0], 1),
    "narrower type": lambda: tensors(1, 2.0, np.ones(2, np.float64), True),
    "narrower tensor": lambda: tensors(1, 2.0, tf.ones(2, tf.float64), True),
    "too large": lambda: containers(2**40),
    "rank": lambda: tensors(1, 2.0, np.ones([2, 2], np.float32), True),
    "scalar": lambda: tensors(1, 2.0, 1.0, True),
    "list of other things": lambda: tensors(1, 2.0, ["a"], True),
    "text": lambda: tensors("1", 2.0, [1.0], True),
    "no argument": lambda: containers(),
    "too many": lambda: constants(1),
}


@pytest.mark.parametrize("call", WRONG.values(), ids=WRONG)
def test_wrong_arguments_are_type_errors_as_everywhere(worker, in_process, call):
    with pytest.raises(TypeError):
        call()
    with tff.framework.get_context_stack().install(worker), pytest.raises(TypeError):
        call()


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"a": 1, "b": 2}, r"Argument: expected .* names \['b', 'a'\], found 2: \['a', 'b'\]"),
        (collections.OrderedDict(b=1, c=2), r"found 2: \['b', 'c'\]"),
        (Pair(1, 2)._replace(a="x"), r"Argument\.a: expected int32, found 'x'"),
        ((1,), r"found 1: tuple"),
        (3, r"int"),
    ],
    ids=["order", "name", "element", "length", "no struct"],
)
def test_structs_go_by_name(in_process, value, message):
    """Where TFF's own contexts go by position and say nothing."""
    with pytest.raises(TypeError, match=message):
        ordered(value)


def test_results_are_the_callers_own(in_process):
    """Changing an argument afterwards changes no result."""
    given = np.ones(1000, np.float32)
    result = tensors(1, 2.0, given, True)[2]
    given[:] = 7
    np.testing.assert_array_equal(result, np.ones(1000))


def test_text_is_utf8(in_process):
    assert strings("é", ["ü"])[0] == "é".encode()
