"""Robust, private and compressed means against NumPy, on every runtime."""

import collections

import numpy as np
import pytest
import tensorflow as tf

from tff_het import methods, seeding
from tff_het.backend.names import keras, tff
from tff_het.evaluation import communication
from tff_het.learning import aggregators
from tff_het.learning.local_training import LocalTraining
from tff_het.models import architectures, networks

on_each_runtime = pytest.mark.usefixtures("each_runtime")

SHAPES = {"a": (40, 30), "b": (7,)}
UPDATE = tff.to_type(
    collections.OrderedDict((k, tff.TensorType(np.float32, s)) for k, s in SHAPES.items())
)
WEIGHT = tff.TensorType(np.float32)
WEIGHTS = [3.0, 1.0, 0.5, 0.0]


def updates(scales) -> list[collections.OrderedDict]:
    rng = np.random.default_rng(0)
    return [
        collections.OrderedDict((k, np.float32(f * rng.normal(size=s))) for k, s in SHAPES.items())
        for f in scales
    ]


def flat(update) -> np.ndarray:
    return np.concatenate([np.ravel(update[name]) for name in SHAPES]).astype(np.float64)


def clipped(vector: np.ndarray, norm: float) -> np.ndarray:
    return vector * min(1.0, norm / np.linalg.norm(vector))


@on_each_runtime
def test_robust_zeroes_clips_and_adapts():
    """Andrew et al. (2021): estimates are multiplied by exp(-rate * (share below - quantile))."""
    process = aggregators.robust().create(UPDATE, WEIGHT)
    state = process.initialize()
    given = updates([0.001, 0.1, 1.0, 1000.0])
    weights = [3.0, 1.0, 0.5, 2.0]
    zeroing, clipping, results = 10.0, 1.0, []
    for _ in range(3):
        output = process.next(state, given, weights)
        state = output.state
        vectors = [flat(u) for u in given]
        largest = np.array([np.abs(v).max() for v in vectors])
        vectors = [v * (m <= 2 * zeroing + 1) for v, m in zip(vectors, largest, strict=True)]
        norms = np.array([np.linalg.norm(v) for v in vectors])
        kept = [clipped(v, clipping) if n else v for v, n in zip(vectors, norms, strict=True)]
        np.testing.assert_allclose(
            flat(output.result), np.average(kept, axis=0, weights=weights), atol=1e-6
        )
        zeroing *= np.exp(-np.log(10) * ((largest <= zeroing).mean() - 0.98))
        clipping *= np.exp(-0.2 * ((norms <= clipping).mean() - 0.8))
        results.append(flat(output.result))
    assert clipping != 1 and np.abs(results[0]).max() < 1  # The outlier was not let in.


def test_without_any_weight_the_robust_mean_is_0():
    process = aggregators.robust().create(UPDATE, WEIGHT)
    output = process.next(process.initialize(), updates([0.1, 1.0]), [0.0, 0.0])
    assert not flat(output.result).any()


def private(noise: float, **options):
    return aggregators.private(noise, 2.0, 4, seed=5, **options).create(UPDATE)


@on_each_runtime
def test_private_without_noise_is_the_mean_of_clipped_updates():
    given = updates([0.001, 0.1, 1.0, 10.0])
    process = private(0.0)
    result = process.next(process.initialize(), given).result
    wanted = np.mean([clipped(flat(u), 2.0) for u in given], axis=0)
    np.testing.assert_allclose(flat(result), wanted, atol=1e-6)


@on_each_runtime
def test_noise_follows_from_seed_and_round():
    zero = updates([0.0] * 4)
    process = private(3.0)
    first = process.next(process.initialize(), zero)
    second = process.next(first.state, zero)
    # TensorFlow's own draws, outside of any computation: std z * clip / clients.
    seed = seeding.stateless_seed(5, seeding.NOISE, 0)
    for round_num, output in enumerate((first, second)):
        of_round = tf.random.experimental.stateless_fold_in(seed, round_num)
        for index, (name, shape) in enumerate(SHAPES.items()):
            of_tensor = tf.random.experimental.stateless_fold_in(of_round, index)
            drawn = tf.random.stateless_normal(shape, of_tensor).numpy()
            np.testing.assert_allclose(output.result[name], 3.0 * 2.0 / 4 * drawn, rtol=1e-5)
    found = flat(first.result)
    assert abs(found.mean()) < 0.15 and 1.4 < found.std() < 1.6
    assert abs(np.corrcoef(found, flat(second.result))[0, 1]) < 0.1
    # Again, and from a state in the middle: the same. After rounds of another run: not.
    again = private(3.0)
    np.testing.assert_array_equal(flat(again.next(first.state, zero).result), flat(second.result))
    later = private(3.0, rounds_before=1)
    assert not np.allclose(flat(later.next(later.initialize(), zero).result), found)


