"""Tests of the new test against NumPy: the mean of the clients' logits, and their votes."""

import os
import threading
import time
import tracemalloc

import numpy as np
import pytest
import tensorflow as tf
from scipy import special, stats

from tff_het import methods
from tff_het.backend.names import tff
from tff_het.clients import Client, Population
from tff_het.evaluation.communication import sending_local_models
from tff_het.evaluation.ensemble import new_test
from tff_het.evaluation.local_test import global_test
from tff_het.learning.client_work import ClientState
from tff_het.learning.local_training import LocalTraining
from tff_het.learning.process import FederatedProcess, ServerState
from tff_het.models import architectures, networks
from tff_het.models.model import Variables

NUM_FEATURES, NUM_CLASSES, NUM_CLIENTS = 4, 3, 5


def make_process(method: str, **options) -> FederatedProcess:
    architecture = architectures.make(
        "tiny",
        {"x": (np.dtype(np.float32), (NUM_FEATURES,)), "y": (np.dtype(np.int64), ())},
        NUM_CLASSES,
        network=networks.mlp([5]),
    )
    training = LocalTraining(tff.learning.optimizers.build_sgdm(0.1), batch_size=5, epochs=1)
    return methods.build(method, architecture, training, seed=1, **options)


@pytest.fixture(scope="module")
def hdafl() -> FederatedProcess:
    """The first layer is local, as LG-FedAvg has it."""
    return make_process("hdafl", local_layers=["dense_1"])


def variables_of(process: FederatedProcess, seed: int) -> Variables:
    rng = np.random.default_rng(seed)
    return tf.nest.map_structure(
        lambda v: v.numpy() + rng.normal(0, 0.5, v.shape).astype(np.float32),
        process.model.initial_variables(seed),
    )


def server_state_of(variables: Variables) -> ServerState:
    return ServerState(np.int32(0), *variables, aggregator=(), server_step=())


def columns(num: int, seed: int = 1) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(num, NUM_FEATURES)).astype(np.float32)
    return {"x": x, "y": rng.integers(NUM_CLASSES, size=num)}


def population_of(num_clients: int) -> Population:
    """Of clients with k + 2 training examples."""
    return Population(
        Client(f"c{k}", columns(k + 2), columns(1), columns(1)) for k in range(num_clients)
    )


def test_the_ensemble_is_that_of_numpy_and_scipy(hdafl):
    shared = variables_of(hdafl, 0)
    own = [variables_of(hdafl, 10 + k).local_weights for k in range(NUM_CLIENTS)]
    examples = columns(2300)  # In three parts: `predict` takes 1000 at a time.

    found = new_test(
        hdafl,
        server_state_of(shared),
        population_of(NUM_CLIENTS),
        lambda k: ClientState(own[k], (), np.int32(k)),
        examples,
    )

    w2, b2 = (w.astype(np.float64) for w in shared.global_weights.trainable)
    logits = np.array(
        [np.maximum(examples["x"] @ w1 + b1, 0) @ w2 + b2 for w1, b1 in (o.trainable for o in own)]
    )
    y = examples["y"]
    mean = logits.mean(axis=0)
    votes = stats.mode(logits.argmax(axis=2), axis=0, keepdims=False).mode
    assert found.num_examples == 2300
    assert found.accuracy_average == np.mean(mean.argmax(axis=1) == y)
    assert found.accuracy_vote == np.mean(votes == y)
    loss = -np.mean(special.log_softmax(mean, axis=1)[np.arange(len(y)), y])
    assert found.loss == pytest.approx(loss, rel=1e-5)
    # The two differ, and from any single one.
    singles = [np.mean(one.argmax(axis=1) == y) for one in logits]
    assert len({found.accuracy_average, found.accuracy_vote, *singles}) == NUM_CLIENTS + 2


@pytest.mark.parametrize("method", ["fed_avg", "local_only"])
def test_of_one_model_it_is_the_global_test(method):
    """Also where all clients have their own, but equal ones."""
    process = make_process(method)
    state = server_state_of(variables_of(process, 3))
    examples = columns(200)
    found = new_test(
        process,
        state,
        population_of(NUM_CLIENTS),
        lambda k: ClientState(state.initial_local, (), np.int32(0)),
        examples,
    )
    fed_avg = make_process("fed_avg")
    model = fed_avg.model.split(process.model.join(Variables(state.weights, state.initial_local)))
    single = global_test(fed_avg, server_state_of(model), examples)
    assert found.accuracy_average == found.accuracy_vote == single.accuracy
    assert found.loss == pytest.approx(single.loss, rel=1e-6)


