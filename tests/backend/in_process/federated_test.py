"""Every placement and intrinsic, against the worker."""

import numpy as np
import pytest
import tensorflow as tf

from tff_het.backend.names import tff

AT_CLIENTS = tff.FederatedType(np.float32, tff.CLIENTS)
AT_SERVER = tff.FederatedType(np.int32, tff.SERVER)


@tff.tensorflow.computation(np.float32)
def double(x):
    return 2 * x


@tff.tensorflow.computation(np.float32, np.int32)
def add(x, n):
    return x + tf.cast(n, tf.float32)


SQUARES = tff.to_type({"squares": np.float32, "count": np.int32})


@tff.tensorflow.computation
def no_squares():
    return {"squares": tf.zeros([]), "count": 0}


@tff.tensorflow.computation(SQUARES, np.float32)
def add_square(total, x):
    return {"squares": total["squares"] + x**2, "count": total["count"] + 1}


@tff.tensorflow.computation(SQUARES, SQUARES)
def add_squares(one, other):
    return {name: one[name] + other[name] for name in ("squares", "count")}


@tff.tensorflow.computation(SQUARES)
def root(total):
    return tf.sqrt(total["squares"]), total["count"]


@tff.tensorflow.computation
def zero():
    return tf.zeros([])


@tff.federated_computation(AT_CLIENTS, AT_SERVER)
def many(x, n):
    sent = tff.federated_broadcast(n)
    added = tff.federated_map(add, (x, sent))
    return {
        "sum": tff.federated_sum(added),
        "mean": tff.federated_mean(x),
        "weighted": tff.federated_mean(x, added),
        "extremes": (tff.federated_max(x), tff.federated_min(x)),
        "aggregate": tff.federated_aggregate(x, no_squares(), add_square, add_squares, root),
        "zip": tff.federated_zip((x, {"added": added, "sent": sent})),
        "sent": tff.federated_map(double, tff.federated_broadcast(tff.federated_sum(x))),
        "placed": tff.federated_zip((n, tff.federated_value(3, tff.SERVER))),
        "evaluated": (tff.federated_eval(zero, tff.SERVER), tff.federated_eval(zero, tff.CLIENTS)),
        "unchanged": x,
    }


@pytest.mark.parametrize("clients", [1, 2, 7, 19])
def test_intrinsics(everywhere, clients):
    numbers = np.random.default_rng(clients).normal(size=clients).astype(np.float32)
    everywhere(lambda: many(list(numbers), 3))


@tff.federated_computation(AT_CLIENTS, AT_SERVER)
def sums(x, n):
    added = tff.federated_map(add, (x, tff.federated_broadcast(n)))
    return tff.federated_sum(added), tff.federated_mean(x), tff.federated_max(added)


def test_no_clients(everywhere, in_process):
    everywhere(lambda: sums([], 3))
    # The worker fails on what would be at clients.
    result = many([], 3)
    assert result["sum"] == 0 and result["unchanged"] == [] and result["zip"] == []


AT_ALL = tff.FederatedType(np.float32, tff.CLIENTS, all_equal=True)


@tff.federated_computation(np.float32)
def nested(x):
    @tff.federated_computation(np.float32)
    def inner(y):
        return double(y), (x, 7)

    return inner(double(x)), [inner(x)]


@tff.federated_computation
def no_argument():
    return tff.federated_value(3, tff.SERVER), zero(), "text", 1.5


def test_what_is_not_placed(everywhere):
    everywhere(lambda: nested(1.5))
    everywhere(no_argument)


def test_numbers_of_clients_disagree(in_process):
    @tff.federated_computation(AT_CLIENTS, AT_CLIENTS)
    def both(x, y):
        return tff.federated_sum(x), tff.federated_sum(y)

    with pytest.raises(ValueError, match="different numbers of clients: 2 and 1"):
        both([1.0, 2.0], [1.0])
    with pytest.raises(ValueError, match="different numbers of clients: 0 and 1"):
        both([], [1.0])
    with pytest.raises(TypeError, match=r"Argument\.y: expected a list .* found float"):
        both([1.0], 2.0)
    with pytest.raises(TypeError, match=r"Client 1: Argument\.x: expected float32, found 'x'"):
        both([1.0, "x"], [1.0, 2.0])


