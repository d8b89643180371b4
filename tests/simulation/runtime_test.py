"""Tests of the runtimes: right results, errors instead of hangs, and nothing left behind."""

import os
import pathlib
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator

import numpy as np
import pytest
import tensorflow as tf

from tff_het import backend
from tff_het.backend.names import tff
from tff_het.simulation import runtime

ROOT = pathlib.Path(__file__).parents[2]
SECONDS = 10.0  # "Within seconds", on a busy machine.

CLIENT_FLOATS = tff.FederatedType(np.float32, tff.CLIENTS)


@tff.tensorflow.computation(np.float32)
def square(x):
    return x * x


@tff.federated_computation(CLIENT_FLOATS, CLIENT_FLOATS)
def statistics(xs, weights):
    squares = tff.federated_map(square, xs)
    return tff.federated_sum(xs), tff.federated_mean(xs, weights), squares


@tff.tensorflow.computation(np.float32)
def negative_only(x):
    with tf.control_dependencies([tf.debugging.assert_less(x, 0.0, message="must be negative")]):
        return tf.identity(x)


@tff.tensorflow.computation(np.int32)
def count_slowly(n):
    return tf.while_loop(
        lambda i, _: i < n, lambda i, x: (i + 1, tf.sin(x)), (0, tf.ones([100, 100]))
    )[0]


def is_running(pid: int) -> bool:
    try:
        state = (
            pathlib.Path(f"/proc/{pid}/stat")
            .read_text(encoding="utf-8")
            .rsplit(")", 1)[1]
            .split()[0]
        )
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"  # A zombie whose parent is gone waits only for the system.


