"""Clients run side by side, the largest first."""

import threading

import numpy as np
import pytest
import tensorflow as tf

from tff_het.backend import internals
from tff_het.backend.in_process.threads import ClientThreads
from tff_het.backend.names import tff

NUMBERS = tff.FederatedType(np.int32, tff.CLIENTS)

meeting = threading.Barrier(2, timeout=60)


def meet(number: np.ndarray) -> np.ndarray:
    """Returns when two clients are here."""
    meeting.wait()
    return number


def test_clients_run_side_by_side(in_process):
    @tff.tensorflow.computation(np.int32)
    def work(number):
        met = tf.numpy_function(meet, [number], tf.int32, stateful=True)
        return tf.ensure_shape(met, [])

    @tff.federated_computation(NUMBERS)
    def run(numbers):
        return tff.federated_map(work, numbers)

    assert run([1, 2, 3, 4]) == [1, 2, 3, 4]


def test_largest_clients_start_first(in_process):
    """By bytes, whatever else clients hold."""
    vector = tff.TensorType(np.float32, [None])

    @tff.tensorflow.computation(vector, np.int32)
    def work(x, n):
        return tf.size(x) + n

    @tff.federated_computation(tff.FederatedType(vector, tff.CLIENTS), NUMBERS)
    def run(x, n):
        return tff.federated_map(work, (x, n))

    orders = []

    def record(self, call, order, cancellation):
        orders.append(list(order))
        return [call(client) for client in range(len(order))]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ClientThreads, "map", record)
        x = [np.ones(n, np.float32) for n in (3, 90, 0, 7)]
        assert run(x, [9, 1, 8, 2]) == [12, 91, 8, 9]
        run([np.ones(1, np.float32)] * 3, [1, 2, 3])
    assert orders == [[1, 3, 0, 2], [0, 1, 2]]


def test_no_thread_waits_while_there_is_work():
    """Every thread takes the next client as soon as it is free."""
    threads = ClientThreads(2)
    started, release = [], threading.Event()

    def call(client: int) -> int:
        started.append((client, threading.get_ident()))
        if client == 3:
            release.wait(30)  # The largest keeps one thread; the other does all the rest.
        elif len(started) == 5:
            release.set()
        return 10 * client

    assert threads.map(call, [3, 1, 4, 0, 2], internals.CancellationManager()) == [
        0,
        10,
        20,
        30,
        40,
    ]
    threads.close()
    assert [client for client, _ in started] == [3, 1, 4, 0, 2]
    (of_largest,) = {thread for client, thread in started if client == 3}
    (of_others,) = {thread for client, thread in started if client != 3}
    assert of_largest != of_others
