"""What fails in a client says whose it is, and leaves a runtime that works."""

import collections
import os
import pathlib
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import tensorflow as tf

import tff_het
from tff_het.backend import internals
from tff_het.backend.names import tff

NUMBERS = tff.FederatedType(np.int32, tff.CLIENTS)
CLIENT = tff.to_type(collections.OrderedDict(number=np.int32, client=np.str_))


@tff.tensorflow.computation(np.int32)
def inverse(x):
    with tf.control_dependencies([tf.debugging.assert_none_equal(x, 0, message="not of zero")]):
        return 1 / x


@tff.tensorflow.computation(np.int32)
def count_slowly(n):
    return tf.while_loop(
        lambda i, _: i < n, lambda i, x: (i + 1, tf.sin(x)), (0, tf.ones([100, 100]))
    )[0]


@tff.federated_computation(NUMBERS)
def inverses(numbers):
    return tff.federated_map(inverse, numbers)


@tff.federated_computation(NUMBERS)
def counts(numbers):
    return tff.federated_map(count_slowly, numbers)


def test_index_type_and_text(contexts):
    for context in contexts.values():
        with tff.framework.get_context_stack().install(context):
            for _ in range(2):
                with pytest.raises(
                    tf.errors.InvalidArgumentError,
                    match=r"(?s)Client 2 of this call: .*not of zero",
                ) as error:
                    inverses([1, 2, 0, 4, 5])
                assert isinstance(error.value.__cause__, tf.errors.InvalidArgumentError)
                assert inverses([1, 2, 4]) == [1, 0.5, 0.25]


def test_the_clients_own_name(in_process):
    @tff.federated_computation(tff.FederatedType(CLIENT, tff.CLIENTS))
    def run(clients):
        number = tff.federated_map(
            tff.tensorflow.computation(lambda client: client["number"], CLIENT), clients
        )
        return tff.federated_map(inverse, number)

    clients = [{"number": 1, "client": "Ann"}, {"number": 0, "client": "Bob"}]
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"Client 1 .* \(client=b'Bob'\)"):
        run(clients)


def test_an_error_stops_the_others(in_process):
    """They would need a minute; whether the failing one comes first or last."""

    @tff.tensorflow.computation(np.int32)
    def work(n):
        with tf.control_dependencies([tf.debugging.assert_positive(n, message="not negative")]):
            steps = n * 100_000_000
        return tf.while_loop(
            lambda i, _: i < steps, lambda i, x: (i + 1, tf.sin(x)), (0, tf.ones([100, 100]))
        )[0]

    @tff.federated_computation(NUMBERS)
    def run(numbers):
        return tff.federated_map(work, numbers)

    for numbers, failing in (([1, -1, 1, 1], 1), ([-1, 1, 1, 1], 0)):
        with pytest.raises(
            tf.errors.InvalidArgumentError, match=rf"(?s)Client {failing} of.*not negative"
        ):
            run(numbers)
    assert counts([3, 4]) == [3, 4]


def test_an_error_at_the_server_is_nobodys(in_process):
    @tff.federated_computation(NUMBERS)
    def run(numbers):
        return tff.federated_map(inverse, tff.federated_sum(numbers))

    with pytest.raises(tf.errors.InvalidArgumentError, match="not of zero") as error:
        run([1, -1])
    assert "Client" not in str(error.value)


def test_wrong_arguments_are_seen_before_work(in_process):
    began = []

    @tff.federated_computation(NUMBERS, NUMBERS)
    def run(one, other):
        return tff.federated_map(inverse, one), tff.federated_map(inverse, other)

    run([1], [1])
    original = internals.call
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(internals, "call", lambda *args: began.append(1) or original(*args))
        for numbers in ([1, 2], ["x"], [1.5], [[1]], 3):
            with pytest.raises((TypeError, ValueError)):
                run([1], numbers)
        assert began == []
        run([1], [1])
    assert began == [1]  # Both maps in one call.


PROGRAM = """
import tff_het.quiet
import numpy as np, tensorflow as tf
from tff_het.backend import internals
from tff_het.backend.names import tff
from tff_het.backend.in_process import in_process

@tff.tensorflow.computation(np.int32)
def count_slowly(n):
    return tf.while_loop(
        lambda i, _: i < n, lambda i, x: (i + 1, tf.sin(x)), (0, tf.ones([100, 100]))
    )[0]

@tff.federated_computation(tff.FederatedType(np.int32, tff.CLIENTS))
def counts(numbers):
    return tff.federated_map(count_slowly, numbers)

with in_process(clients_in_parallel=2):
    print(counts([1, 2, 3]), flush=True)
    try:
        counts([10**9] * 4)
    except KeyboardInterrupt:
        print("interrupted", counts([4, 5]), flush=True)
    counts([10**9] * 4)
"""


@pytest.mark.slow
def test_interrupts_stop_clients_and_the_program(tmp_path):
    """The clients of this program would need hours."""
    script = tmp_path / "program.py"
    script.write_text(PROGRAM)
    root = pathlib.Path(tff_het.__file__).parents[1]
    program = subprocess.Popen(
        [sys.executable, script],
        env={**os.environ, "PYTHONPATH": str(root)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        assert program.stdout is not None
        assert program.stdout.readline() == "[1, 2, 3]\n"
        time.sleep(0.5)  # Into the long call.
        program.send_signal(signal.SIGINT)
        assert program.stdout.readline() == "interrupted [4, 5]\n"
        time.sleep(0.5)
        program.send_signal(signal.SIGINT)
        output, errors = program.communicate(timeout=60)
        assert output == ""
        assert program.returncode == -signal.SIGINT, errors
        assert errors.endswith("KeyboardInterrupt\n")
    finally:
        program.kill()
        program.communicate()
