"""Tests of the ledger: sizes known by hand, for hand-made computations and for the methods."""

import collections

import numpy as np
import pytest
import tensorflow as tf

from tff_het import methods
from tff_het.backend.names import keras, tff
from tff_het.clients import Client, Population
from tff_het.evaluation import communication
from tff_het.evaluation.communication import ledger, num_bytes, transfers
from tff_het.learning.local_training import LocalTraining
from tff_het.learning.process import FederatedProcess
from tff_het.models import architectures, networks

VECTOR = tff.TensorType(np.float32, [5])  # 20 bytes.
AT_CLIENTS = tff.FederatedType(VECTOR, tff.CLIENTS)
AT_SERVER = tff.FederatedType(VECTOR, tff.SERVER)

FEATURES, UNITS, CLASSES = 4, 6, 3
BODY = FEATURES * UNITS + UNITS  # The first layer.
HEAD = UNITS * CLASSES + CLASSES  # The last one.
METRICS = 4 * 5  # Loss and accuracy, a total and a count each, and the number of examples.


@tff.tensorflow.computation(VECTOR)
def double(x):
    return 2 * x


@tff.tensorflow.computation(VECTOR, VECTOR)
def add(x, y):
    return x + y


def up_and_down(computation) -> tuple[int, int]:
    moved = transfers(computation)
    return (
        sum(t.num_bytes for t in moved if t.to_server),
        sum(t.num_bytes for t in moved if not t.to_server),
    )


def build(method: str, network=None, features: int = FEATURES, **options) -> FederatedProcess:
    learning_rate = options.pop("learning_rate", None)
    architecture = architectures.make(
        "tiny",
        {"x": (np.dtype(np.float32), (features,)), "y": (np.dtype(np.int64), ())},
        CLASSES,
        network=network or networks.mlp([UNITS]),
    )
    training = LocalTraining(
        tff.learning.optimizers.build_sgdm(0.1),
        batch_size=5,
        epochs=1,
        learning_rate=learning_rate,
    )
    return methods.build(method, architecture, training, seed=1, **options)


def test_a_broadcast_goes_down_and_a_sum_goes_up():
    @tff.federated_computation(AT_SERVER, AT_CLIENTS)
    def computation(at_server, at_clients):
        received = tff.federated_broadcast(at_server)
        return tff.federated_sum(tff.federated_map(add, (received, at_clients)))

    up, down = sorted(transfers(computation), key=lambda t: not t.to_server)
    assert up == (True, VECTOR, 20)
    assert down == (False, VECTOR, 20)


def test_what_stays_where_it_is_does_not_count():
    @tff.federated_computation(AT_SERVER, AT_CLIENTS)
    def computation(at_server, at_clients):
        constant = tff.federated_value(1.0, tff.CLIENTS)
        return (
            tff.federated_map(double, at_server),
            tff.federated_map(double, at_clients),
            tff.federated_zip((at_clients, constant)),
        )

    assert transfers(computation) == ()


def test_dead_code_does_not_count_and_a_function_counts_as_often_as_it_is_called():
    @tff.federated_computation(AT_CLIENTS)
    def doubled_sum(x):
        return tff.federated_sum(tff.federated_map(double, x))

    @tff.federated_computation(AT_CLIENTS)
    def dead(x):
        mean_at_server = tff.federated_map(double, doubled_sum(x))
        back = tff.federated_broadcast(mean_at_server)
        doubled_sum(tff.federated_map(add, (x, back)))
        return x

    @tff.federated_computation(AT_CLIENTS)
    def twice(x):
        doubled_sum(x)
        return doubled_sum(x), doubled_sum(x)

    @tff.federated_computation(AT_CLIENTS)
    def shared(x):
        once = doubled_sum(x)
        return once, once

    assert up_and_down(dead) == (0, 0)
    assert up_and_down(twice) == (40, 0)
    assert up_and_down(shared) == (20, 0)


