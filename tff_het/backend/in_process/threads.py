"""One execution of a computation, and the threads that run its clients."""

import collections
import concurrent.futures
import copy
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from tff_het.backend import internals
from tff_het.backend.in_process.values import Cohort

Function = Callable[[Any, "Run"], Any]


class ClientThreads:
    """A fixed number of threads."""

    def __init__(self, count: int):
        self._count = count
        self._pool = concurrent.futures.ThreadPoolExecutor(count, thread_name_prefix="client")

    def map(
        self,
        call: Callable[[int], Any],
        order: Sequence[int],
        cancellation: internals.CancellationManager,
    ) -> list[Any]:
        """Calls a function for the clients 0, 1, ...; returns its results in that order.

        The first error, or an interrupt, stops TensorFlow in all clients that are under way: when
        this returns or raises, none of them runs any more.

        Args:
          call: The function of a client's index.
          order: The clients in the order in which they are started.
          cancellation: What stops TensorFlow in `call`.

        Raises:
          Exception: What `call` raised first; that of the first client if several did.
        """
        todo = collections.deque(order)
        results: dict[int, Any] = {}
        errors: dict[int, BaseException] = {}

        def stop() -> None:
            todo.clear()
            cancellation.start_cancel()

        def work() -> None:
            while todo:
                try:
                    client = todo.popleft()
                except IndexError:  # Another thread took the last one.
                    return
                try:
                    results[client] = call(client)
                except BaseException as error:
                    errors[client] = error
                    stop()

        futures = [self._pool.submit(work) for _ in range(min(self._count, len(order)))]
        try:
            concurrent.futures.wait(futures)
        except BaseException:  # An interrupt of the waiting thread.
            stop()
            concurrent.futures.wait(futures)
            raise
        if errors:
            # Those that were stopped fail as well, sometimes before the one that stopped them.
            echoes = {c for c, e in errors.items() if isinstance(e, tf.errors.CancelledError)}
            raise errors[min(errors, key=lambda client: (client in echoes, client))]
        return [results[client] for client in range(len(order))]

    def close(self) -> None:
        """Ends the threads."""
        self._pool.shutdown()


class Run:
    """One execution of a computation.

    Attributes:
      num_clients: How many clients the arguments hold.
      cancellation: What stops TensorFlow's calls in it.
      library: None; while a part of it is traced, where the names of a graph's functions go.
    """

    library: list[str] | None = None

    def __init__(self, threads: ClientThreads, cohort: Cohort):
        self.num_clients = len(cohort.sizes)
        self.cancellation = internals.CancellationManager()
        # The largest first, so that no thread is left with one when the others are done.
        self._order = sorted(range(self.num_clients), key=lambda c: -cohort.sizes[c])
        self._threads = threads
        self._ids = cohort.ids

    def tracing(self, library: list[str]) -> "Run":
        """Returns this execution for values that are tensors of a graph."""
        traced = copy.copy(self)
        traced.library = library
        return traced

    def again(self) -> "Run":
        """Returns this execution after an error, which has stopped TensorFlow's calls in it."""
        anew = copy.copy(self)
        anew.cancellation = internals.CancellationManager()
        return anew

    def map_clients(self, function: Function, arguments: Sequence[Any]) -> list[Any]:
        """Calls the function for each client; results are in the clients' order."""

        def call(client: int) -> Any:
            try:
                return function(arguments[client], self)
            except tf.errors.OpError as error:
                known = f" (client={self._ids[client].numpy()})" if self._ids else ""
                message = f"Client {client} of this call{known}: {error.message}"
                raise type(error)(error.node_def, error.op, message) from error

        return self._threads.map(call, self._order, self.cancellation)
