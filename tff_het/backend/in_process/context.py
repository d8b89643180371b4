"""The context that executes computations in this process."""

import collections
import contextlib
import functools
import hashlib
import os
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import tensorflow as tf

from tff_het.backend.building_blocks import call_dominant
from tff_het.backend.in_process import interpreter, values
from tff_het.backend.in_process.graphs import Graph
from tff_het.backend.in_process.threads import ClientThreads, Function, Run
from tff_het.backend.names import tff


class _Plan(NamedTuple):
    """Calling convention of a computation.

    Attributes:
      computation: The object, to tell it from a later one in the same place.
      ingest: Brings its argument in.
      function: Executes it.
      emit: Brings its result out.
    """

    computation: weakref.ref
    ingest: values.Ingest
    function: Function
    emit: Callable[[Any], Any]


class Plans:
    """Computations compiled for this process, the most recently used of them."""

    def __init__(self, size: int):
        """Keeps this many computations and graphs."""
        self._size = size
        # By the object first: hashing a computation serialises all of it. And equal computations
        # may differ in the Python containers of their types.
        self._plans: dict[int, _Plan] = {}
        self._by_content = functools.lru_cache(maxsize=size)(
            lambda comp: self._compile(comp, self._graph)
        )
        self._graphs: collections.OrderedDict[bytes, Graph] = collections.OrderedDict()
        self._lock = threading.RLock()

    def __call__(self, comp: Any) -> _Plan:
        """Returns the plan of a computation, compiling it if it is new."""
        plan = self._plans.get(id(comp))
        if plan is not None and plan.computation() is comp:
            return plan
        ingest = values.ingester(comp.type_signature.parameter)
        emit = values.emitter(comp.type_signature.result)
        if comp.type_signature.parameter is None:
            # As `initialize`, which each seed has one of: called once, so it is not kept.
            return _Plan(weakref.ref(comp), ingest, self._compile(comp, Graph), emit)
        with self._lock:
            key, plans = id(comp), self._plans
            plan = plans[key] = _Plan(
                # Called before its place in memory is given to another.
                weakref.ref(comp, lambda _: plans.pop(key, None)),
                ingest,
                self._by_content(comp),
                emit,
            )
            if len(plans) > self._size:  # Objects that live on keep no graphs alive.
                del plans[next(iter(plans))]
            return plan

    def _compile(self, comp: Any, graph: Callable[[Any], Graph]) -> Function:
        execute = interpreter.compile_block(call_dominant(comp), graph)

        def function(argument: Any, run: Run) -> Any:
            value = execute({}, run)
            return value(argument, run) if callable(value) else value

        return function

    def _graph(self, block: Any) -> Graph:
        """One `Graph` for equal TensorFlow blocks."""
        content = block.proto.SerializeToString(deterministic=True)
        key = hashlib.sha256(content).digest()
        graph = self._graphs.pop(key, None) or Graph(block)
        self._graphs[key] = graph
        if len(self._graphs) > self._size:
            self._graphs.popitem(last=False)
        return graph


# All contexts share them: a process that trains again is not compiled again. More than any program
# here has, less than memory.
_plans = Plans(256)


class InProcessContext(tff.framework.SyncContext):
    """Executes computations with TensorFlow in this process, clients on a pool of threads.

    Results do not depend on the number of threads: a client runs on one of them, and what clients
    send is aggregated in their order. Calls from several Python threads wait for each other.
    """

    def __init__(self, clients_in_parallel: int):
        self._threads = ClientThreads(clients_in_parallel)
        self._lock = threading.RLock()
        self._closed = False

    def invoke(self, comp: Any, arg: Any) -> Any:
        """Executes a computation; called by TFF.

        Raises:
          TypeError: If the argument does not have the computation's type.
          ValueError: If its parts disagree about the number of clients.
          NotImplementedError: If the computation holds what this runtime does not execute.
          tf.errors.OpError: What TensorFlow raised; in a client's work, with the client.
        """
        with self._lock:
            if self._closed:
                raise RuntimeError(
                    "This runtime was closed: the `with` block that opened it is over."
                )
            plan = _plans(comp)
            cohort = values.Cohort()
            argument = plan.ingest(arg, cohort)
            return plan.emit(plan.function(argument, Run(self._threads, cohort)))

    def close(self) -> None:
        """Ends the threads; nothing the second time."""
        with self._lock:
            self._closed = True
            self._threads.close()


def open_context(clients_in_parallel: int | None = None) -> InProcessContext:
    """Returns a context, to be closed by the caller; arguments and errors as `in_process`."""
    if clients_in_parallel is None:
        clients_in_parallel = len(os.sched_getaffinity(0))
    if clients_in_parallel < 1:
        raise ValueError(
            f"Expected clients_in_parallel of at least 1, found {clients_in_parallel}."
        )
    threading_config = tf.config.threading
    if not threading_config.get_intra_op_parallelism_threads() and not os.environ.get(
        "TF_NUM_INTRAOP_THREADS"
    ):
        with contextlib.suppress(RuntimeError):  # TensorFlow has started.
            threading_config.set_intra_op_parallelism_threads(1)
    return InProcessContext(clients_in_parallel)


@contextlib.contextmanager
def in_process(*, clients_in_parallel: int | None = None) -> Iterator[InProcessContext]:
    """Executes computations in this process while the block is open.

    Where TensorFlow has not done anything yet, and nobody has set it, each of its operations gets
    one thread: clients in parallel make better use of the cores than parallel operations.

    Other threads do not inherit the context: they enter
    `tff.framework.get_context_stack().install(context)` with the context that this yields.

    Args:
      clients_in_parallel: How many clients train at the same time, at least 1; the
        number of cores by default.

    Raises:
      ValueError: If `clients_in_parallel` is less than 1.
    """
    context = open_context(clients_in_parallel)
    try:
        with tff.framework.get_context_stack().install(context):
            yield context
    finally:
        context.close()
