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
import os
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import time
import types
import weakref
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import grpc
import tensorflow as tf
import tensorflow_federated as tff

from tff_het.simulation import dying_with_parent

_HOST = "127.0.0.1"
_START_SECONDS = 120.0  # Reading 300 MB from a cold disk included.
_EXIT_SECONDS = 5.0  # From a broken connection to the exit status of the process.
_LOG_TAIL_BYTES = 4096

_CHANNEL_OPTIONS = [
    # Instead of 4 MB, less than many models. Protocol buffers themselves end at 2 GB.
    ("grpc.max_receive_message_length", -1),
    ("grpc.max_send_message_length", -1),
    # An http_proxy in the environment is not meant for our own child.
    ("grpc.enable_http_proxy", 0),
]

_Request = TypeVar("_Request")
_Response = TypeVar("_Response")


class WorkerDied(RuntimeError):  # noqa: N818
    """The worker process ended while it was needed; the message has its status and last output."""


class _Process:
    """The worker's process: started, watched and ended here, and nowhere else."""

    def __init__(self, clients_in_parallel: int, log_path: str | os.PathLike[str] | None) -> None:
        binary = pathlib.Path(tff.__file__).parent / "data" / "worker_binary"
        if not binary.is_file():
            raise RuntimeError(f"Expected TensorFlow Federated's worker at {binary}.")
        # Without a path the file has no name either, so nothing is left even by a SIGKILL.
        self._log = open(log_path, "a+b") if log_path else tempfile.TemporaryFile()  # noqa: SIM115
        self._log_start = os.fstat(self._log.fileno()).st_size
        # gRPC shares a port between all servers that ask for it, so two workers that were given the
        # same free port would take each other's calls. A bound socket keeps the port ours.
        self._reservation = socket.socket()
        self._reservation.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        self._reservation.bind(("", 0))
        self.port: int = self._reservation.getsockname()[1]
        self.stopped = False
        try:
            self._popen = self._start(binary, clients_in_parallel)
        except BaseException:
            self._log.close()
            self._reservation.close()
            raise
        self.pid = self._popen.pid

    def _start(self, binary: pathlib.Path, clients_in_parallel: int) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [
                # Not by a function between fork and exec: among many threads that may crash.
                *(sys.executable, "-I", "-S", dying_with_parent.__file__, str(os.getpid())),
                os.fspath(binary),
                f"--port={self.port}",
                f"--max_concurrent_computation_calls={clients_in_parallel}",
            ],
            # One thread a client: 1.2 times faster with as many clients as cores, and the last bits
            # of a convolution's gradient do not depend on how many cores there are.
            env={"TF_NUM_INTRAOP_THREADS": "1", **os.environ},
            # Not our own streams: a pipe behind them would stay open as long as the worker lives.
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=self._log,
            # Ctrl-C is for the training loop to handle, not for the worker to die of.
            start_new_session=True,
        )

    def wait_until_serving(self) -> None:
        """Returns as soon as the worker accepts connections.

        Raises:
            WorkerDied: If the process ended first.
            TimeoutError: If it does not serve after two minutes.
        """
        deadline = time.monotonic() + _START_SECONDS
        while not self.has_ended(within_seconds=0.05):
            with contextlib.suppress(OSError):
                socket.create_connection((_HOST, self.port), timeout=1).close()
                return
            if time.monotonic() > deadline:
                raise TimeoutError(
                    f"The worker does not serve after {_START_SECONDS:.0f} s.{self._log_tail()}"
                )
        raise self.end_error()

    def has_ended(self, within_seconds: float) -> bool:
        """Whether the process has ended, or does within that time."""
        try:
            self._popen.wait(within_seconds)
        except subprocess.TimeoutExpired:
            return False
        return True

    def end_error(self) -> RuntimeError:
        """Why a process that has ended is not there any more."""
        if self.stopped:
            return RuntimeError("This worker was stopped: the `with` block that opened it is over.")
        status = self._popen.returncode
        if status >= 0:
            how = f"with exit code {status}"
        else:
            how = f"by signal {-status} ({signal.strsignal(-status)})"
            if -status == signal.SIGKILL:
                how += ", which is also what the system does when memory runs out"
        return WorkerDied(f"The worker (process {self.pid}) ended {how}.{self._log_tail()}")

    def stop(self) -> None:
        """Ends the process and waits for its end."""
        self.stopped = True
        self._popen.kill()  # It has nothing to save, and may be in the middle of a round.
        self._popen.wait()
        self._log.close()
        self._reservation.close()

    def _log_tail(self) -> str:
        end = os.fstat(self._log.fileno()).st_size
        start = max(self._log_start, end - _LOG_TAIL_BYTES)
        text = os.pread(self._log.fileno(), end - start, start).decode(errors="replace").strip()
        return f" The end of its log:\n{text}" if text else " Its log is empty."


