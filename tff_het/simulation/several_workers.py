"""A round's clients on several machines.

    with several_workers.use(["first:8000", "second:8000"]):
        result = loop.train(process, population, schedule, settings)

Each machine runs a worker of TensorFlow Federated (`worker_process`). `feeding.run_round` splits a
cohort over them; each executes `client_update` on its part. What all of them gave comes together
here, in the clients' order, and `server_update` is executed on this machine, by a worker of its
own. So the numbers are those of the runtime `worker`, whatever the aggregator and however many
workers there are, and and which were lost on the way: its clients are done again by the others.

The price is bandwidth: sums are not made where the clients are, so each client's whole update comes
here, as it would from real clients.
"""

import concurrent.futures
import contextlib
import functools
import logging
import os
import re
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import grpc
import numpy as np
import tensorflow as tf

from tff_het.backend.names import tff
from tff_het.learning import example_files
from tff_het.learning.process import FederatedProcess, ProcessOutput, ServerState
from tff_het.numbers import Number
from tff_het.simulation import feeding, remote, runtime
from tff_het.simulation.shared_examples import SharedExamples, SharedFile

DEADLINE_SECONDS = 60.0

# A call that no worker knows: that it says so shows that it is there, whatever else it computes.
_PING = "/tff_het.Worker/Ping"
_BROKEN = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED)
# What gRPC makes of an answer that is none of its own, such as a proxy's for a host that is gone.
_NOT_GRPC = "Received http2 header with status"
# What a worker says to a call that refers to what one before it, at the same address, held.
_STARTED_ANEW = "No executor found for ID"


class NoWorkerLeft(ConnectionError):  # noqa: N818
    """All workers are lost, and none came back; the message says how each was lost."""


class _WorkerLost(Exception):  # noqa: N818
    """A worker ended or fell silent while it was needed."""


class _Worker:
    """One worker and the connection to it, which is made again whenever it was lost."""

    def __init__(self, address: str, deadline: float, compiler: remote.Compiler) -> None:
        self.address = address
        self.why_lost: str | None = None
        self._deadline = deadline
        self._pause = min(1.0, deadline / 4)
        self._compiler = compiler
        self._lock = threading.Lock()
        self._connect()

    def is_serving(self) -> bool:
        """Whether it answers; does not wait for it."""
        with self._lock:
            if not self._connected or (self._answer.done() and self._how_lost(self._answer)):
                self._disconnect()
                self._connect()
            return self._answer.done() and self._how_lost(self._answer) is None

    def call(self, computation: Any, *arguments: Any) -> Any:
        """Executes a computation there.

        Raises:
            _WorkerLost: If the worker ended, or gave no sign of life within the deadline.
        """
        ended = threading.Event()
        watch = threading.Thread(target=self._watch, args=[ended], daemon=True)
        watch.start()
        try:
            with tff.framework.get_context_stack().install(self._context):
                return computation(*arguments)
        except Exception as error:
            # Whatever failed because of it, such as a call on the channel that was closed.
            if not self._connected:
                raise _WorkerLost(f"{self.address}: {self.why_lost}") from error
            raise
        finally:
            ended.set()
            watch.join()

    def can_read(self, path: str) -> bool:
        """Whether it finds a file under this path."""
        try:
            return int(self.call(_file_size, path)) > 0
        except (tf.errors.OpError, _WorkerLost):
            return False

    def close(self) -> None:
        """Ends the connection, and with it all calls under way."""
        self._lose("the connection was closed")

    def _connect(self) -> None:
        self._connected = True
        self._channel = grpc.insecure_channel(self.address, remote.CHANNEL_OPTIONS)
        self._ping = self._channel.unary_unary(_PING)
        # Goes out as soon as there is somebody to answer.
        self._answer = self._ping.future(b"", wait_for_ready=True)
        self._context = remote.RemoteContext(self._channel, self._why_gone, self._compiler)

    def _disconnect(self) -> None:
        self._connected = False
        self._channel.close()
        self._context.forget_values()

    def _lose(self, why: str) -> None:
        with self._lock:
            if self._connected:
                self.why_lost = why
                self._disconnect()

    def _why_gone(self, error: grpc.RpcError) -> Exception | None:
        if how := self._how_lost(error):
            self._lose(how)
        return None if self._connected else _WorkerLost(f"{self.address}: {self.why_lost}")

    def _watch(self, ended: threading.Event) -> None:
        """Pings until the call has ended: a process that was stopped breaks no connection."""
        patience = self._deadline - self._pause
        while not ended.wait(self._pause):
            try:
                how = self._how_lost(self._ping.future(b"", timeout=patience))
            except ValueError:  # The channel is closed: lost already.
                return
            if how:
                self._lose(how)
                return

    def _how_lost(self, answer: Any) -> str | None:
        """What an answer (waits for it), or a call's error, says about it; None: it is there."""
        details = answer.details() or ""
        if answer.code() == grpc.StatusCode.DEADLINE_EXCEEDED:
            return f"no sign of life within {self._deadline:g} s ({details})"
        if answer.code() in _BROKEN:
            return f"the connection broke ({details})"
        if details.startswith(_NOT_GRPC):
            return f"something that is no worker answers there ({details})"
        return "it was started anew" if _STARTED_ANEW in details else None


