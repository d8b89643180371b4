"""What a client keeps reaches neither the server nor another client.

At learning rate 0 nothing is learned from local values, so that changing all of a client's may
change nothing that it sends. A leak that is planted in each method is found.
"""

import collections

import numpy as np
import pytest
import tensorflow as tf
from cases import CASES, SEED, Case, assert_same_bits, build, by_client, make_clients, shapes

from tff_het import kept
from tff_het.evaluation import communication
from tff_het.learning import composer

pytestmark = pytest.mark.usefixtures("each_runtime")

CHANGED = 4  # A client.
# How well a client's own model does: declared to be sent, and different for different local values.
TRAINING_METRICS = {"loss", "accuracy", "prediction_loss", "adversary_loss", "local_loss"}
LEAKS = ("update", "weight", "metrics")


def keeps_nothing(case: Case) -> bool:
    """Whether there is nothing that could leak."""
    return not case.local and case.acquisition is None


@pytest.fixture(scope="module", params=[c for c in CASES if not keeps_nothing(c)], ids=str)
def case(request) -> Case:
    return request.param


def changed(state):
    """The same state with other values, whatever they are."""
    rng = np.random.default_rng(3)

    def other(value):
        value = np.asarray(value)
        if value.dtype.kind == "f":
            return (value + rng.normal(size=value.shape)).astype(value.dtype)
        return ~value if value.dtype.kind == "b" else value + value.dtype.type(1)

    return tf.nest.map_structure(other, state)


def rounds(case: Case):
    """What clients send, and a round's output, without and with a client's local values changed."""
    process = build(case, SEED, rate=0.0)
    state = process.initialize()
    clients = make_clients(process, state)
    for client in clients:  # As if each had trained before.
        client["state"] = client["state"]._replace(rounds=np.int32(1))
    disturbed = [collections.OrderedDict(client) for client in clients]
    assert int(disturbed[0]["client"]) == CHANGED
    disturbed[0]["state"] = changed(clients[0]["state"])
    return [
        (process.client_update(process.download(state), given), process.next(state, given))
        for given in (clients, disturbed)
    ]


def check(case: Case) -> None:
    """Raises AssertionError if anything changes that should not."""
    # Clients that acquire examples tell by their weight how many they trained on.
    chosen = set() if case.acquisition is None else {"num_examples"}

    def others(metrics) -> dict:
        return {n: v for n, v in metrics.items() if n not in TRAINING_METRICS | chosen}

    (sent, output), (sent_again, output_again) = rounds(case)
    again = by_client(sent_again)
    for client, result in by_client(sent).items():
        if client != CHANGED:
            assert_same_bits(again[client], result)
            continue
        assert_same_bits(again[client]["update"], result["update"])
        if not chosen:
            assert_same_bits(again[client]["weight"], result["weight"])
        assert_same_bits(others(again[client]["metrics"]), others(result["metrics"]))
    assert_same_bits(output_again.state, output.state)
    again = by_client(output_again.client_states)
    for client, result in by_client(output.client_states).items():
        if client != CHANGED:
            assert_same_bits(again[client], result)
    assert_same_bits(others(output_again.metrics["train"]), others(output.metrics["train"]))


def test_local_values_change_nothing_elsewhere(case):
    check(case)


def test_next_moves_to_the_server_what_is_declared(case):
    """Sums of the update, and its weight and metrics, as types; the compiled computation."""
    process = build(case, SEED)
    moved = [t.value_type for t in communication.transfers(process.next) if t.to_server]
    found = collections.Counter(shape for one in moved for shape in shapes(one))
    sent = process.client_update.type_signature.result.member
    declared = collections.Counter(
        shape for name in ("update", "weight", "metrics") for shape in shapes(sent[name])
    )
    assert found <= declared, found - declared


@pytest.mark.slow
@pytest.mark.parametrize("leak", LEAKS)
def test_a_planted_leak_is_found(case, leak, monkeypatch):
    if leak == "update" and not build(case, SEED).model.num_global_parameters:
        return  # It sends none.
    original = composer._client_computation

    def leaking(model, client_work, *types):
        def train(download, examples, client, seed, state):
            result = client_work.train(download, examples, client, seed, state)
            values = [
                tf.reduce_sum(tf.cast(value, tf.float32))
                for value in tf.nest.flatten((state.model, state.work))
            ]
            secret = 1e-3 * tf.add_n(values)
            changes = {
                "update": lambda: tf.nest.map_structure(
                    lambda value: value + tf.cast(secret, value.dtype), result.update
                ),
                "weight": lambda: result.weight + secret,
                "metrics": lambda: collections.OrderedDict(result.metrics, leaked=secret),
            }
            return result._replace(**{leak: changes[leak]()})

        return original(model, client_work._replace(train=train), *types)

    monkeypatch.setattr(composer, "_client_computation", leaking)
    kept.forget()
    try:
        with pytest.raises(AssertionError):
            check(case)
    finally:
        kept.forget()


@pytest.mark.parametrize("case", [c for c in CASES if keeps_nothing(c)], ids=str)
def test_other_methods_keep_nothing(case):
    """But the number of rounds that a client took part in."""
    process = build(case, SEED)
    state = process.init_state(0, SEED, process.initialize())
    assert tf.nest.flatten((state.model, state.work)) == []
