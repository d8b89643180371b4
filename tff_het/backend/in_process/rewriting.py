"""Copies of a graph that share nothing with any other graph in the process."""

import graphlib
import itertools
import os
from collections.abc import Iterator
from typing import Any

import tensorflow as tf

from tff_het.backend import internals

_numbers = itertools.count()


def new_name() -> str:
    """Returns a name that nothing else in this process has."""
    return f"tffhet{os.getpid()}n{next(_numbers)}"


def resources(graph_def: tf.compat.v1.GraphDef) -> set[str]:
    """Returns the operations in which calls of the graph would meet: variables, tables."""
    return {node.op for node in _nodes(graph_def) if internals.has_container(node.op)}


def apart(graph_def: tf.compat.v1.GraphDef, name: str) -> tf.compat.v1.GraphDef:
    """Returns a copy with its functions renamed, each with `name`.

    TensorFlow has one table of functions for the whole process, and would take another graph's of
    the same name. Grappler gives one name to differing functions of different graphs.
    """
    copy = tf.compat.v1.GraphDef()
    copy.CopyFrom(graph_def)
    new_names = {f.signature.name: f"{f.signature.name}_{name}" for f in copy.library.function}
    for function in copy.library.function:
        function.signature.name = new_names[function.signature.name]
    copy.library.ClearField("gradient")  # Nobody differentiates it any more.
    for node in _nodes(copy):
        node.op = new_names.get(node.op, node.op)
        for value in node.attr.values():
            for called in (value.func, *value.list.func) if _has_functions(value) else ():
                called.name = new_names.get(called.name, called.name)
    return copy


def loops_in_sequence(graph_def: tf.compat.v1.GraphDef) -> None:
    """Makes the operations of each loop's body wait for one another, one after the other.

    Otherwise TensorFlow gives those that are ready at once to its threads, and a client's variables
    go from one core's cache to another's several times a step. Parallel are the clients.
    """
    bodies = {node.attr["body"].func.name for node in _nodes(graph_def) if node.op in _LOOPS}
    for function in graph_def.library.function:
        if function.signature.name in bodies:
            _in_sequence(function)


_LOOPS = ("While", "StatelessWhile")


def _in_sequence(function: Any) -> None:
    nodes = {node.name: node for node in function.node_def}
    inputs = {
        name: {source for source in map(_source, node.input) if source in nodes}
        for name, node in nodes.items()
    }
    last = None
    for name in graphlib.TopologicalSorter(inputs).static_order():
        if last is not None and last not in inputs[name]:
            nodes[name].input.append(f"^{last}")
        last = name
    # What one step gives to the next leaves together, after all of them; but for what it only
    # passes on.
    made = [name for name, source in function.ret.items() if _source(source) in nodes]
    if not made:
        return
    dtypes = {output.name: output.type for output in function.signature.output_arg}
    together = function.node_def.add(name="in_sequence", op="IdentityN")
    together.input.extend([*(function.ret[name] for name in made), f"^{last}"])
    together.attr["T"].list.type.extend(dtypes[name] for name in made)
    for index, name in enumerate(made):
        function.ret[name] = f"in_sequence:output:{index}"


def _source(name: str) -> str:
    """Returns the node that an input of a function's node is of."""
    return name.removeprefix("^").split(":")[0]


def _nodes(graph_def: tf.compat.v1.GraphDef) -> Iterator[Any]:
    yield from graph_def.node
    for function in graph_def.library.function:
        yield from function.node_def


def _has_functions(value) -> bool:
    return value.HasField("func") or (value.HasField("list") and len(value.list.func) > 0)
