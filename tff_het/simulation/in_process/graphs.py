"""TensorFlow graphs of compiled computations as functions that threads may call side by side.

A graph with resources (variables, tables, iterators) is imported once for each thread: two
calls that shared a container would overwrite each other's variables, and nothing would say so.
"""

import itertools
import threading
from collections.abc import Iterator, Sequence
from typing import Any

import tensorflow as tf
import tensorflow_federated as tff

from tff_het.simulation.in_process import _private

_numbers = itertools.count()


class Graph:
    """One TensorFlow block of a computation: flat lists of tensors in and out."""

    def __init__(self, block: tff.framework.CompiledComputation):
        """Parses the block's graph; raises NotImplementedError if it is not TensorFlow's."""
        which = block.proto.WhichOneof("computation")
        if which != "tensorflow":
            raise NotImplementedError(
                f"The in-process runtime executes TensorFlow, found a computation of kind {which}. "
                "Use TFF's worker for it."
            )
        proto = block.proto.tensorflow
        self._graph_def = tf.compat.v1.GraphDef()
        proto.graph_def.Unpack(self._graph_def)
        self._feeds = list(_tensor_names(proto.parameter)) if proto.HasField("parameter") else []
        self._fetches = list(_tensor_names(proto.result))
        self._initialize = proto.initialize_op
        self._token = proto.session_token_tensor_name
        self._stateful = any("container" in node.attr for node in _nodes(self._graph_def))
        self._functions: dict[int, tuple[Any, Any]] = {}
        self._lock = threading.Lock()

    def __call__(self, slot: int, arguments: Sequence[Any]) -> list[Any]:
        """Runs the graph on flat arguments, in the thread that holds `slot`."""
        key = slot if self._stateful else 0
        if key not in self._functions:
            with self._lock:  # Importing changes TensorFlow's own tables.
                if key not in self._functions:
                    self._functions[key] = self._import()
        initialize, function = self._functions[key]
        if initialize is not None:
            _private.call_flat(initialize, [])
        return _private.call_flat(function, arguments)

    def _import(self) -> tuple[Any, Any]:
        graph_def = self._graph_def
        if self._stateful:
            graph_def = _with_container(graph_def, f"tff_het_{next(_numbers)}")
        names = [*self._feeds, *([self._token] if self._token else []), *self._fetches]
        found: dict[str, list[tf.Tensor]] = {}

        def load():
            elements = tf.graph_util.import_graph_def(graph_def, return_elements=names, name="")
            cut = len(names) - len(self._fetches)
            found["feeds"] = elements[:cut]
            # Pruning needs what is fed and what is fetched to differ.
            found["fetches"] = [tf.identity(tensor) for tensor in elements[cut:]]

        with tf.init_scope():
            wrapped = tf.compat.v1.wrap_function(load, [])
            function = wrapped.prune(found["feeds"], found["fetches"])
            initialize = None
            if self._initialize:
                operation = wrapped.graph.get_operation_by_name(self._initialize)
                initialize = wrapped.prune([], operation)
        return initialize, function


def _tensor_names(binding) -> Iterator[str]:
    """Yields the names of a binding's tensors, in the order of the type's leaves."""
    which = binding.WhichOneof("binding")
    if which == "tensor":
        yield binding.tensor.tensor_name
    elif which == "sequence":
        yield binding.sequence.variant_tensor_name
    elif which == "struct":
        for element in binding.struct.element:
            yield from _tensor_names(element)


def _nodes(graph_def: tf.compat.v1.GraphDef) -> Iterator[Any]:
    yield from graph_def.node
    for function in graph_def.library.function:
        yield from function.node_def


def _with_container(graph_def: tf.compat.v1.GraphDef, container: str) -> tf.compat.v1.GraphDef:
    """Returns the graph with its resources in a container of their own.

    The functions in its library are renamed: TensorFlow has one table of functions for the
    whole process, and would take another graph's of the same name.
    """
    copy = tf.compat.v1.GraphDef()
    copy.CopyFrom(graph_def)
    new_names = {f.signature.name: f"{f.signature.name}_{container}" for f in copy.library.function}
    for function in copy.library.function:
        function.signature.name = new_names[function.signature.name]
    for gradient in copy.library.gradient:
        gradient.function_name = new_names.get(gradient.function_name, gradient.function_name)
        gradient.gradient_func = new_names.get(gradient.gradient_func, gradient.gradient_func)
    for node in _nodes(copy):
        node.op = new_names.get(node.op, node.op)
        for name, value in node.attr.items():
            if name == "container":
                value.s = container.encode()
            for called in (value.func, *value.list.func) if _has_functions(value) else ():
                called.name = new_names.get(called.name, called.name)
    return copy


def _has_functions(value) -> bool:
    return value.HasField("func") or (value.HasField("list") and len(value.list.func) > 0)