def test_clients_adapt_the_model_first():
    process = make_process("fed_avg_ft")
    state, population = server_state_of(variables_of(process, 3)), population_of(3)
    own = ClientState(state.initial_local, (), np.int32(0))
    examples = columns(200)
    found = new_test(process, state, population, lambda k: own, examples)
    logits = []
    for k, client in enumerate(population):  # One batch each, whatever its order.
        weights, _ = process.adapt(state, own, client.train, client=k)
        logits.append(process.predict(weights, own, examples)["logits"])
    mean = special.log_softmax(np.mean(logits, axis=0, dtype=np.float64), axis=1)
    wanted = -mean[np.arange(200), examples["y"]].mean()
    assert found.loss == pytest.approx(wanted, rel=1e-5)
    assert found.loss != pytest.approx(global_test(process, state, examples).loss, rel=1e-3)


def with_logits(process: FederatedProcess, logits, monkeypatch) -> list[dict]:
    """Lets clients predict what is said; gives the list that calls are noted in."""
    calls, lock = [], threading.Lock()

    def predict(weights, state, examples, *, client, num_examples, seed):
        with lock:
            calls.append({"client": client, "num_examples": num_examples})
        return {"logits": logits(client)}

    monkeypatch.setattr(process, "predict", predict)
    return calls


def run(process: FederatedProcess, num_clients: int, examples) -> object:
    state = server_state_of(variables_of(process, 0))
    own = ClientState(state.initial_local, (), np.int32(0))
    return new_test(process, state, population_of(num_clients), lambda k: own, examples)


def test_of_classes_with_as_many_votes_the_first_is_taken(hdafl, monkeypatch):
    """A client's own equal logits likewise."""
    first, second = [[5, 0, 0], [0, 1, 1]], [[0, 9, 0], [0, 0, 7]]
    of = {0: second, 1: first, 2: second, 3: first}
    with_logits(hdafl, lambda k: np.float32(of[k]), monkeypatch)
    found = run(hdafl, 4, columns(2) | {"y": np.array([0, 1])})
    # Two votes for 0 and two for 1; two for 1 and two for 2. The means prefer 1 and 2.
    assert (found.accuracy_vote, found.accuracy_average) == (1.0, 0.0)


def test_neither_threads_nor_the_order_in_which_they_end_change_the_sum(hdafl, monkeypatch):
    """Of numbers whose sum depends on their order."""
    logits = np.random.default_rng(0).normal(size=(12, 50, NUM_CLASSES))
    # What is added between these two is lost to rounding.
    logits[0] += 1e17
    logits[6] -= 1e17

    def slow(client: int) -> np.ndarray:
        time.sleep(0.02 * (12 - client) % 0.05)
        return logits[client]

    calls = with_logits(hdafl, slow, monkeypatch)
    found = run(hdafl, 12, columns(50))
    total = np.zeros((50, NUM_CLASSES))
    for one in logits:
        total += one
    y = columns(50)["y"]
    loss = -np.mean(special.log_softmax(total / 12, axis=1)[np.arange(50), y])
    assert found.loss == loss
    assert sorted(call["client"] for call in calls) == list(range(12))  # Each once,
    assert all(c["num_examples"] == c["client"] + 2 for c in calls)  # with what is its own.


def test_memory_does_not_grow_with_the_number_of_clients(hdafl, monkeypatch):
    """Also where all others wait for the first."""
    cores, num, num_clients = 2, 20_000, 60
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: range(cores))

    def logits(client: int) -> np.ndarray:
        time.sleep(0.3 if client == 0 else 0.0)
        return np.full((num, NUM_CLASSES), client % 7, np.float32)

    with_logits(hdafl, logits, monkeypatch)
    examples = columns(num)
    tracemalloc.start()
    run(hdafl, num_clients, examples)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    one = num * NUM_CLASSES * 8
    assert peak < (2 * cores + 8) * one  # Those held, under way, and the sums.
    assert (2 * cores + 8) * one < num_clients * one / 4


def test_what_cannot_be_tested_is_refused(hdafl):
    with pytest.raises(ValueError, match="At least one example"):
        run(hdafl, 2, columns(0))
    with pytest.raises(ValueError, match="classes 0 to 2, found labels from 0 to 3"):
        run(hdafl, 2, columns(2) | {"y": np.array([0, 3])})


def test_a_diverged_client_shows(hdafl, monkeypatch):
    of = {0: [[1, 0, 0]], 1: [[np.nan] * 3]}
    with_logits(hdafl, lambda k: np.float32(of[k]), monkeypatch)
    assert np.isnan(run(hdafl, 2, columns(1)).loss)


def test_what_it_takes_to_send_all_local_models(hdafl):
    local = NUM_FEATURES * 5 + 5
    assert sending_local_models(hdafl, 7) == (7 * local, 7 * local * 4)
    assert sending_local_models(make_process("fed_avg"), 7) == (0, 0)
    everything = local + 5 * NUM_CLASSES + NUM_CLASSES
    assert sending_local_models(make_process("local_only"), 1)[0] == everything
    for method in ("ditto", "fed_avg_ft", "ifca"):  # Which clients adapt or keep beside them.
        assert sending_local_models(make_process(method), 7) == (7 * everything, 28 * everything)
