"""Contexts, their threads and what TensorFlow keeps for them come and go."""

import collections
import concurrent.futures
import gc
import threading

import numpy as np
import pytest
import tensorflow as tf

from tff_het.backend import internals
from tff_het.backend.in_process import InProcessContext, in_process
from tff_het.backend.in_process import context as context_module
from tff_het.backend.in_process import graphs as graphs_module
from tff_het.backend.names import tff

NUMBERS = tff.FederatedType(np.float32, tff.CLIENTS)


def adding(number: float):
    """A computation; equal for equal numbers, but another object."""
    add = tff.tensorflow.computation(lambda x: x + float(number), np.float32)
    return tff.federated_computation(lambda x: tff.federated_map(add, x), NUMBERS)


def functions() -> set[str]:
    """Names of this package's functions in TensorFlow's table."""
    gc.collect()
    names = internals.context.context().list_function_names()
    return {name for name in names if "tffhet" in str(name)}


def client_threads() -> int:
    return sum(thread.name.startswith("client") for thread in threading.enumerate())


def test_closing_leaves_nothing(contexts):
    threads = client_threads()
    add = adding(3)
    for _ in range(2):  # Closed and opened again.
        with in_process(clients_in_parallel=3) as context:
            assert add([1.0, 2.0, 3.0, 4.0]) == [4, 5, 6, 7]
            assert client_threads() > threads
        assert client_threads() == threads
    context.close()
    with (
        tff.framework.get_context_stack().install(context),
        pytest.raises(RuntimeError, match="was closed"),
    ):
        add([1.0])


def test_inside_another_context(in_process):
    with context_module.in_process(clients_in_parallel=1) as inner:
        assert tff.framework.get_context_stack().current is inner
    assert tff.framework.get_context_stack().current is in_process


def test_arguments_are_checked():
    with pytest.raises(ValueError, match="at least 1, found 0"):
        in_process(clients_in_parallel=0).__enter__()


def test_several_contexts_and_threads_at_once(contexts):
    """Of two Python threads in one context, and of two contexts, none sees another's results."""
    computations = [adding(number) for number in (10, 20)]

    def program(context: InProcessContext, number: int) -> None:
        with tff.framework.get_context_stack().install(context):
            for round_num in range(20):
                found = computations[number]([float(round_num + client) for client in range(6)])
                assert found == [10 * (number + 1) + round_num + client for client in range(6)]

    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        for future in [
            pool.submit(program, contexts[count], number)
            for count in (2, 2, 1)
            for number in (0, 1)
        ]:
            future.result(timeout=120)


@pytest.fixture
def counted(monkeypatch):
    """A context that counts what it compiles and imports; few of each are kept."""
    monkeypatch.setattr(context_module, "_plans", context_module.Plans(4))
    counts = {"compiled": 0, "imported": 0}
    compiler = context_module.call_dominant
    register = graphs_module._register

    def compile_(computation):
        counts["compiled"] += 1
        return compiler(computation)

    def register_(trace):
        counts["imported"] += 1
        return register(trace)

    monkeypatch.setattr(context_module, "call_dominant", compile_)
    monkeypatch.setattr(graphs_module, "_register", register_)
    with in_process(clients_in_parallel=1):
        yield counts


def test_equal_computations_are_compiled_and_imported_once(counted):
    first, second = adding(3), adding(3)
    assert first is not second
    assert first([1.0]) == second([1.0]) == first([1.0]) == [4]
    assert counted == {"compiled": 1, "imported": 1}
    # Another computation with the same graph.
    add = tff.tensorflow.computation(lambda x: x + 1, np.float32)
    assert add(1.0) == tff.federated_computation(lambda x: add(x), np.float32)(1.0) == 2
    assert counted == {"compiled": 3, "imported": 2}


def test_equal_computations_keep_their_own_containers(counted):
    def make(container):
        parameter = tff.StructWithPythonType([("a", np.int32)], container)
        return tff.tensorflow.computation(lambda x: container(a=x["a"]), parameter)

    assert type(make(dict)({"a": 1})) is dict
    assert type(make(collections.OrderedDict)({"a": 1})) is collections.OrderedDict
    assert counted["compiled"] == 1


@pytest.mark.slow
def test_what_is_not_used_is_given_back(counted):
    """Functions, and what they keep: objects that come and go leave no more than the bound."""
    before, sizes = functions(), []
    for number in range(12):
        assert adding(number)([1.0]) == [number + 1]
        sizes.append(len(functions() - before))
    assert sizes == [1, 2, 3] + [4] * 9
    assert counted == {"compiled": 12, "imported": 12}
    assert adding(0)([1.0]) == [1]  # Long forgotten.
    assert counted["compiled"] == 13


def test_what_takes_no_argument_is_not_kept(counted):
    """As `initialize`, of which each seed has one."""

    def make(number):
        return tff.tensorflow.computation(lambda: tf.constant(number))

    before = functions()
    for number in range(3):
        assert make(number)() == number
    assert counted["compiled"] == 3
    assert functions() == before


def test_a_computation_in_the_place_of_another(in_process):
    """Python gives a new object the id of one that is gone."""
    gone, new = adding(1), adding(2)
    assert gone([1.0]) == [2]
    plans = context_module._plans._plans
    plans[id(new)] = plans[id(gone)]
    assert new([1.0]) == [3]
