"""The context that executes computations in this process."""

import collections
import concurrent.futures
import contextlib
import functools
import hashlib
import os
import queue
import threading
import weakref
from collections.abc import Iterator, Sequence
from typing import Any

import tensorflow as tf
import tensorflow_federated as tff

from tff_het.simulation.in_process import _private, interpreter, values
from tff_het.simulation.in_process.graphs import Graph

_MAX_CACHED = 256  # Computations, and graphs: more than any program here has, less than memory.


class InProcessContext(tff.framework.SyncContext):
    """Executes computations with TensorFlow in this process, clients on a pool of threads.

    Results do not depend on the number of threads: a client runs on one of them, and what clients
    send is aggregated in their order.
    """

    def __init__(self, clients_in_parallel: int):
        self._slots: queue.SimpleQueue[int] = queue.SimpleQueue()
        for slot in range(1, clients_in_parallel + 1):  # 0 is the calling thread's.
            self._slots.put(slot)
        self._pool = concurrent.futures.ThreadPoolExecutor(
            clients_in_parallel, thread_name_prefix="client"
        )
        # By the object first: hashing a computation serialises all of it.
        self._by_object: dict[int, tuple[weakref.ref, Any]] = {}
        self._by_content = functools.lru_cache(maxsize=_MAX_CACHED)(self._compile)
        self._graphs: collections.OrderedDict[bytes, Graph] = collections.OrderedDict()
        self._lock = threading.RLock()

    def invoke(self, comp: Any, arg: Any) -> Any:
        """Executes a computation; called by TFF."""
        function_type = comp.type_signature
        function = self._function_of(comp)
        argument = None if arg is None else values.ingest(arg, function_type.parameter)
        run = _Run(self._pool, self._slots, _num_clients(argument))
        emitted = values.emit(function(argument, run), function_type.result)
        return _private.type_to_py_container(emitted, function_type.result)

    def close(self) -> None:
        """Ends the threads."""
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _function_of(self, comp: Any) -> interpreter.Function:
        known = self._by_object.get(id(comp))
        if known is not None and known[0]() is comp:
            return known[1]
        with self._lock:
            function = self._by_content(comp)
        forget = functools.partial(self._by_object.pop, id(comp), None)
        self._by_object[id(comp)] = (weakref.ref(comp, lambda _: forget()), function)
        return function

    def _compile(self, comp: Any) -> interpreter.Function:
        native = tff.backends.native.desugar_and_transform_to_native(comp)
        # What could not be compiled comes back as it was; then this says why.
        block = tff.framework.to_call_dominant(native.to_building_block())
        execute = interpreter.compile_block(block, self._graph)

        def function(argument: Any, run: interpreter.Run) -> Any:
            value = execute({}, run)
            return value(argument, run) if callable(value) else value

        return function

    def _graph(self, block: Any) -> Graph:
        """One `Graph` for equal TensorFlow blocks, the most recently used of them."""
        content = block.proto.SerializeToString(deterministic=True)
        key = hashlib.sha256(content).digest()
        graph = self._graphs.pop(key, None) or Graph(block)
        self._graphs[key] = graph
        if len(self._graphs) > _MAX_CACHED:
            self._graphs.popitem(last=False)
        return graph


class _Run:
    """One execution; see `interpreter.Run`."""

    def __init__(
        self,
        pool: concurrent.futures.Executor,
        slots: "queue.SimpleQueue[int]",
        num_clients: int,
    ):
        self.num_clients = num_clients
        self._pool = pool
        self._slots = slots
        self._thread = threading.local()

    @property
    def slot(self) -> int:
        return getattr(self._thread, "slot", 0)

    def map_clients(self, function: interpreter.Function, arguments: Sequence[Any]) -> list[Any]:
        def call(client: int) -> Any:
            self._thread.slot = self._slots.get()
            try:
                return function(arguments[client], self)
            except tf.errors.OpError as error:
                raise _of_client(error, client, arguments[client]) from error
            finally:
                self._slots.put(self._thread.slot)
                self._thread.slot = 0

        # The largest first, so that no thread is left with one when the others are done.
        order = sorted(range(len(arguments)), key=lambda c: -_size(arguments[c]))
        futures = {client: self._pool.submit(call, client) for client in order}
        try:
            return [futures[client].result() for client in range(len(arguments))]
        finally:  # After an error the others are of no use, and the next call must find no one.
            for future in futures.values():
                future.cancel()
            concurrent.futures.wait(futures.values())


def _size(argument: Any) -> int:
    return 0 if argument is None else values.size(argument)


def _of_client(error: tf.errors.OpError, client: int, argument: Any) -> tf.errors.OpError:
    """The same error, saying whose it is."""
    message = f"Client {client} of this call: {error.message}"
    return type(error)(error.node_def, error.op, message)


def _num_clients(argument: Any) -> int:
    """Returns how many clients an argument holds, 0 without any.

    Raises:
      ValueError: If its parts disagree.
    """
    found = set()

    def visit(value: Any) -> None:
        if isinstance(value, values.AtClients):
            found.add(len(value.values))
        elif isinstance(value, list):
            for element in value:
                visit(element)

    visit(argument)
    if len(found) > 1:
        raise ValueError(f"Arguments hold different numbers of clients: {sorted(found)}.")
    return found.pop() if found else 0


@contextlib.contextmanager
def in_process(*, clients_in_parallel: int | None = None) -> Iterator[InProcessContext]:
    """Executes computations in this process while the block is open.

    Args:
      clients_in_parallel: How many clients train at the same time, at least 1; the
        number of cores by default.

    Raises:
      ValueError: If `clients_in_parallel` is less than 1.
    """
    if clients_in_parallel is None:
        clients_in_parallel = len(os.sched_getaffinity(0))
    if clients_in_parallel < 1:
        raise ValueError(
            f"Expected clients_in_parallel of at least 1, found {clients_in_parallel}."
        )
    context = InProcessContext(clients_in_parallel)
    try:
        with tff.framework.get_context_stack().install(context):
            yield context
    finally:
        context.close()
