"""The stack of updates: in the clients' order whatever came first, without those that count 0."""

import collections
import itertools

import numpy as np
import pytest
import tensorflow as tf

from tff_het.backend.names import tff
from tff_het.learning.client_work import ClientResult, ClientWork, reads_round
from tff_het.learning.stacking import Signed, StackFactory, signed
from tff_het.models.model import ClientContext, Weights

# A matrix, a scalar, and a side without any tensor.
CHANGE = tff.to_type(Weights([tff.TensorType(np.float32, [2, 3]), tff.TensorType(np.float32)], []))
SIGNED = tff.to_type(Signed(np.int32, CHANGE))
WEIGHT = tff.TensorType(np.float32)


@pytest.fixture(scope="module")
def stacked(each_runtime):
    process = StackFactory().create(SIGNED, WEIGHT)

    @tff.federated_computation(
        tff.FederatedType(SIGNED, tff.CLIENTS), tff.FederatedType(WEIGHT, tff.CLIENTS)
    )
    def run(values, weights):
        return process.next(process.initialize(), values, weights).result

    return run


def update(client: int) -> Signed:
    rng = np.random.default_rng(client)
    matrix = rng.normal(size=(2, 3)).astype(np.float32)
    return Signed(np.int32(client), Weights([matrix, np.float32(client / 7)], []))


@pytest.mark.parametrize("clients", [(3, 0, 11, 7), (5,), tuple(range(20, 0, -1))], ids=len)
def test_order_of_arrival_does_not_matter(stacked, clients):
    """All orders of four, and twenty, of which the runtime takes eight at a time."""
    for order in itertools.islice(itertools.permutations(clients), 24):
        found = stacked([update(client) for client in order], [1.0] * len(order))
        assert isinstance(found, Signed)
        assert list(found.client) == sorted(clients)
        for row, client in enumerate(sorted(clients)):
            for rows, wanted in zip(found.change.trainable, update(client).change[0], strict=True):
                np.testing.assert_array_equal(rows[row], wanted)


def test_who_counts_nothing_is_left_out(stacked):
    updates = [update(client) for client in (4, 2, 9)]
    # What they count says nothing else.
    assert list(stacked(updates, [0.5, 0.0, 300.0]).client) == [4, 9]
    nobody = stacked(updates, [0.0] * 3)
    assert [rows.shape for rows in nobody.change.trainable] == [(0, 2, 3), (0,)]
    assert nobody.client.shape == (0,)


def test_signed_work_differs_in_its_update_alone():
    result = ClientResult([tf.ones([3])], tf.constant(2.0), collections.OrderedDict(), ())
    work = ClientWork(lambda *args: result, reads=reads_round, upload_share=0.5)
    found = signed(work)
    client = ClientContext(tf.constant(6), tf.constant(10), tf.constant(0))
    trained = found.train(None, None, client, None, None)
    assert trained.update == Signed(client.index, result.update)
    assert trained._replace(update=None) == result._replace(update=None)
    assert found._replace(train=None) == work._replace(train=None)


@pytest.mark.parametrize(
    ("value_type", "message"),
    [
        (CHANGE, r"wrap the client work in `signed`. Found <trainable"),
        (tff.TensorType(np.float32, [3]), r"Found float32\[3\]"),
        (
            tff.to_type(Signed(np.int32, tff.TensorType(np.float32, [None]))),
            r"fixed shapes .* found <client=int32",
        ),
    ],
)
def test_what_cannot_be_stacked(value_type, message):
    with pytest.raises(TypeError, match=message):
        StackFactory().create(value_type, WEIGHT)