def _secure(x):
    return tff.federated_secure_sum_bitwidth(x, 8)


def _counted(n):
    variable = tf.Variable(0, dtype=tf.int32)
    with tf.control_dependencies([variable.assign_add(n)]):
        return variable.read_value()


def _selected(keys, max_key, table):
    row = tff.tensorflow.computation(lambda table, key: table[key], TABLE, np.int32)
    rows = tff.federated_select(keys, max_key, table, row)
    count = tff.tensorflow.computation(
        lambda rows: rows.reduce(0, lambda n, _: n + 1), rows.type_signature.member
    )
    return tff.federated_map(count, rows)


KEYS = tff.FederatedType(tff.TensorType(np.int32, [1]), tff.CLIENTS)
TABLE = tff.TensorType(np.float32, [3])
KEY = np.zeros(1, np.int32)

REFUSED = {
    "Argument: .*float32@CLIENTS": (tff.federated_computation(tff.federated_sum, AT_ALL), [1.5]),
    "gives no values of type float32@CLIENTS": (
        tff.federated_computation(
            tff.federated_broadcast, tff.FederatedType(np.float32, tff.SERVER)
        ),
        [1.5],
    ),
    r"Argument.function: .*\(float32 -> float32\)": (
        tff.federated_computation(
            lambda function, x: function(x), tff.FunctionType(np.float32, np.float32), np.float32
        ),
        [double, 1.5],
    ),
    "VarHandleOp": (tff.tensorflow.computation(_counted, np.int32), [1]),
    "sequences|federated_select": (
        tff.federated_computation(_selected, KEYS, AT_SERVER, tff.FederatedType(TABLE, tff.SERVER)),
        [[KEY], 3, np.ones(3, np.float32)],
    ),
    r"int64\*": (
        tff.tensorflow.computation(lambda: tf.data.Dataset.range(3)),
        [],
    ),
    "federated_secure_sum_bitwidth": (
        tff.federated_computation(_secure, tff.FederatedType(np.int32, tff.CLIENTS)),
        [[1, 2]],
    ),
    "federated_secure_sum": (
        tff.federated_computation(
            lambda x: tff.federated_secure_sum(x, 8), tff.FederatedType(np.int32, tff.CLIENTS)
        ),
        [[1, 2]],
    ),
    "xla": (tff.jax.computation(lambda x: x + 1, np.int32), [1]),
    r"float32\*": (
        tff.federated_computation(
            lambda s: tff.sequence_map(double, s), tff.SequenceType(np.float32)
        ),
        [[1.0]],
    ),
    r"Argument: .* float32\*": (
        tff.federated_computation(tff.sequence_sum, tff.SequenceType(np.float32)),
        [[1.0]],
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_by_name(in_process, name):
    refused, arguments = REFUSED[name]
    with pytest.raises(NotImplementedError, match=f"(?s)({name}).*worker"):
        refused(*arguments)
    assert double(1.0) == 2


def test_secure_aggregator_is_refused_by_name(in_process):
    type_ = tff.TensorType(np.float32, [2])
    process = tff.learning.secure_aggregator(weighted=False).create(type_)
    with pytest.raises(NotImplementedError, match="federated_secure_sum"):
        process.next(process.initialize(), [np.ones(2, np.float32)])


@tff.tensorflow.computation(np.float32)
def doubled_often(x):
    """A loop: clients' work, which stays apart from what the server does."""
    return tf.while_loop(lambda n, _: n < 3, lambda n, y: (n + 1, 2 * y), (0, x))[1]


def test_the_number_of_clients_may_change_where_only_the_server_computes(in_process):
    """Between two parts of clients' work the server's value goes to as many as there are now."""

    @tff.federated_computation(AT_CLIENTS)
    def rounds(numbers):
        total = tff.federated_sum(tff.federated_map(doubled_often, numbers))
        worked = tff.federated_map(doubled_often, numbers)
        twice = tff.federated_map(double, tff.federated_map(double, total))
        again = tff.federated_map(doubled_often, tff.federated_broadcast(twice))
        return worked, again

    for numbers in ([1.0, 2.0], [1.0, 2.0, 3.0], [4.0]):
        worked, again = rounds(numbers)
        assert worked == [8 * number for number in numbers]
        assert again == [8 * 4 * 8 * sum(numbers)] * len(numbers)
