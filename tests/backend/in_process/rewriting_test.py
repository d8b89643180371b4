"""Loops run one operation after the other, and give what they gave before."""

import numpy as np
import tensorflow as tf

from tff_het.backend import internals
from tff_het.backend.in_process import rewriting
from tff_het.backend.names import tff


@tff.tensorflow.computation(tff.TensorType(np.float32, [3]), np.int32)
def loop(x, n):
    """A loop in a loop; `unchanged` only passes through."""

    def inner(i, y):
        return i + 1, tf.sin(y) + tf.cos(y) * x[0]

    def body(i, y, z, unchanged):
        return i + 1, tf.while_loop(lambda j, _: j < 3, inner, (0, z))[1] + unchanged, y * 2, x

    return tf.while_loop(lambda i, *_: i < n, body, (0, x, x + 1, x))[1:]


def bodies() -> list:
    graph_def = tf.compat.v1.GraphDef()
    block = internals.optimized(loop.to_building_block())
    block.proto.tensorflow.graph_def.Unpack(graph_def)
    names = {n.attr["body"].func.name for n in rewriting._nodes(graph_def) if "While" in n.op}
    rewriting.loops_in_sequence(graph_def)
    return [f for f in graph_def.library.function if f.signature.name in names]


def test_operations_of_a_body_are_in_one_line():
    found = bodies()
    assert len(found) >= 2
    for function in found:
        after = {
            node.name: {rewriting._source(name) for name in node.input}
            for node in function.node_def
        }
        # The longest way through the body goes over all of its operations.
        lengths: dict[str, int] = {}

        def length(name: str, after=after, lengths=lengths) -> int:
            if name not in lengths:
                before = [length(source) for source in after[name] if source in after]
                lengths[name] = 1 + max(before, default=0)
            return lengths[name]

        assert max(map(length, after)) == len(after)


def test_results_leave_a_body_together():
    for function in bodies():
        nodes = {node.name: node for node in function.node_def}
        for source in function.ret.values():
            node = nodes.get(rewriting._source(source))
            assert node is None or node.op == "IdentityN"  # None: an argument, passed on.


def test_the_same_results(everywhere):
    everywhere(lambda: loop(np.array([0.1, 0.2, 0.3], np.float32), 4))


def test_equal_functions_of_different_computations(in_process):
    """Grappler gives functions of different graphs one name; each keeps its own."""

    @tf.function(autograph=False)
    def shared(x, n):
        return tf.while_loop(lambda i, _: i < n, lambda i, x: (i + 1, x * n), (0, x))[1]

    def make(n):
        return tff.tensorflow.computation(lambda x: shared(x, tf.constant(n)), np.int32)

    computations = {n: make(n) for n in (1, 2, 3)}
    for _ in range(2):
        assert {n: int(one(1)) for n, one in computations.items()} == {1: 1, 2: 4, 3: 27}