@on_each_runtime
@pytest.mark.parametrize("bits", [3, 8])
def test_compressed_is_within_half_a_step(bits):
    given = updates([0.1, 1.0, 0.3, 5.0])
    process = aggregators.compressed(bits, threshold=7).create(UPDATE, WEIGHT)
    results = [process.next(process.initialize(), given, WEIGHTS).result for _ in range(2)]
    for name, large in (("a", True), ("b", False)):
        np.testing.assert_array_equal(results[0][name], results[1][name])
        error = np.abs(
            results[0][name] - np.average([u[name] for u in given], axis=0, weights=WEIGHTS)
        )
        # What is quantised is weight times update, between its own extremes.
        steps = [w * np.ptp(u[name]) / (2**bits - 1) for w, u in zip(WEIGHTS, given, strict=True)]
        bound = sum(steps) / 2 / sum(WEIGHTS)
        assert error.max() < (1.001 * bound if large else 1e-6)
        assert not large or error.max() > 0.2 * bound


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: aggregators.compressed(0), "1 to 16 bits, found 0"),
        (lambda: aggregators.compressed(8, -1), "not negative; found -1"),
        (lambda: aggregators.private(-1.0, 1.0, 4, seed=0), "not negative, found -1"),
        (lambda: aggregators.private(float("nan"), 1.0, 4, seed=0), "not negative, found nan"),
        (lambda: aggregators.private(1.0, 0.0, 4, seed=0), "a positive norm, found 0"),
        (lambda: aggregators.private(1.0, 1.0, 0, seed=0), "At least one client"),
    ],
)
def test_what_is_out_of_range_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def normalized(x, num_classes, layers):
    hidden = keras.layers.BatchNormalization(name="norm")(layers.dense(5, "dense_1")(x))
    return hidden, layers.output(num_classes)(hidden)


def build(method: str, aggregator, **options):
    element = {"x": (np.dtype(np.float32), (6,)), "y": (np.dtype(np.int32), ())}
    network = normalized if method == "fed_bn" else networks.mlp([5, 4])
    architecture = architectures.make("tiny", element, 3, network=network)
    training = LocalTraining(tff.learning.optimizers.build_sgdm(0.1), batch_size=4, epochs=1)
    return methods.build(method, architecture, training, seed=0, aggregator=aggregator, **options)


MEANS = [name for name in methods.names() if "aggregator" in methods.options(name)]
SOONER = ("fed_avg", "hdafl", "q_ffl", "scaffold")  # Others are slow tests.


@pytest.mark.parametrize(
    "method",
    [m if m in SOONER else pytest.param(m, marks=pytest.mark.slow) for m in MEANS],
)
def test_a_private_mean_sends_updates_alone(method):
    aggregator = aggregators.private(1.0, 1.0, 4, seed=0)
    if method == "q_ffl":
        with pytest.raises(ValueError, match="q_ffl's weights h_k would be lost"):
            build(method, aggregator)
        return
    counts = method in ("scaffold", "fed_dyn")
    process = build(method, aggregator, **({"num_clients": 4} if counts else {}))
    ledger = communication.ledger(process)
    download, _ = process.client_update.type_signature.parameter
    update = process.client_update.type_signature.result.member["update"]
    # No weight; one number more where participants are counted.
    sent = communication.num_bytes(update) + 4 * counts
    assert ledger.bytes_up - ledger.metrics_bytes_up == sent
    assert ledger.bytes_down == communication.num_bytes(download.member) + 4  # The norm.
    if method != "scaffold":
        assert communication.num_bytes(update) == 4 * ledger.parameters_sent


def test_weights_by_norm_are_refused_where_none_count():
    with pytest.raises(ValueError, match="weights by norm would be lost"):
        build("lg_fedavg", aggregators.private(1.0, 1.0, 4, seed=0), norm_weights=True)


def test_compressed_bytes_are_counted():
    encoded = communication.ledger(build("fed_avg", aggregators.compressed(7, threshold=20)))
    kernel, rest = 6 * 5, 5 + 5 * 4 + 4 + 4 * 3 + 3  # The first kernel alone is above 20.
    packed = 4 * -(-kernel // 4) // 4 * 4  # Four numbers of 7 bits to an int32.
    sides = encoded.bytes_up - encoded.metrics_bytes_up - 4 * rest - packed
    assert encoded.bytes_down == 4 * (kernel + rest)
    assert 4 + 8 <= sides <= 4 + 8 + 16  # The weight, two extremes, and what TFF sends back.