def is_served(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True


def assert_gone(pid: int, port: int) -> None:
    deadline = time.monotonic() + SECONDS
    # Both: the port is closed by the last thread, a moment after the first is a zombie.
    while (is_running(pid) or is_served(port)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not is_running(pid)
    assert not is_served(port)


def test_results_of_a_federated_computation():
    with runtime.use("worker", clients_in_parallel=1):
        total, mean, squares = statistics([1.0, 2.0, 6.0], [1.0, 1.0, 2.0])
    assert total == 9.0
    assert mean == 3.75
    assert squares == [1.0, 4.0, 36.0]  # Client-placed results, in the order of the clients.


def test_any_number_of_clients_after_another():
    with runtime.worker():
        for n in (3, 1, 3, 12):
            xs = np.arange(n, dtype=np.float32)
            total, mean, squares = statistics(list(xs), [1.0] * n)
            np.testing.assert_allclose([total, mean], [xs.sum(), xs.mean()], rtol=1e-6)
            np.testing.assert_array_equal(squares, xs**2)


def test_clients_in_parallel_does_not_change_results():
    results = []
    for clients_in_parallel in (1, 4):
        with runtime.worker(clients_in_parallel=clients_in_parallel):
            xs = np.random.default_rng(0).normal(size=20).astype(np.float32)
            results.append(statistics(list(xs), list(xs**2)))
    assert results[0] == results[1]


def test_values_larger_than_the_default_message():
    vector = tff.TensorType(np.float32, [None])
    double = tff.tensorflow.computation(lambda x: 2 * x, vector)
    with runtime.worker():
        result = double(np.ones(2_000_000, np.float32))  # 8 MB
    assert result.shape == (2_000_000,)
    assert result[-1] == 2.0


def test_previous_context_comes_back():
    before = tff.framework.get_context_stack().current
    with runtime.worker() as outer:
        with runtime.worker() as inner:
            assert tff.framework.get_context_stack().current is inner
            assert square(3.0) == 9.0
        assert_gone(inner.pid, inner.port)
        assert tff.framework.get_context_stack().current is outer
        assert square(3.0) == 9.0
    assert tff.framework.get_context_stack().current is before


def test_other_threads_install_the_context():
    results = []

    def call(context):
        with tff.framework.get_context_stack().install(context):
            results.append(square(3.0))

    with runtime.worker() as context:
        thread = threading.Thread(target=call, args=[context])
        thread.start()
        thread.join()
    assert results == [9.0]


def test_nothing_left_after_an_exception(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.raises(ZeroDivisionError), runtime.worker() as context:  # noqa: PT012
        square(3.0)
        assert list(tmp_path.iterdir()) == []
        raise ZeroDivisionError
    assert_gone(context.pid, context.port)
    assert list(tmp_path.iterdir()) == []


def test_error_of_a_computation_keeps_its_text_and_the_worker_goes_on():
    with runtime.worker():
        with pytest.raises(tf.errors.OpError, match="must be negative"):
            negative_only(1.0)
        assert negative_only(-1.0) == -1.0


def test_stopped_worker_says_so():
    with runtime.worker() as context:
        square(3.0)
    with (
        tff.framework.get_context_stack().install(context),
        pytest.raises(RuntimeError, match="`with` block that opened it is over"),
    ):
        square(3.0)


def test_worker_that_died_before_a_call_is_an_error_and_a_new_one_works():
    with runtime.worker() as context:
        with pytest.raises(tf.errors.OpError):
            negative_only(1.0)
        os.kill(context.pid, signal.SIGKILL)
        start = time.monotonic()
        with pytest.raises(runtime.WorkerDied, match=r"signal 9 \(Killed\)[\s\S]*must be negative"):
            statistics([1.0, 2.0], [1.0, 1.0])
        with pytest.raises(runtime.WorkerDied):  # And again, for whoever asks.
            square(3.0)
        assert time.monotonic() - start < SECONDS
    with runtime.worker():
        assert square(3.0) == 9.0


def test_worker_that_dies_during_a_call_is_an_error():
    with runtime.worker() as context:
        timer = threading.Timer(1.0, os.kill, [context.pid, signal.SIGKILL])
        timer.start()
        start = time.monotonic()
        with pytest.raises(runtime.WorkerDied, match=r"signal 9 \(Killed\)"):
            count_slowly(10**9)
        assert time.monotonic() - start < SECONDS


def test_worker_that_cannot_start_is_an_error(tmp_path, monkeypatch):
    binary = tmp_path / "worker_binary"
    binary.write_text("#!/bin/sh\necho no luck today\nexit 3\n")
    binary.chmod(0o755)
    monkeypatch.setattr(backend, "worker_binary", lambda: binary)
    with pytest.raises(runtime.WorkerDied, match=r"exit code 3[\s\S]*no luck today"):
        runtime.worker().__enter__()


def test_log_is_appended_and_errors_quote_only_their_own_part(tmp_path):
    log = tmp_path / "worker.log"
    log.write_text("an earlier run\n")
    with runtime.worker(log_path=log) as context:
        with pytest.raises(tf.errors.OpError):
            negative_only(1.0)
        os.kill(context.pid, signal.SIGKILL)
        with pytest.raises(runtime.WorkerDied) as error:
            square(3.0)
    assert "must be negative" in str(error.value)
    assert "an earlier run" not in str(error.value)
    assert log.read_text().startswith("an earlier run\n")
    assert "must be negative" in log.read_text()


def test_arguments_are_checked():
    with pytest.raises(ValueError, match=r"\['in_process', 'ray', 'worker'\], found 'cloud'"):
        runtime.use("cloud")
    with pytest.raises(ValueError, match="at least 1, found 0"):
        runtime.use("worker", clients_in_parallel=0).__enter__()


def test_where_internals_do_not_fit_the_worker_takes_over(monkeypatch, capsys):
    monkeypatch.setattr(tf, "__version__", "9.8.7")
    runtime.fitting.cache_clear()
    try:
        for _ in range(2):
            with runtime.use() as context:
                assert isinstance(context, runtime.WorkerContext)
                assert square(3.0) == 9.0
    finally:
        runtime.fitting.cache_clear()
    assert capsys.readouterr().err == (
        "Runtime: worker instead of in_process, since it uses internals of tensorflow 2.14, found "
        "9.8.7.\n"
    )


PROLOGUE = """
import tff_het.quiet
import contextlib, signal
import numpy as np
import tensorflow as tf
from tff_het.backend.names import tff
from tff_het.simulation import runtime

@tff.tensorflow.computation(np.int32)
def count_slowly(n):
    return tf.while_loop(
        lambda i, _: i < n, lambda i, x: (i + 1, tf.sin(x)), (0, tf.ones([100, 100]))
    )[0]

opening = contextlib.ExitStack()
context = opening.enter_context(runtime.use("worker"))
print(context.pid, context.port, count_slowly(10), flush=True)
input()
"""

PROGRAMS = {
    "clean": "opening.close()",
    "uncaught": "raise ZeroDivisionError",  # With the runtime open: nobody closes it.
    "endless": "count_slowly(10**9)",
    "interrupted": """
with opening:
    signal.signal(signal.SIGINT, lambda *_: print("noted", flush=True))
    print("counted", count_slowly(1_000_000), flush=True)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    count_slowly(10**9)
""",
}


class Program:
    """A program of its own that has a worker."""

    def __init__(self, name: str, directory: pathlib.Path):
        self.temporary = directory / "tmp"
        self.temporary.mkdir()
        script = directory / f"{name}.py"
        script.write_text(PROLOGUE + PROGRAMS[name])
        self.popen = subprocess.Popen(
            [sys.executable, script],
            cwd=directory,
            env={**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(self.temporary)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,  # A process group of its own, as in a terminal.
        )

    def read_line(self) -> str:
        assert self.popen.stdout is not None
        return self.popen.stdout.readline()

    def go_on(self) -> None:
        """Waits for the worker, then lets the program do what it is named after."""
        self.pid, self.port, counted = map(int, self.read_line().split())
        assert counted == 10
        assert self.popen.stdin is not None
        self.popen.stdin.write("\n")
        self.popen.stdin.flush()

    def finish(self) -> tuple[str, str]:
        """Waits for the end of the pipes, as `program | cat` does; nothing may be left."""
        output = self.popen.communicate(timeout=30)
        assert_gone(self.pid, self.port)
        assert list(self.temporary.iterdir()) == []
        return output


@pytest.fixture
def start(tmp_path) -> Iterator[Callable[[str], Program]]:
    started = []

    def start(name: str) -> Program:
        started.append(Program(name, tmp_path))
        return started[-1]

    yield start
    for program in started:
        program.popen.kill()
        program.popen.communicate()


@pytest.mark.slow
def test_clean_program_is_silent_and_leaves_nothing(start):
    program = start("clean")
    program.go_on()
    assert program.finish() == ("", "")
    assert program.popen.returncode == 0


@pytest.mark.slow
def test_uncaught_exception_leaves_nothing(start):
    program = start("uncaught")
    program.go_on()
    _, stderr = program.finish()
    assert program.popen.returncode == 1
    assert stderr.startswith("Traceback")
    assert stderr.endswith("ZeroDivisionError\n")


@pytest.mark.parametrize(
    "number", [pytest.param(signal.SIGTERM, marks=pytest.mark.slow), signal.SIGKILL]
)
def test_ended_program_leaves_nothing(start, number):
    program = start("endless")
    program.go_on()
    time.sleep(0.5)  # Into the endless call.
    program.popen.send_signal(number)
    assert program.finish() == ("", "")
    assert program.popen.returncode == -number


@pytest.mark.slow
def test_interrupt_leaves_the_round_to_the_program_and_nothing_behind(start):
    program = start("interrupted")
    program.go_on()
    time.sleep(0.5)  # Into the first call.
    os.killpg(program.popen.pid, signal.SIGINT)
    lines = {program.read_line(), program.read_line()}
    assert lines == {"noted\n", "counted 1000000\n"}
    time.sleep(0.5)  # Into the second.
    os.killpg(program.popen.pid, signal.SIGINT)
    _, stderr = program.finish()
    assert program.popen.returncode == -signal.SIGINT
    assert stderr.endswith("KeyboardInterrupt\n")
