"""Who sends what is observed; that it is what travels, `methods/contract_test.py` tests.

There for every method, with nothing that stays at a client.
"""

import numpy as np
import pytest
import tensorflow as tf

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
