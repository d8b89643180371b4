"""The threads that run clients."""

import collections
import concurrent.futures
import threading
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from tff_het.backend import internals


def _is_echo(error: BaseException) -> bool:
    return isinstance(error, tf.errors.CancelledError)


class ClientThreads:
    """A fixed number of threads."""

    def __init__(self, count: int):
        self._count = count
        self._here = threading.local()
        self._pool = concurrent.futures.ThreadPoolExecutor(count, thread_name_prefix="client")

    @property
    def cancellation(self) -> internals.CancellationManager | None:
        """What stops TensorFlow's calls of the current thread, or None."""
        return getattr(self._here, "cancellation", None)

    def map(self, call: Callable[[int], Any], order: Sequence[int]) -> list[Any]:
        """Calls a function for the clients 0, 1, ...; returns its results in that order.

        The first error, or an interrupt, stops TensorFlow in all clients that are under way: when
        this returns or raises, none of them runs any more.

        Args:
          call: The function of a client's index.
          order: The clients in the order in which they are started.

        Raises:
          Exception: What `call` raised first; that of the first client if several did.
        """
        todo = collections.deque(order)
        results: dict[int, Any] = {}
        errors: dict[int, BaseException] = {}
        cancellation = internals.CancellationManager()

        def stop() -> None:
            todo.clear()
            cancellation.start_cancel()

        def work() -> None:
            self._here.cancellation = cancellation
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
            raise errors[min(errors, key=lambda c: (_is_echo(errors[c]), c))]
        return [results[client] for client in range(len(order))]

    def close(self) -> None:
        """Ends the threads."""
        self._pool.shutdown()
