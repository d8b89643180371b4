"""TensorFlow graphs of compiled computations as functions that threads may call side by side.

Graphs with resources (variables, tables, iterators) are refused: two calls would meet in them, and
nothing would say so.
"""

import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import tensorflow as tf

from tff_het.backend import internals
from tff_het.backend.in_process import rewriting, values
from tff_het.backend.in_process.threads import Run
from tff_het.backend.names import tff

# Fills the list with the names of the functions in the graph; returns what is fed and fetched.
Trace = Callable[[list[str]], tuple[list[tf.Tensor], list[tf.Tensor]]]

MERGED = 16  # Clients whose parts of a computation are one call, at most.

_tracing = threading.Lock()


class Traced:
    """Functions of TensorFlow, each traced when it is first asked for."""

    def __init__(self) -> None:
        self._registered: dict[Any, internals.Registered] = {}
        weakref.finalize(self, _release, self._registered).atexit = False

    def get(self, key: Any, trace: Trace) -> internals.Registered:
        """Returns the function of this key."""
        found = self._registered.get(key)
        if found is None:
            with _tracing:
                found = self._registered.get(key)
                if found is None:
                    found = self._registered[key] = _register(trace)
        return found


def _register(trace: Trace) -> internals.Registered:
    fed: list[tf.Tensor] = []
    fetched: list[tf.Tensor] = []
    library: list[str] = []

    def load() -> None:
        fed[:], found = trace(library)
        # Pruning needs what is fed and what is fetched to differ.
        fetched[:] = map(tf.identity, found)

    with tf.init_scope():
        wrapped = tf.compat.v1.wrap_function(load, [])
        name = f"{rewriting.new_name()}_call"
        return internals.register(wrapped.prune(fed, fetched), name, library)


def _release(registered: dict[Any, internals.Registered]) -> None:
    """Gives back all that TensorFlow keeps of functions."""
    for function in registered.values():
        internals.forget(function)


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
        # Of loops: all other functions were inlined.
        self.has_loops = len(self._graph_def.library.function) > 0
        self._feeds = list(_tensor_names(proto.parameter)) if proto.HasField("parameter") else []
        self._fetches = list(_tensor_names(proto.result))
        self._traced = Traced()

    def __call__(self, arguments: Sequence[Any], run: Run) -> list[Any]:
        """Runs the graph on flat arguments."""
        if run.library is not None:
            return self._copied(arguments, run.library)[1]
        return self._call(1, arguments, run)

    def fold(self, accumulator: list[Any], members: list[list[Any]], run: Run) -> list[Any]:
        """Runs (accumulator, member) -> accumulator for one member after the other.

        Several steps in one call cost little more than one: for small tensors most of a call is
        the way to TensorFlow and back.
        """
        if run.library is not None:
            for member in members:
                accumulator = self([*accumulator, *member], run)
            return accumulator
        for start in range(0, len(members), MERGED):
            taken = members[start : start + MERGED]
            flat = [*accumulator, *(tensor for member in taken for tensor in member)]
            accumulator = self._call(len(taken), flat, run)
        return accumulator

    def _call(self, steps: int, arguments: Sequence[Any], run: Run) -> list[Any]:
        """Runs steps: what is fetched of one are the first of the next one's feeds."""

        def trace(library: list[str]) -> tuple[list[tf.Tensor], list[tf.Tensor]]:
            fed, fetched = self._copied([], library)
            for _ in range(steps - 1):
                more, fetched = self._copied(fetched, library)
                fed += more
            return fed, fetched

        return internals.call(self._traced.get(steps, trace), arguments, run.cancellation)

    def _copied(
        self, arguments: Sequence[tf.Tensor], library: list[str]
    ) -> tuple[list[tf.Tensor], list[tf.Tensor]]:
        """Copies the graph into the one that is being traced, its first feeds replaced.

        Adds its functions' names to `library`; returns the other feeds, and what is fetched.
        """
        graph_def = rewriting.apart(self._graph_def, rewriting.new_name())
        library += [function.signature.name for function in graph_def.library.function]
        replaced = dict(zip(self._feeds, arguments, strict=False))
        names = [*self._feeds[len(replaced) :], *self._fetches]
        elements = tf.graph_util.import_graph_def(graph_def, replaced, names, name="")
        cut = len(names) - len(self._fetches)
        return elements[:cut], elements[cut:]


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