def test_every_operator_that_aggregates_counts():
    weight = tff.FederatedType(np.float32, tff.CLIENTS)

    @tff.federated_computation(AT_CLIENTS, weight)
    def mean(x, w):
        return tff.federated_mean(x, w)

    @tff.federated_computation(weight)
    def extremes(x):
        return tff.federated_min(x), tff.federated_max(x)

    @tff.tensorflow.computation
    def zero():
        return np.int64(0)

    @tff.tensorflow.computation(np.int64, VECTOR)
    def count(total, x):
        del x
        return total + 1

    @tff.tensorflow.computation(np.int64, np.int64)
    def merge(a, b):
        return a + b

    @tff.tensorflow.computation(np.int64)
    def report(total):
        return total

    @tff.federated_computation(AT_CLIENTS)
    def aggregate(x):
        return tff.federated_aggregate(x, zero(), count, merge, report)

    @tff.federated_computation(tff.FederatedType(np.int32, tff.CLIENTS))
    def secure(x):
        bounded = tff.federated_secure_sum(x, max_input=7)
        return tff.federated_secure_sum_bitwidth(x, bitwidth=8), bounded

    assert up_and_down(mean) == (20 + 4, 0)
    assert up_and_down(extremes) == (4 + 4, 0)
    assert up_and_down(aggregate) == (20, 0)
    assert up_and_down(secure) == (4 + 4, 0)


def test_sizes_of_types():
    nested = collections.OrderedDict(
        a=tff.TensorType(np.int8, [3, 5]), b=((np.bool_, np.int64), VECTOR), c=()
    )
    assert num_bytes(tff.to_type(nested)) == 15 + 1 + 8 + 20
    assert num_bytes(tff.TensorType(np.float64, [0, 7])) == 0
    assert num_bytes(tff.TensorType(np.uint16)) == 2
    for unknown in (
        tff.TensorType(np.str_),
        tff.TensorType(np.float32, [None, 3]),
        tff.TensorType(np.float32, None),
        tff.to_type([np.int32, tff.SequenceType(np.int32)]),
    ):
        with pytest.raises(ValueError, match="depends on"):
            num_bytes(unknown)


def test_what_has_no_size_is_refused():
    keys = tff.FederatedType(tff.TensorType(np.int32, [2]), tff.CLIENTS)
    number = tff.FederatedType(np.int32, tff.SERVER)

    @tff.tensorflow.computation(VECTOR, np.int32)
    def pick(values, key):
        return values[key]

    @tff.federated_computation(keys, number, AT_SERVER)
    def select(keys, max_key, values):
        return tff.federated_select(keys, max_key, values, pick)

    text = tff.FederatedType(np.str_, tff.SERVER)

    @tff.federated_computation(text)
    def send_text(value):
        return tff.federated_broadcast(value)

    with pytest.raises(ValueError, match="federated_select"):
        transfers(select)
    with pytest.raises(ValueError, match="type str depends"):
        transfers(send_text)


def test_fed_avg_sends_all_of_the_model():
    result = ledger(build("fed_avg"))
    assert result == communication.Ledger(
        parameters_total=BODY + HEAD,
        parameters_sent=BODY + HEAD,
        bytes_up=4 * (BODY + HEAD) + 4 + METRICS,  # With the weight.
        bytes_down=4 * (BODY + HEAD),
        metrics_bytes_up=METRICS,
    )


def test_hdafl_keeps_exactly_the_head():
    fed_avg, hdafl = ledger(build("fed_avg")), ledger(build("hdafl"))
    assert hdafl.parameters_total == BODY + HEAD
    assert hdafl.parameters_sent == BODY
    assert fed_avg.bytes_up - hdafl.bytes_up == 4 * HEAD
    assert fed_avg.bytes_down - hdafl.bytes_down == 4 * HEAD


def test_local_only_sends_metrics_alone():
    assert ledger(build("local_only")) == communication.Ledger(
        parameters_total=BODY + HEAD,
        parameters_sent=0,
        bytes_up=METRICS,
        bytes_down=0,
        metrics_bytes_up=METRICS,
    )


def test_a_schedule_needs_the_round():
    scheduled = build("fed_avg", learning_rate=lambda round_num: 0.1 + 0.0 * float_of(round_num))
    assert ledger(scheduled).bytes_down == 4 * (BODY + HEAD) + 4


def float_of(number):
    return tf.cast(number, tf.float32)


def test_moving_statistics_travel():
    def network(x, num_classes, layers):
        x = keras.layers.Dense(UNITS, name="dense_1")(x)
        x = keras.layers.BatchNormalization(name="norm")(x)
        return x, keras.layers.Dense(num_classes, name="output")(x)

    sent = BODY + HEAD + 4 * UNITS  # Scale, shift, moving mean and variance.
    result = ledger(build("fed_avg", network))
    assert result.parameters_sent == sent
    assert (result.bytes_up, result.bytes_down) == (4 * sent + 4 + METRICS, 4 * sent)