class SeveralWorkersContext(tff.framework.SyncContext, feeding.Feeding):
    """Executes clients on several workers, and everything else in its own local worker.

    Attributes:
        shared_examples: Where clients' examples stand in files that all workers can read; None
            where examples are sent.
    """

    def __init__(
        self,
        local: runtime.WorkerContext,
        addresses: Sequence[str],
        deadline: float,
        shared_examples: SharedExamples | None,
    ) -> None:
        self.shared_examples = shared_examples
        self._local = local
        self._deadline = deadline
        compiler = _compiling_once()
        self._workers = [_Worker(address, deadline, compiler) for address in addresses]
        self._threads = concurrent.futures.ThreadPoolExecutor(
            len(addresses), thread_name_prefix="worker"
        )

    def invoke(self, comp: object, arg: object) -> object:
        return self._local.invoke(comp, arg)

    def place(self, client: int, columns: Mapping[str, Any]) -> Any:
        """Returns where the columns stand for all workers; themselves if nowhere."""
        if self.shared_examples is None:
            return columns
        spec = {
            name: tf.TensorSpec([None, *column.shape[1:]], column.dtype)
            for name, column in columns.items()
        }
        return self.shared_examples.put(client, columns, spec)

    def run_round(
        self, process: FederatedProcess, state: ServerState, clients: Sequence[feeding.ClientInput]
    ) -> ProcessOutput:
        """As `Feeding`: `client_update` over the workers, then `server_update` here."""
        spec, at_clients = process.model.example_spec, process
        examples: list[Any]
        if (shared := self.shared_examples) is None:
            examples = [example_files.checked(client.examples, spec) for client in clients]
            sizes = [len(next(iter(columns.values()))) for columns in examples]
        else:
            at_clients = process.reading_files
            files = [
                client.examples
                if isinstance(client.examples, SharedFile)
                else shared.put(client.client, client.examples, spec)
                for client in clients
            ]
            examples = [file.path for file in files]
            sizes = [file.num_examples for file in files]
        download, given = process.download(state), feeding.arguments(clients, examples)
        sent = self.map_clients(at_clients.client_update, download, given, sizes)
        return feeding.server_half(process, state, sent)

    def map_clients(
        self, computation: Any, at_server: Any, at_clients: Sequence[Any], sizes: Sequence[int]
    ) -> list[Any]:
        """Executes a computation whose result at each client depends on this client alone.

        Args:
            computation: (at_server, at_clients) -> values at clients, which have a field `client`.
            at_server: What all clients get.
            at_clients: What each gets, with a field `client` that no two share.
            sizes: About how much work each is, in any unit.

        Returns:
            Results in the order of `at_clients`.

        Raises:
            NoWorkerLeft: If all workers are lost and none comes back within the deadline, or
                clients were begun so often that they must be what workers end of.
            tf.errors.OpError: What TensorFlow raised in a computation.
        """
        results: dict[int, Any] = {}
        waiting = list(range(len(at_clients)))
        # All workers may be lost in one round, even one after another, but not again and again.
        for _ in range(len(self._workers) + 1):
            parts = _split(waiting, sizes, self._serving())
            calls = {
                self._threads.submit(
                    worker.call, computation, at_server, [at_clients[place] for place in part]
                ): part
                for worker, part in parts
            }
            concurrent.futures.wait(calls)
            waiting = []
            for call, part in calls.items():
                try:
                    results.update((int(one["client"]), one) for one in call.result())
                except _WorkerLost as error:
                    logging.warning("Lost a worker, its clients are done again: %s.", error)
                    waiting += part
            if not waiting:
                return [results[int(client["client"])] for client in at_clients]
        raise NoWorkerLeft(f"{self._how_lost()} A client may need more memory than they have.")

    def wait_for_all(self) -> None:
        """Returns when all workers answer, and see the folder that they share.

        Raises:
            TimeoutError: If one does not answer within the deadline.
            FileNotFoundError: If one does not see it.
        """
        end = time.monotonic() + self._deadline
        while silent := [one.address for one in self._workers if not one.is_serving()]:
            if time.monotonic() > end:
                raise TimeoutError(
                    f"No answer from {', '.join(silent)} within {self._deadline:g} s. Is a worker "
                    "running there, and does nothing on the way to it refuse the connection?"
                )
            time.sleep(0.05)
        if self.shared_examples is not None:
            with self.shared_examples.probe() as path:
                blind = [one.address for one in self._workers if not one.can_read(path)]
            if blind:
                raise FileNotFoundError(
                    f"The folder for shared examples has to be there for all workers under the "
                    f"path that it has here; {', '.join(blind)} cannot read {path}."
                )

    def close(self) -> None:
        """Ends all connections."""
        for worker in self._workers:
            worker.close()
        self._threads.shutdown()

    def _serving(self) -> list[_Worker]:
        """Returns the live workers, at least one, including workers that reconnected."""
        end = time.monotonic() + self._deadline
        while not (serving := [worker for worker in self._workers if worker.is_serving()]):
            if time.monotonic() > end:
                raise NoWorkerLeft(self._how_lost())
            time.sleep(0.05)
        return serving

    def _how_lost(self) -> str:
        each = "; ".join(f"{worker.address}: {worker.why_lost}" for worker in self._workers)
        return (
            f"No worker is left ({each}). A run with checkpoints goes on from the last of them "
            "when it is started again with workers that serve."
        )


