"""TensorFlow graphs of compiled computations as functions that threads may call side by side.

Graphs with resources (variables, tables, iterators) are refused: two calls would meet in them, and
nothing would say so.
"""

import threading
import weakref
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import tensorflow as tf

from tff_het.backend import internals
from tff_het.backend.in_process import rewriting, values
from tff_het.backend.names import tff

_FOLDED = 8  # Steps of an aggregation in one call.

_importing = threading.Lock()


class Caller(Protocol):
    """The thread that calls.

    Attributes:
      cancellation: What stops the call, or None.
    """

    @property
    def cancellation(self) -> internals.CancellationManager | None: ...


class _Imported(NamedTuple):
    """A graph in TensorFlow's table of functions.

    Attributes:
      function: The graph itself.
      attributes: How TensorFlow is to execute it.
      library: The names of the functions that it calls.
    """

    function: internals.Registered
    attributes: tuple[Any, ...]
    library: list[str]


class Graph:
    """One TensorFlow block of a computation: flat lists of tensors in and out."""

    def __init__(self, block: tff.framework.CompiledComputation):
        """Parses the block's graph; raises NotImplementedError if it cannot be executed here."""
        which = block.proto.WhichOneof("computation")
        if which != "tensorflow":
            raise NotImplementedError(
                f"The in-process runtime executes TensorFlow, found a computation of kind {which}. "
                f"{values.ELSEWHERE}"
            )
        proto = internals.optimized(block).proto.tensorflow
        self._graph_def = tf.compat.v1.GraphDef()
        proto.graph_def.Unpack(self._graph_def)
        if found := rewriting.resources(self._graph_def):
            raise NotImplementedError(
                "The in-process runtime executes no graph with variables or other resources, found "
                f"{', '.join(sorted(found))}. {values.ELSEWHERE}"
            )
        rewriting.loops_in_sequence(self._graph_def)
        self._feeds = list(_tensor_names(proto.parameter)) if proto.HasField("parameter") else []
        self._fetches = list(_tensor_names(proto.result))
        self._imports: dict[int, _Imported] = {}
        weakref.finalize(self, _release, self._imports).atexit = False

    def __call__(self, arguments: Sequence[Any], caller: Caller) -> list[Any]:
        """Runs the graph on flat arguments."""
        return self._run(arguments, 1, caller)

    def fold(self, accumulator: list[Any], members: list[list[Any]], caller: Caller) -> list[Any]:
        """Runs (accumulator, member) -> accumulator for one member after the other.

        Several steps in one call cost little more than one: for small tensors most of a call is
        the way to TensorFlow and back.
        """
        start = 0
        while start + _FOLDED <= len(members):
            taken = members[start : start + _FOLDED]
            flat = [*accumulator, *(tensor for member in taken for tensor in member)]
            accumulator = self._run(flat, _FOLDED, caller)
            start += _FOLDED
        for member in members[start:]:
            accumulator = self([*accumulator, *member], caller)
        return accumulator

    def _run(self, arguments: Sequence[Any], steps: int, caller: Caller) -> list[Any]:
        found = self._imports.get(steps)
        if found is None:
            with _importing:
                found = self._imports.get(steps)
                if found is None:
                    found = self._imports[steps] = self._import(steps)
        return internals.call(found.function, arguments, found.attributes, caller.cancellation)

    def _import(self, steps: int) -> _Imported:
        name = rewriting.new_name()
        graph_def = rewriting.apart(self._graph_def, name)
        # Steps: what is fetched of one are the first of the next one's feeds.
        fed: list[tf.Tensor] = []
        fetched: list[tf.Tensor] = []

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

        with tf.init_scope():
            wrapped = tf.compat.v1.wrap_function(load, [])
            return _Imported(
                internals.register(wrapped.prune(fed, fetched), f"{name}_call"),
                internals.call_attributes(),
                [function.signature.name for function in graph_def.library.function],
            )


def _release(imports: dict[int, _Imported]) -> None:
    """Gives back all that TensorFlow keeps of a graph."""
    for imported in imports.values():
        internals.forget([imported.function.name, *imported.library])


def _tensor_names(binding) -> Iterator[str]:
    """Yields the names of a binding's tensors, in the order of the type's leaves."""
    which = binding.WhichOneof("binding")
    if which == "tensor":
        yield binding.tensor.tensor_name
    elif which == "sequence":
        raise NotImplementedError(
            f"The in-process runtime executes no graph with sequences. {values.ELSEWHERE}"
        )
    elif which == "struct":
        for element in binding.struct.element:
            yield from _tensor_names(element)
