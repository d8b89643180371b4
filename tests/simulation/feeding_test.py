"""Examples reach the worker as files in memory, with the same result as arguments."""

import contextlib
import os
import resource

import numpy as np
import pytest
import tensorflow as tf

from tff_het import seeding
from tff_het.simulation import feeding, runtime


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


def cohort(process, population, state, clients):
    return [
        feeding.ClientInput(
            client=client,
            seed=seeding.stateless_seed(0, seeding.CLIENT_WORK, 0, client),
            examples=population[client].train,
            state=process.init_state(client, 0, state),
        )
        for client in clients
    ]


def assert_same(one, other):
    tf.nest.map_structure(np.testing.assert_array_equal, one.state, other.state)
    tf.nest.map_structure(np.testing.assert_array_equal, one.metrics, other.metrics)
    by_client = [{int(k["client"]): k["state"] for k in o.client_states} for o in (one, other)]
    tf.nest.map_structure(np.testing.assert_array_equal, *by_client)


@pytest.mark.parametrize("method", ["hdafl", pytest.param("local_only", marks=pytest.mark.slow)])
def test_files_and_arrays_give_the_same_bits(
    worker, monkeypatch, make_process, make_population, method
):
    process, population = make_process(method), make_population(5)
    state = process.initialize()
    clients = cohort(process, population, state, [0, 2, 4])
    in_files = feeding.run_round(process, state, clients)
    monkeypatch.setattr(type(worker), "run_round", feeding.Feeding.run_round)
    as_arrays = feeding.run_round(process, state, clients)
    assert_same(in_files, as_arrays)
    assert in_files.metrics["train"]["num_examples"] == 12 + 14 + 16


def test_columns_may_stand_in_any_order_and_more_may_be_there(
    worker, make_process, make_population
):
    process, population = make_process("hdafl"), make_population(2)
    state = process.initialize()
    clients = cohort(process, population, state, [0, 1])
    others = [
        client._replace(
            examples={"z": np.zeros(3), "y": client.examples["y"], "x": client.examples["x"]}
        )
        for client in clients
    ]
    assert_same(
        feeding.run_round(process, state, clients), feeding.run_round(process, state, others)
    )


def test_client_without_examples_changes_nothing(worker, make_process, make_population):
    process, population = make_process("fed_avg"), make_population(2)
    state = process.initialize()
    (client,) = cohort(process, population, state, [0])
    empty = client._replace(
        client=1, examples={name: column[:0] for name, column in client.examples.items()}
    )
    alone = feeding.run_round(process, state, [client])
    both = feeding.run_round(process, state, [client, empty])
    tf.nest.map_structure(np.testing.assert_array_equal, alone.state, both.state)
    assert both.metrics["train"]["num_examples"] == 12
    nothing = feeding.run_round(process, state, [empty])
    tf.nest.map_structure(np.testing.assert_array_equal, nothing.state.weights, state.weights)


def test_no_files_stay_open(worker, make_process, make_population):
    process, population = make_process("hdafl"), make_population(6)
    state = process.initialize()
    clients = cohort(process, population, state, range(6))
    feeding.run_round(process, state, clients)
    before = open_files()
    for _ in range(3):
        feeding.run_round(process, state, clients)
    wrong = clients[0]._replace(examples={"x": np.zeros([2, 4]), "y": np.zeros(2, np.int32)})
    with pytest.raises(ValueError, match="Column 'x' should be float32"):
        feeding.run_round(process, state, [*clients[1:], wrong])
    with pytest.raises((TypeError, ValueError)):
        feeding.run_round(process, state, [clients[0]._replace(seed=np.zeros(3, np.int32))])
    assert open_files() == before


def test_cohort_larger_than_the_limit_of_open_files(worker, make_process, make_population):
    process, population = make_process("fed_avg"), make_population(2)
    state = process.initialize()
    (client,) = cohort(process, population, state, [0])
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    clients = [client._replace(client=index) for index in range(300)]
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (open_files() + 100, limits[1]))
        output = feeding.run_round(process, state, clients)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert output.metrics["train"]["num_examples"] == 300 * 12


def test_prepared_examples_give_the_same_bits(each_runtime, make_process, make_population):
    process, population = make_process("hdafl"), make_population(3)
    state = process.initialize()
    prepared = feeding.Prepared(process, population)
    clients = cohort(process, population, state, [0, 1, 2])
    others = [client._replace(examples=prepared[client.client]) for client in clients]
    assert_same(
        feeding.run_round(process, state, clients), feeding.run_round(process, state, others)
    )


def test_prepared_examples_stay_up_to_a_bound(make_process, make_population, monkeypatch):
    population = make_population(3)
    with runtime.use("in_process", clients_in_parallel=1):
        prepared = feeding.Prepared(make_process("hdafl"), population)
        first = prepared[0]
        assert isinstance(first["x"], tf.Tensor) and prepared[0] is first
        size = sum(column.nbytes for column in population[0].train.values())
        monkeypatch.setattr(feeding, "_KEPT_BYTES", 2.5 * size)
        prepared[1], prepared[0], prepared[2]
        assert prepared[0] is first  # Used more recently than client 1.
        assert list(prepared._placed) == [2, 0]


def test_prepared_examples_do_not_stay_where_memory_is_not_to_grow(make_process, make_population):
    with runtime.use("in_process", clients_in_parallel=1):
        prepared = feeding.Prepared(make_process("hdafl"), make_population(3), in_memory=False)
        for client in range(3):
            assert isinstance(prepared[client]["x"], tf.Tensor)
            assert list(prepared._placed) == [client]


@pytest.mark.parametrize("name", ["in_process", "worker"])
def test_other_columns_are_refused_alike(worker, make_process, make_population, name):
    process, population = make_process("hdafl"), make_population(1)
    with contextlib.ExitStack() as stack:
        if name != "worker":
            stack.enter_context(runtime.use(name, clients_in_parallel=1))
        state = process.initialize()
        (client,) = cohort(process, population, state, [0])
        for change, message in (
            ({"x": client.examples["x"].astype(np.float64)}, "'x' should be float32 .*float64"),
            ({"x": client.examples["x"][:, :2]}, "'x' should be float32 .*2"),
            ({"y": client.examples["y"][:3]}, "'y' has 3 examples, others have 12"),
        ):
            wrong = client._replace(examples={**client.examples, **change})
            with pytest.raises(ValueError, match=message):
                feeding.run_round(process, state, [wrong])
        without = client._replace(examples={"x": client.examples["x"]})
        with pytest.raises(ValueError, match=r"'y' should be .* only \['x'\]"):
            feeding.run_round(process, state, [without])