def use(
    addresses: Sequence[str],
    *,
    deadline: float = DEADLINE_SECONDS,
    shared_examples_dir: str | os.PathLike[str] | None = None,
    clients_in_parallel: int | None = None,
) -> contextlib.AbstractContextManager[SeveralWorkersContext]:
    """Opens a runtime (see `runtime`) whose clients are on several workers.

    Connections are neither encrypted nor authenticated: use networks that you trust.

    Args:
        addresses: Where workers serve, `host:port` each.
        deadline: After how many seconds without a sign of life a worker is lost. It may compute for
            as long as it takes: what counts is whether it answers meanwhile. A worker that serves
            again is given clients again, from the next round on.
        shared_examples_dir: A folder that all workers see under the same path: examples stand there
            in files that they read, instead of being sent in each round.
        clients_in_parallel: As of `runtime.worker`, for the worker of this machine, which trains no
            clients of rounds.

    Raises:
        ValueError: If there is no address, two are the same, one is not of the form, or the
            deadline is not positive.
        FileNotFoundError: If there is no such folder, here or, on entering, for a worker.
        TimeoutError: On entering, if a worker does not answer within the deadline.
        NoWorkerLeft: In a round, see `SeveralWorkersContext.map_clients`.
    """
    if not addresses:
        raise ValueError("Expected the address of a worker, host:port; found none.")
    for address in addresses:
        host, _, port = address.rpartition(":")
        named = re.fullmatch(r"[\w.-]+|\[[0-9A-Fa-f:.]+\]", host)
        if not named or not (port.isdecimal() and 0 < int(port) < 2**16):
            raise ValueError(f"Expected a worker's address as host:port, found {address!r}.")
    if len(set(addresses)) < len(addresses):
        raise ValueError(f"Expected different workers, found {', '.join(addresses)}.")
    Number(low=0, above=True).check("deadline", deadline)
    shared = None if shared_examples_dir is None else SharedExamples(shared_examples_dir)
    return _open(addresses, deadline, shared, clients_in_parallel)


@contextlib.contextmanager
def _open(
    addresses: Sequence[str],
    deadline: float,
    shared: SharedExamples | None,
    clients_in_parallel: int | None,
) -> Iterator[SeveralWorkersContext]:
    with runtime.worker(clients_in_parallel=clients_in_parallel) as local:
        context = SeveralWorkersContext(local, addresses, deadline, shared)
        try:
            context.wait_for_all()
            with tff.framework.get_context_stack().install(context):
                yield context
        finally:
            context.close()


@tff.tensorflow.computation(np.str_)
def _file_size(path):
    return tf.strings.length(tf.io.read_file(path))


def _compiling_once() -> remote.Compiler:
    """A compiler that compiles once for all workers, which takes seconds."""
    compiled = functools.lru_cache(tff.backends.native.desugar_and_transform_to_native)
    lock = threading.Lock()

    def compile_once(computation: Any) -> Any:
        with lock:
            return compiled(computation)

    return compile_once


def _split(
    places: Sequence[int], sizes: Sequence[int], workers: Sequence[_Worker]
) -> list[tuple[_Worker, list[int]]]:
    """Assigns clients, the largest first, each to the worker with the least to do."""
    parts: list[list[int]] = [[] for _ in workers]
    loads = [(0, 0)] * len(workers)
    for place in sorted(places, key=lambda place: -sizes[place]):
        least = loads.index(min(loads))
        parts[least].append(place)
        loads[least] = (loads[least][0] + sizes[place], len(parts[least]))
    return [(worker, part) for worker, part in zip(workers, parts, strict=True) if part]