class _Stub(tff.framework.RemoteExecutorGrpcStub):
    """A stub that says at once what went wrong.

    The context retries for ever what the stub marks as retryable: UNAVAILABLE, which is what a dead
    worker looks like, and FAILED_PRECONDITION, which any TensorFlow operation may raise.
    """

    def __init__(self, channel: grpc.Channel, process: _Process) -> None:
        # The base class also watches the connection, for a flag that nobody reads here, in a thread
        # that prints a traceback if the channel is closed meanwhile.
        super().__init__(
            types.SimpleNamespace(unary_unary=channel.unary_unary, subscribe=lambda *_, **__: None)
        )
        self._process = process

    def _call(self, rpc: Callable[[_Request], _Response], request: _Request) -> _Response:
        try:
            return rpc(request)
        except grpc.RpcError as error:
            unavailable = error.code() is grpc.StatusCode.UNAVAILABLE
            # The connection breaks a moment before the process can be waited for.
            if self._process.has_ended(within_seconds=_EXIT_SECONDS if unavailable else 0):
                raise self._process.end_error() from error
            # TensorFlow's error codes are gRPC's, and its errors are easier to read and to catch.
            code, _ = error.code().value
            error_type = tf.compat.v1.errors.exception_type_from_error_code(code)
            raise error_type(None, None, error.details()) from error

    def get_executor(self, request: Any) -> Any:
        return self._call(super().get_executor, request)

    def create_value(self, request: Any) -> Any:
        return self._call(super().create_value, request)

    def create_struct(self, request: Any) -> Any:
        return self._call(super().create_struct, request)

    def create_call(self, request: Any) -> Any:
        return self._call(super().create_call, request)

    def create_selection(self, request: Any) -> Any:
        return self._call(super().create_selection, request)

    def compute(self, request: Any) -> Any:
        return self._call(super().compute, request)

    # These two free memory in the worker, often from a finalizer: there is nobody to tell.

    def dispose(self, request: Any) -> Any:
        with contextlib.suppress(grpc.RpcError):
            return super().dispose(request)

    def dispose_executor(self, request: Any) -> Any:
        with contextlib.suppress(grpc.RpcError):
            return super().dispose_executor(request)


class WorkerContext(tff.framework.SyncExecutionContext):
    """Executes computations in one worker process.

    Attributes:
        pid: The worker's process id.
        port: The port on which it serves.
        reads_files: Examples reach it faster as files than as arguments.
    """

    reads_files = True

    def __init__(self, channel: grpc.Channel, process: _Process) -> None:
        self.pid = process.pid
        self.port = process.port
        self._channel = channel
        self._process = process
        self._executors: weakref.WeakSet[tff.framework.RemoteExecutor] = weakref.WeakSet()
        stub = _Stub(channel, process)

        def new_executor(
            cardinalities: tff.framework.CardinalitiesType,
        ) -> tff.framework.RemoteExecutor:
            cardinalities.setdefault(tff.CLIENTS, 0)
            executor = tff.framework.RemoteExecutor(stub)
            executor.set_cardinalities(cardinalities)
            self._executors.add(executor)
            return executor

        super().__init__(
            tff.framework.ResourceManagingExecutorFactory(new_executor),
            tff.backends.native.desugar_and_transform_to_native,
            transform_args=tff.tensorflow.transform_args,
            transform_result=tff.tensorflow.transform_result,
        )

    def invoke(self, comp: object, arg: object) -> object:
        if self._process.stopped:
            raise self._process.end_error()
        return super().invoke(comp, arg)

    def close(self) -> None:
        """Ends the process and everything that would still speak to it; nothing the second time."""
        if self._process.stopped:
            return
        atexit.unregister(self.close)
        self._process.stop()  # First: this also ends a call under way in TFF's thread.
        # Otherwise finalizers of values in the worker go on asking it to free them.
        while self._executors:
            self._executors.pop().close()
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
    if clients_in_parallel is None:
        clients_in_parallel = len(os.sched_getaffinity(0))
    if clients_in_parallel < 1:
        raise ValueError(
            f"Expected clients_in_parallel of at least 1, found {clients_in_parallel}."
        )
    process = _Process(clients_in_parallel, log_path)
    channel = grpc.insecure_channel(f"{_HOST}:{process.port}", _CHANNEL_OPTIONS)
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
    # Here, since it refuses versions of TensorFlow and TFF that it was not tested with.
    from tff_het.simulation.in_process import in_process

    return in_process(clients_in_parallel=clients_in_parallel)


RUNTIMES: dict[str, Callable[..., contextlib.AbstractContextManager[tff.framework.SyncContext]]] = {
    "in_process": _in_process,
    "worker": worker,
}


def use(
    name: str, *, clients_in_parallel: int | None = None
) -> contextlib.AbstractContextManager[tff.framework.SyncContext]:
    """Opens the runtime called `name`: a context manager that yields the installed context.

    Args:
        name: One of `RUNTIMES`.
        clients_in_parallel: How many clients are computed at the same time, at least 1; the number
            of cores by default.

    Raises:
        ValueError: If there is no such runtime.
    """
    if name not in RUNTIMES:
        raise ValueError(f"Expected a runtime of {sorted(RUNTIMES)}, found {name!r}.")
    return RUNTIMES[name](clients_in_parallel=clients_in_parallel)
