"""The process of TensorFlow Federated's worker: started, watched and ended here, and nowhere else.

Needs Linux.
"""

import contextlib
import os
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import time

from tff_het import backend, dying_with_parent

HOST = "127.0.0.1"
_START_SECONDS = 120.0  # Reading 300 MB from a cold disk included.
_LOG_TAIL_BYTES = 4096


def _reserve() -> socket.socket:
    """Binds a free port, so that no worker but ours is given it.

    gRPC shares a port between all servers that ask for it: two workers on the same one would take
    each other's calls.
    """
    reservation = socket.socket()
    reservation.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    reservation.bind(("", 0))
    return reservation


class WorkerDied(RuntimeError):  # noqa: N818
    """The worker process ended while it was needed; the message has its status and last output."""


class WorkerProcess:
    """A worker's process.

    Attributes:
        pid: Its process id.
        port: The port on which it serves, on all network interfaces: it offers no choice in this.
        stopped: Whether `stop` was called.
    """

    def __init__(
        self,
        clients_in_parallel: int | None = None,
        *,
        log_path: str | os.PathLike[str] | None = None,
    ) -> None:
        """Starts the process, without waiting for it.

        Args:
            clients_in_parallel: How many clients are computed at the same time, at least 1; the
                number of cores by default. A client is computed by one thread, unless the
                environment has another `TF_NUM_INTRAOP_THREADS`.
            log_path: A file to which its output is appended. By default it is only kept for error
                messages.

        Raises:
            ValueError: If `clients_in_parallel` is less than 1.
        """
        if clients_in_parallel is None:
            clients_in_parallel = len(os.sched_getaffinity(0))
        if clients_in_parallel < 1:
            raise ValueError(
                f"Expected clients_in_parallel of at least 1, found {clients_in_parallel}."
            )
        binary = backend.worker_binary()
        if not binary.is_file():
            raise RuntimeError(f"Expected TensorFlow Federated's worker at {binary}.")
        self.stopped = False
        self._reservation = _reserve()
        self.port: int = self._reservation.getsockname()[1]
        # Without a path the file has no name either, so nothing is left even by a SIGKILL.
        self._log = open(log_path, "a+b") if log_path else tempfile.TemporaryFile()  # noqa: SIM115
        self._log_start = os.fstat(self._log.fileno()).st_size
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
                socket.create_connection((HOST, self.port), timeout=1).close()
                return
            if time.monotonic() > deadline:
                raise TimeoutError(
                    f"The worker does not serve after {_START_SECONDS:.0f} s.{self._log_tail()}"
                )
        raise self.end_error()

    def has_ended(self, within_seconds: float | None) -> bool:
        """Whether the process has ended, or does within that time; None waits for its end."""
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
