"""Runtimes: who executes TensorFlow Federated's computations.

    with runtime.use("worker", clients_in_parallel=2):
        state = process.initialize()

A runtime is a context manager. While it is open, computations called in the thread that opened it
are executed by it; when it ends, whatever executed them before does so again, and nothing of it is
left: no process, no file.

The runtime `worker` is TensorFlow Federated's own executor, a child process spoken to over gRPC.
TensorFlow Federated can start that process itself, but leaves it behind at every kind of exit and
waits for ever for one that died. Here it is owned, so that both are errors or impossible. Needs
Linux.
"""

import atexit
import contextlib
import functools
import os
import resource
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import grpc

from tff_het.backend import names
from tff_het.backend.names import tff
from tff_het.learning import example_files
from tff_het.learning.process import FederatedProcess, ProcessOutput, ServerState
from tff_het.simulation import feeding, remote, worker_process
from tff_het.simulation.worker_process import WorkerDied as WorkerDied
from tff_het.simulation.worker_process import WorkerProcess

_EXIT_SECONDS = 5.0  # From a broken connection to the exit status of the process.


class WorkerContext(remote.RemoteContext, feeding.Feeding):
    """Executes computations in one worker process.

    Attributes:
        pid: The worker's process id.
        port: The port on which it serves.
    """

    def __init__(self, channel: grpc.Channel, process: WorkerProcess) -> None:
        self.pid = process.pid
        self.port = process.port
        self._channel = channel
        self._process = process
        super().__init__(channel, self._why_gone)

    def _why_gone(self, error: grpc.RpcError) -> Exception | None:
        unavailable = error.code() is grpc.StatusCode.UNAVAILABLE
        # The connection breaks a moment before the process can be waited for.
        if self._process.has_ended(within_seconds=_EXIT_SECONDS if unavailable else 0):
            return self._process.end_error()
        return None

    def invoke(self, comp: object, arg: object) -> object:
        if self._process.stopped:
            raise self._process.end_error()
        return super().invoke(comp, arg)

    def place(self, client: int, columns: Mapping[str, Any]) -> Mapping[str, Any]:
        """Returns the columns: the worker gets them in each round."""
        return columns

    def run_round(
        self, process: FederatedProcess, state: ServerState, clients: Sequence[feeding.ClientInput]
    ) -> ProcessOutput:
        """As `Feeding`; examples become files in memory, which reach the worker faster.

        They have no name in the file system, so nothing is left of them, however the program ends.
        """
        spec = process.model.example_spec
        _allow_open_files(len(clients))
        with contextlib.ExitStack() as stack:
            examples = [
                stack.enter_context(_memory_file(example_files.to_bytes(client.examples, spec)))
                for client in clients
            ]
            return process.reading_files.next(state, feeding.arguments(clients, examples))

    def close(self) -> None:
        """Ends the process and everything that would still speak to it; nothing the second time."""
        if self._process.stopped:
            return
        atexit.unregister(self.close)
        self._process.stop()  # First: this also ends a call under way in TFF's thread.
        self.forget_values()
        self._channel.close()


@contextlib.contextmanager
def worker(
    *, clients_in_parallel: int | None = None, log_path: str | os.PathLike[str] | None = None
) -> Iterator[WorkerContext]:
    """Executes computations in a process of TensorFlow Federated's worker, owned by this block.

    The worker listens on all network interfaces, unencrypted and without authentication, and offers
    no choice in this: use it on machines and networks that you trust.

    Other threads do not inherit the context: they enter
    `tff.framework.get_context_stack().install(context)` with the context that this yields. The
    thread that opened the worker has to outlive it.

    Args:
        clients_in_parallel: How many clients are computed at the same time, at least 1; the number
            of cores by default. It changes time and memory, not the results: a client is computed
            by one thread, unless the environment has another `TF_NUM_INTRAOP_THREADS`.
        log_path: A file to which the worker's output is appended. By default it is only kept for
            error messages.

    Yields:
        The installed context, with the worker's `pid` and `port`.

    Raises:
        ValueError: If `clients_in_parallel` is less than 1.
        WorkerDied: If the worker ends before it serves. Also raised by a computation whose worker
            ended before or during the call, within seconds. What TensorFlow raised inside a
            computation comes back with its text as `tf.errors.InternalError`.
        TimeoutError: If the worker does not serve two minutes after its start.
    """
    process = WorkerProcess(clients_in_parallel, log_path=log_path)
    channel = grpc.insecure_channel(f"{worker_process.HOST}:{process.port}", remote.CHANNEL_OPTIONS)
    context = WorkerContext(channel, process)
    # For programs that end without leaving the block: later, what closing needs may be gone.
    atexit.register(context.close)
    try:
        process.wait_until_serving()
        with tff.framework.get_context_stack().install(context):
            yield context
    finally:
        context.close()


def _in_process(
    *, clients_in_parallel: int | None = None
) -> contextlib.AbstractContextManager[tff.framework.SyncContext]:
    # Here, since with other versions of TensorFlow and TFF it cannot even be imported.
    from tff_het.backend.in_process import in_process

    return in_process(clients_in_parallel=clients_in_parallel)


def _ray(**arguments: Any) -> contextlib.AbstractContextManager[tff.framework.SyncContext]:
    from tff_het.simulation import ray_runtime  # Which needs internals too.

    return ray_runtime.use(**arguments)


RUNTIMES: dict[str, Callable[..., contextlib.AbstractContextManager[tff.framework.SyncContext]]] = {
    "in_process": _in_process,
    "worker": worker,
    "ray": _ray,
}


@functools.cache
def fitting(name: str) -> str:
    """Returns the runtime that `use` opens for a name: with one line, `worker` for `in_process`.

    The latter uses internals of TensorFlow and TFF, and is not used with versions that it was not
    tested with.
    """
    reason = names.unfit()
    if name != "in_process" or reason is None:
        return name
    print(f"Runtime: worker instead of in_process, since {reason}.", file=sys.stderr)
    return "worker"


def use(
    name: str = "in_process", *, clients_in_parallel: int | None = None, **more: Any
) -> contextlib.AbstractContextManager[tff.framework.SyncContext]:
    """Opens the runtime called `name`: a context manager that yields the installed context.

    Args:
        name: One of `RUNTIMES`; see `fitting`.
        clients_in_parallel: How many clients are computed at the same time, at least 1; the number
            of cores by default.
        more: Arguments of this runtime alone.

    Raises:
        ValueError: If there is no such runtime.
    """
    if name not in RUNTIMES:
        raise ValueError(f"Expected a runtime of {sorted(RUNTIMES)}, found {name!r}.")
    return RUNTIMES[fitting(name)](clients_in_parallel=clients_in_parallel, **more)


def _allow_open_files(count: int) -> None:
    """Raises the process's limit, often 1,024, where a cohort needs more."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = count + len(os.listdir("/proc/self/fd")) + 64  # Those of others, opened meanwhile.
    if soft != resource.RLIM_INFINITY and soft < needed:
        allowed = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))


@contextlib.contextmanager
def _memory_file(parts: Sequence[memoryview]) -> Iterator[str]:
    descriptor = os.memfd_create("tff_het_examples")
    try:
        for part in parts:
            while part:
                part = part[os.write(descriptor, part) :]
        yield f"/proc/{os.getpid()}/fd/{descriptor}"
    finally:
        os.close(descriptor)