def test_an_unweighted_mean_sends_a_count_instead_of_a_weight():
    process = build("fed_avg", aggregator=tff.aggregators.UnweightedMeanFactory())
    count = 4  # int32, always 1.
    assert ledger(process).bytes_up == 4 * (BODY + HEAD) + count + METRICS


def test_robust_aggregation_exchanges_bounds():
    result = ledger(build("fed_avg", aggregator=tff.learning.robust_aggregator()))
    # Zeroing and clipping: each sends its bound down and again for its estimate of a quantile,
    assert result.bytes_down == 4 * (BODY + HEAD) + 2 * (4 + 4)
    # whose estimate takes two numbers up; each also counts the clients that it touched.
    assert result.bytes_up == 4 * (BODY + HEAD) + 4 + METRICS + 2 * (8 + 4)
    assert result.metrics_bytes_up == METRICS


def test_private_aggregation_exchanges_its_clipping_norm():
    result = ledger(build("fed_avg", aggregator=tff.learning.dp_aggregator(0.5, 100)))
    # Zeroing's bound, twice; the clipping norm, twice, with what its quantile is estimated from.
    assert result.bytes_down == 4 * (BODY + HEAD) + 2 * 4 + 3 * 4
    # No weight; zeroing's two numbers and count; whether the client was clipped.
    assert result.bytes_up == 4 * (BODY + HEAD) + METRICS + (8 + 4) + 4


def test_compressed_updates_count_as_they_are_encoded():
    encoded = tff.aggregators.EncodedSumFactory.quantize_above_threshold(8, threshold=20_000)
    large = 5_000  # Features, so that the first kernel is above the threshold.
    process = build("fed_avg", features=large, aggregator=tff.aggregators.MeanFactory(encoded))
    result = ledger(process)
    kernel, rest = large * UNITS, UNITS + HEAD
    assert result.bytes_down == 4 * (kernel + rest)
    kernel_bytes = result.bytes_up - (4 * rest + 4 + METRICS)
    assert kernel <= kernel_bytes < 1.2 * kernel  # 8 bits a number, and what packing leaves unused.


def test_scaffold_sends_twice_as_much_as_fed_avg_and_a_count():
    fed_avg, scaffold = ledger(build("fed_avg")), ledger(build("scaffold", num_clients=8))
    without = fed_avg.bytes_up - METRICS - 4  # Nor the weight.
    assert scaffold.bytes_down == 2 * fed_avg.bytes_down
    # The mean's weight, as of FedAvg, and the count of those who took part.
    assert scaffold.bytes_up - METRICS == 2 * without + 4 + 4
    assert scaffold.metrics_bytes_up == METRICS


def test_of_an_update_that_is_mostly_known_to_be_0_the_rest_counts():
    result = ledger(build("ifca", num_clusters=3))
    assert result.bytes_down == 3 * 4 * (BODY + HEAD)
    # One model of three and which one it is, the weight, and the metrics.
    assert result.bytes_up == 4 * (BODY + HEAD) + 4 + 4 + METRICS


def make_population(sizes, values) -> Population:
    def examples(n):
        return {
            "x": values(n * FEATURES).reshape(n, FEATURES).astype(np.float32),
            "y": np.zeros(n, np.int32),
        }

    return Population(
        Client(f"c{k}", examples(n), examples(0), examples(n)) for k, n in enumerate(sizes)
    )


def test_training_examples_are_sent_compressed_by_each_client(tmp_path):
    noise = np.random.default_rng(0).normal
    population = make_population([40, 1000], lambda n: noise(size=n))
    expected = 0
    for client in population:
        path = tmp_path / f"{client.id}.npz"
        np.savez_compressed(path, **client.train)
        expected += path.stat().st_size
    assert communication.compressed_bytes(population) == expected
    # Noise is hardly compressed, what repeats is; test examples do not count.
    raw = 4 * FEATURES * 1040
    assert 0.8 * raw < expected < 1.2 * raw
    repeated = make_population([40, 1000], np.zeros)
    assert communication.compressed_bytes(repeated) < 0.1 * raw


def test_a_client_where_the_server_is_sends_nothing():
    result = communication.staying_put(build("centralized"))
    assert result == communication.Ledger(BODY + HEAD, 0, 0, 0, 0)
