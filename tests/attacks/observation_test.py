"""What is observed is what travels, for every method, and nothing that stays at a client."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf

from tff_het import methods
from tff_het.attacks.observation import observe
from tff_het.backend.names import tff
from tff_het.simulation import runtime


@pytest.fixture(autouse=True, scope="module")
def _runtime():
    with runtime.use("in_process", clients_in_parallel=1):
        yield


def assert_same(found, wanted) -> None:
    for a, b in zip(tf.nest.flatten(found), tf.nest.flatten(wanted), strict=True):
        np.testing.assert_array_equal(np.asarray(a), np.asarray(b))


@pytest.fixture(scope="module", params=methods.names())
def federation(request, world):
    return world.train(world.build(request.param, 2), group=0, num_clients=2, n=9)


def test_global_variables_alone(federation):
    """By shape, and by value against what the client itself sends and keeps."""
    process = federation.process
    seen = observe(process, federation.state, federation.last)
    rows = process.client_update(process.download(federation.state), federation.last)
    wanted = [spec.shape for spec in process.model.specs if not spec.local]
    own = [np.asarray(v) for v in tf.nest.flatten([row["state"].model for row in rows])]
    for one, row in zip(seen.clients, rows, strict=True):
        observed = [*one.after.trainable, *one.after.non_trainable]
        assert sorted(value.shape for value in observed) == sorted(wanted)
        assert_same(one.before, federation.state.weights)
        change = tf.nest.map_structure(np.subtract, one.after, one.before)
        update = row["update"]
        sent = getattr(update, "change", update)
        for a, b in zip(tf.nest.flatten(change), tf.nest.flatten(sent), strict=True):
            np.testing.assert_allclose(a, b, atol=1e-6)
        assert one.weight == row["weight"]
        assert one.private is None
        # What is private has values of its own, none of which is there in the clear.
        everything = [np.asarray(v) for v in tf.nest.flatten(dataclasses.asdict(one))]
        assert not any(np.array_equal(a, b) for a in own for b in everything if a.shape == b.shape)


def test_the_server_goes_on_as_in_a_round(federation):
    seen = observe(federation.process, federation.state, federation.last)
    output = federation.process.next(federation.state, federation.last)
    assert_same(seen.new_weights, output.state.weights)


def test_the_private_part_has_to_be_asked_for(federation):
    process = federation.process
    seen = observe(process, federation.state, federation.last, private=True)
    output = process.next(federation.state, federation.last)
    assert [one.client for one in seen.clients] == [0, 1]
    for one, kept in zip(seen.clients, output.client_states, strict=True):
        assert_same(one.private, kept["state"])


def test_results_in_another_order(world, monkeypatch):
    federation = world.train(world.build("hdafl", 1), group=0, num_clients=3, n=5)
    wanted = observe(federation.process, federation.state, federation.last)
    update = federation.process.client_update

    class Reversed:
        type_signature = update.type_signature

        def __call__(self, *args):
            return list(update(*args))[::-1]

    monkeypatch.setattr(federation.process, "client_update", Reversed())
    found = observe(federation.process, federation.state, federation.last)
    for a, b in zip(found.clients, wanted.clients, strict=True):
        assert a.client == b.client
        assert_same(a.after, b.after)


def test_what_is_refused(world):
    federation = world.train(world.build("hdafl", 1), group=0, num_clients=2, n=5)
    process, state = federation.process, federation.state
    with pytest.raises(ValueError, match="One or more different clients"):
        observe(process, state, [])
    with pytest.raises(ValueError, match="One or more different clients"):
        observe(process, state, federation.last[:1] * 2)


def test_clients_that_send_something_else(world, monkeypatch):
    process = world.build("hdafl", 1)
    federation = world.train(process, group=0, num_clients=1, n=5)

    class Sending:
        type_signature = tff.FunctionType(
            process.client_update.type_signature.parameter,
            tff.FederatedType(tff.to_type([("update", tff.TensorType(np.float32))]), tff.CLIENTS),
        )

    monkeypatch.setattr(process, "client_update", Sending())
    with pytest.raises(ValueError, match=r"change of the global variables.*send float32"):
        observe(process, federation.state, federation.last)
