"""TensorFlow graphs of compiled computations as functions that threads may call side by side.

A graph with resources (variables, tables, iterators) is imported once for each thread: two
calls that shared a container would overwrite each other's variables, and nothing would say so.
"""

import threading
import weakref
from collections.abc import Collection, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import tensorflow as tf

from tff_het.backend import internals
from tff_het.backend.in_process import rewriting
from tff_het.backend.names import tff

_FOLDED = 8  # Steps of an aggregation in one call.

_SHARED = -1  # The slot of graphs without resources.

_importing = threading.Lock()


class Caller(Protocol):
    """The thread that calls.

    Attributes:
      slot: What a graph with resources is imported once for.
      cancellation: What stops the call, or None.
    """

    @property
    def slot(self) -> int: ...

    @property
    def cancellation(self) -> internals.CancellationManager | None: ...


class _Imported(NamedTuple):
    """A graph in TensorFlow's table of functions.

    Attributes:
      initialize: Gives variables and tables their first values.
      function: The graph itself.
      destroy: Frees its resources.
      keeps: Whether resources have contents that `initialize` does not replace.
      attributes: How TensorFlow is to execute these functions.
      library: The names of the functions that they call.
    """

    initialize: internals.Registered | None
    function: internals.Registered
    destroy: internals.Registered | None
    keeps: bool
    attributes: tuple[Any, ...]
    library: list[str]

    def __call__(self, arguments: Sequence[Any], cancellation: Any) -> list[Any]:
        if self.keeps and self.destroy is not None:
            internals.call(self.destroy, [], self.attributes, None)
        if self.initialize is not None:
            internals.call(self.initialize, [], self.attributes, cancellation)
        return internals.call(self.function, arguments, self.attributes, cancellation)

    def release(self) -> None:
        """Gives back all that TensorFlow keeps of it."""
        if self.destroy is not None:
            internals.call(self.destroy, [], self.attributes, None)
        own = [f.name for f in (self.initialize, self.function, self.destroy) if f is not None]
        internals.forget([*own, *self.library])


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
        proto = internals.optimized(block).proto.tensorflow
        self._graph_def = tf.compat.v1.GraphDef()
        proto.graph_def.Unpack(self._graph_def)
        rewriting.loops_in_sequence(self._graph_def)
        self._feeds = list(_tensor_names(proto.parameter)) if proto.HasField("parameter") else []
        self._fetches = list(_tensor_names(proto.result))
        self._initialize = proto.initialize_op
        self._stateful = rewriting.has_resources(self._graph_def)
        self._imports: dict[Any, _Imported] = {}
        weakref.finalize(self, _release, self._imports).atexit = False

    def __call__(self, arguments: Sequence[Any], caller: Caller) -> list[Any]:
        """Runs the graph on flat arguments."""
        imported = self._imported(caller.slot if self._stateful else _SHARED, 1)
        return imported(arguments, caller.cancellation)

    def fold(self, accumulator: list[Any], members: list[list[Any]], caller: Caller) -> list[Any]:
        """Runs (accumulator, member) -> accumulator for one member after the other.

        Several steps in one call cost little more than one: for small tensors most of a call is
        the way to TensorFlow and back.
        """
        start = 0
        if not self._stateful and not self._initialize:
            while start + _FOLDED <= len(members):
                taken = members[start : start + _FOLDED]
                flat = [*accumulator, *(tensor for member in taken for tensor in member)]
                imported = self._imported(_SHARED, _FOLDED)
                accumulator = imported(flat, caller.cancellation)
                start += _FOLDED
        for member in members[start:]:
            accumulator = self([*accumulator, *member], caller)
        return accumulator

    def release(self, slots: Collection[int]) -> None:
        """Gives back what calls in these slots have used."""
        with _importing:
            for slot, steps in [key for key in self._imports if key[0] in slots]:
                self._imports.pop((slot, steps)).release()

    def _imported(self, slot: int, steps: int) -> _Imported:
        found = self._imports.get((slot, steps))
        if found is None:
            with _importing:
                found = self._imports.get((slot, steps))
                if found is None:
                    found = self._imports[slot, steps] = self._import(steps)
        return found

    def _import(self, steps: int) -> _Imported:
        name = rewriting.new_name()
        graph_def = rewriting.apart(self._graph_def, name)
        resources = rewriting.resources(graph_def)
        # Steps: what is fetched of one are the first of the next one's feeds.
        fed: list[tf.Tensor] = []
        fetched: list[tf.Tensor] = []
        destroyed: list[tf.Operation] = []

        def load() -> None:
            for step in range(steps):
                carried = dict(zip(self._feeds, fetched, strict=False)) if step else {}
                names = [*self._feeds[len(carried) :], *self._fetches]
                elements = tf.graph_util.import_graph_def(
                    graph_def, carried, return_elements=names, name=f"step_{step}" if step else ""
                )
                cut = len(names) - len(self._fetches)
                fed.extend(elements[:cut])
                fetched[:] = elements[cut:]
            # Pruning needs what is fed and what is fetched to differ.
            fetched[:] = [tf.identity(tensor) for tensor in fetched]
            handles = tf.graph_util.import_graph_def(
                resources, return_elements=[f"{node.name}:0" for node in resources.node]
            )
            for handle in handles:
                if handle.dtype == tf.resource:
                    destroyed.append(
                        tf.raw_ops.DestroyResourceOp(resource=handle, ignore_lookup_error=True)
                    )

        with tf.init_scope():
            wrapped = tf.compat.v1.wrap_function(load, [])
            graph = wrapped.graph

            def register(suffix: str, feeds: Any, fetches: Any) -> internals.Registered:
                return internals.register(wrapped.prune(feeds, fetches), f"{name}_{suffix}")

            initialize = destroy = None
            if self._initialize:
                initialize = register(
                    "initialize", [], graph.get_operation_by_name(self._initialize)
                )
            if destroyed:
                destroy = register("destroy", [], destroyed)
            return _Imported(
                initialize,
                register("call", fed, fetched),
                destroy,
                any(node.op != "VarHandleOp" for node in resources.node),
                internals.call_attributes(),
                [function.signature.name for function in graph_def.library.function],
            )


def _release(imports: dict[Any, _Imported]) -> None:
    for imported in imports.values():
        imported.release()


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
