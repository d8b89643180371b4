"""Means of clients' updates with something more: robust, private or compressed.

TensorFlow Federated's own, made so that a run can be repeated: every draw follows from the run's
seed, where TFF's draw from the global generators. Each is an `AggregationFactory` for
`composer.compose`; what clients keep does not travel, so none of it is clipped, noised or rounded.
"""

import collections

import dp_accounting
import numpy as np
import tensorflow as tf
import tensorflow_privacy as tfp

from tff_het import kept, seeding
from tff_het.backend.names import tff
from tff_het.learning.composer import AggregationFactory


@kept.by_content(size=1)
def robust() -> tff.aggregators.WeightedAggregationFactory:
    """Returns `tff.learning.robust_aggregator`: adaptive zeroing, adaptive clipping, weighted mean.

    An update with a number far above what was seen so far is zeroed, and norms are clipped to about
    their 0.8 quantile (Andrew et al. 2021), which is looked for from 1 on, by a factor of at most
    e^0.2 a round. Nothing in it is random. Where no client has a weight, the mean is 0; TFF's is
    not a number.
    """
    mean = tff.aggregators.MeanFactory(no_nan_division=True)
    return tff.learning.robust_aggregator(weighted=True, debug_measurements_fn=lambda _: mean)


def compressed(
    bits: int = 8, threshold: int = 20_000
) -> tff.aggregators.WeightedAggregationFactory:
    """Returns the weighted mean of updates that are quantised before they are sent.

    `tff.learning.compression_aggregator` without its zeroing and clipping. Each number, times the
    client's weight, is rounded to the nearest of 2^bits values between its tensor's least and
    greatest: TFF's default rounds at random (Suresh et al. 2017) and without a seed, so that no run
    could be repeated.

    Args:
      bits: Of each number, from 1 to 16.
      threshold: Tensors of more numbers than this are quantised; smaller ones are sent as they are.

    Raises:
      ValueError: If a number is out of its range.
    """
    if not 1 <= bits <= 16:
        raise ValueError(f"Updates are quantised to 1 to 16 bits, found {bits}.")
    if threshold < 0:
        raise ValueError(f"A threshold is a number of numbers, not negative; found {threshold}.")
    encoded = tff.aggregators.EncodedSumFactory.quantize_above_threshold(
        bits, threshold, stochastic=False
    )
    return tff.aggregators.MeanFactory(encoded, no_nan_division=True)


@kept.by_content(size=16)
def private(
    noise_multiplier: float,
    clip_norm: float,
    clients_per_round: int,
    *,
    seed: int,
    rounds_before: int = 0,
) -> tff.aggregators.UnweightedAggregationFactory:
    """Returns the differentially private mean of McMahan et al. (2018, DP-FedAvg), fixed clipping.

    Each update, all of its tensors together, is clipped to a norm; the sum gets Gaussian noise and
    is divided by the number of clients, each of which counts the same. This is
    `tff.aggregators.DifferentiallyPrivateFactory.gaussian_fixed` but for where the noise is from:
    TFF's has no seed; here a seed always gives the noise of its round t, whatever the run's state.
    So runs repeat and go on; but who knows the seed knows the noise, and gets no guarantee.

    Args:
      noise_multiplier: z, not negative: the noise's standard deviation is z * clip_norm.
      clip_norm: Positive.
      clients_per_round: How many take part in each round, 1 or more.
      seed: The run's.
      rounds_before: How many rounds went before in the run that this one starts from: its own
        noise, then, is another.

    Raises:
      ValueError: If a number is out of its range.
    """
    if not 0 <= noise_multiplier < float("inf"):
        raise ValueError(f"A noise multiplier is not negative, found {noise_multiplier}.")
    if not 0 < clip_norm < float("inf"):
        raise ValueError(f"Updates are clipped to a positive norm, found {clip_norm}.")
    if clients_per_round < 1:
        raise ValueError(f"At least one client takes part in a round, found {clients_per_round}.")
    query = _SeededGaussianSum(
        clip_norm,
        noise_multiplier * clip_norm,
        seeding.stateless_seed(seed, seeding.NOISE, rounds_before),
    )
    return tff.aggregators.DifferentiallyPrivateFactory(
        tfp.NormalizedQuery(query, denominator=float(clients_per_round))
    )


def check_weighted(aggregator: AggregationFactory | None, weights: str) -> None:
    """Checks that weights count, for methods that are nothing without them.

    Args:
      aggregator: A factory, or None for a weighted mean.
      weights: What they are, for the message.

    Raises:
      ValueError: If the factory takes none.
    """
    if isinstance(aggregator, tff.aggregators.UnweightedAggregationFactory):
        raise ValueError(
            f"The aggregator lets every client count the same, so that {weights} would be lost: "
            "take one with weights (dp has none), or leave them out."
        )


class _SeededGaussianSum(tfp.GaussianSumQuery):
    """TensorFlow Privacy's sum of clipped records, with noise that follows from seed and round."""

    _GlobalState = collections.namedtuple("_GlobalState", ["l2_norm_clip", "stddev", "round"])

    def __init__(self, l2_norm_clip: float, stddev: float, seed: np.ndarray):
        super().__init__(l2_norm_clip, stddev)
        self._seed = seed

    def make_global_state(self, l2_norm_clip, stddev):
        return self._GlobalState(
            tf.cast(l2_norm_clip, tf.float32), tf.cast(stddev, tf.float32), tf.zeros([], tf.int32)
        )

    def get_noised_result(self, sample_state, global_state):
        clip, stddev, round_num = global_state
        fold_in = tf.random.experimental.stateless_fold_in
        of_round = fold_in(tf.constant(self._seed), round_num)
        noised = [
            tensor
            + tf.cast(stddev, tensor.dtype)
            * tf.random.stateless_normal(tensor.shape, fold_in(of_round, index), dtype=tensor.dtype)
            for index, tensor in enumerate(tf.nest.flatten(sample_state))
        ]
        return (
            tf.nest.pack_sequence_as(sample_state, noised),
            global_state._replace(round=round_num + 1),
            dp_accounting.GaussianDpEvent(stddev / clip),
        )
