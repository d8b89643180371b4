"""Active learning at a client: it chooses from a pool what it trains on, and drops it afterwards.

J. Qian, X. Fafoutis, L. K. Hansen: Towards Federated Learning: Robustness to Extremely Unbalanced
Data for Edge Computing (2019), Algorithms 4 and 5, with the acquisition functions of Y. Gal, R.
Islam, Z. Ghahramani: Deep Bayesian Active Learning with Image Data (2017), §4.

| paper (Algorithm 5)              | here                                                          |
|----------------------------------|---------------------------------------------------------------|
| pool of 4,000 of a device's part | `pool_size` of its examples, drawn once                       |
| BNN(x), p(x)                     | softmax of `dropout_samples` calls with dropout               |
| Acquisition                      | one of `FUNCTIONS`, or `RANDOM`: Algorithm 4's `RandomSample` |
| x_1 ... x_350                    | of the pool's not acquired ones the `size` that score highest |
| X_50, "5 images per class"       | `kept_per_class`, drawn once, never in the pool               |
| T                                | `per_round`                                                   |

The paper does not say which 50 are stored: here each client draws its own.

Pool and kept examples follow from a seed in the client's state in every round, so that the state
holds a number for each place in the pool, and no example.
"""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import tensorflow as tf

from tff_het import seeding
from tff_het.learning import mc_dropout
from tff_het.models.model import ClientContext, Model, Variables
from tff_het.numbers import INT32, Number

RANDOM, BALD = "random", "bald"

# Pool examples that are scored together.
_BATCH_SIZE = 50


def _entropy(probabilities: tf.Tensor) -> tf.Tensor:
    """Shannon's, in nats, [..., classes] -> [...]; 0 log 0 is 0."""
    return -tf.reduce_sum(tf.math.xlogy(probabilities, probabilities), axis=-1)


def max_entropy(probabilities: tf.Tensor) -> tf.Tensor:
    """The entropy of the mean prediction, [samples, n, classes] -> [n]."""
    return _entropy(tf.reduce_mean(probabilities, axis=0))


def bald(probabilities: tf.Tensor) -> tf.Tensor:
    """What the label would say of the weights (Houlsby et al. 2011), [samples, n, classes] -> [n].

    The entropy of the mean prediction minus the mean of the predictions' entropies.
    """
    return max_entropy(probabilities) - tf.reduce_mean(_entropy(probabilities), axis=0)


def variation_ratios(probabilities: tf.Tensor) -> tf.Tensor:
    """1 - the mean prediction's highest probability, [samples, n, classes] -> [n]."""
    return 1.0 - tf.reduce_max(tf.reduce_mean(probabilities, axis=0), axis=-1)


# By name, what says of an example how much it is wanted: float32 [samples, n, classes] -> [n].
FUNCTIONS: Mapping[str, Callable[[tf.Tensor], tf.Tensor]] = {
    "max_entropy": max_entropy,
    BALD: bald,
    "variation_ratios": variation_ratios,
}
NAMES = (RANDOM, *FUNCTIONS)


@dataclasses.dataclass(frozen=True)
class Acquisition:
    """Settings of a client's active learning.

    Attributes:
      function: One of `NAMES`. With `RANDOM` the pool is not looked at.
      size: Examples in an acquisition; the pool's last ones may be fewer.
      per_round: Acquisitions in a round, each with a training of its own.
      pool_size: Examples in the pool, or all that are not kept where a client has fewer.
      kept_per_class: Examples of each class, or all where a client has fewer, that it trains on
        beside those of every acquisition.
      dropout_samples: Predictions that a score is made of, each with a seed of its own.
    """

    function: str
    size: int = 400
    per_round: int = 1
    pool_size: int = 4000
    kept_per_class: int = 0
    dropout_samples: int = 20

    def __post_init__(self):
        if self.function not in NAMES:
            raise ValueError(
                f"The acquisition function must be one of {', '.join(NAMES)}; found "
                f"{self.function!r}."
            )
        for name in ("size", "per_round", "pool_size", "dropout_samples", "kept_per_class"):
            least = 0 if name == "kept_per_class" else 1
            Number(least, INT32, is_whole=True).check(name, getattr(self, name))
        if self.size > self.pool_size:
            raise ValueError(
                f"An acquisition of {self.size} examples does not fit a pool of {self.pool_size}."
            )


class Pool(NamedTuple):
    """What a client keeps of its acquisitions, none of which travels.

    Attributes:
      taken: int32 [pool_size], for each place in the pool the number (1, 2, ...) of the acquisition
        that took its example, or 0. Places behind a small pool's end stay 0.
      seed: int32 [2], from which the pool and the kept examples follow.
    """

    taken: Any
    seed: Any


class Drawn(NamedTuple):
    """Places among a client's examples, int32 each: the pool's, in its order, and the kept ones."""

    pool: tf.Tensor
    kept: tf.Tensor


def check(model: Model, acquisition: Acquisition) -> None:
    """Raises what is to be said where examples cannot be acquired for a model.

    Raises:
      ValueError: If the examples have no classes, or BALD has nothing to compare.
    """
    if "y" not in model.example_spec:
        raise ValueError(
            "Examples are acquired with their class: the examples need a column y; found "
            f"{', '.join(model.example_spec)}."
        )
    if acquisition.function == BALD and not model.draws_in_training:
        raise ValueError(
            "bald compares predictions that differ by what a model draws in training, and this "
            "model draws nothing: take a network with dropout, or another acquisition function."
        )


def initial(acquisition: Acquisition, seed: int) -> Pool:
    """Returns the pool of a client that has not acquired anything yet."""
    taken = tf.zeros([acquisition.pool_size], tf.int32)
    return Pool(taken, tf.constant(seeding.stateless_seed(seed, seeding.CLIENT_STATE)))


def draw(acquisition: Acquisition, labels: tf.Tensor, seed: tf.Tensor) -> Drawn:
    """Draws which of a client's examples are kept, and which are the pool.

    Args:
      acquisition: The settings.
      labels: Those of all of its examples, integers [n].
      seed: int32 [2].
    """
    labels = tf.cast(labels, tf.int32)
    order = tf.argsort(tf.random.stateless_uniform(tf.shape(labels), seed))
    shuffled = tf.gather(labels, order)
    by_class = tf.argsort(shuffled, stable=True)
    grouped = tf.gather(shuffled, by_class)
    # How many of the same class come before each, in the order drawn.
    before = tf.range(tf.size(labels)) - tf.searchsorted(grouped, grouped)
    is_kept = tf.gather(before, tf.math.invert_permutation(by_class)) < acquisition.kept_per_class
    rest = tf.boolean_mask(order, ~is_kept)
    return Drawn(rest[: acquisition.pool_size], tf.boolean_mask(order, is_kept))


# (variables, examples, client, seed) -> variables after training on these examples, and metrics.
TrainOn = Callable[[Variables, Any, ClientContext, tf.Tensor], tuple[Variables, Any]]


def train_on_acquired(
    model: Model,
    acquisition: Acquisition,
    train_on: TrainOn,
    variables: Variables,
    examples: Mapping[str, tf.Tensor],
    client: ClientContext,
    seed: tf.Tensor,
    pool: Pool,
    no_metrics: Any,
) -> tuple[Variables, Any, Pool]:
    """Acquires and trains, `per_round` times.

    Each acquisition scores what is left of the pool with the variables of that moment. Labels are
    read of what was acquired or is kept, alone. Once the pool is exhausted, the client trains on
    the kept examples.

    Args:
      model: The model.
      acquisition: The settings.
      train_on: What is done with one acquisition and the kept examples.
      variables: The values to start from.
      examples: The client's examples, columns [n, ...], among them `y`.
      client: The client.
      seed: int32 [2].
      pool: What it has acquired before.
      no_metrics: Metrics to which those of each training are added.

    Returns:
      The variables afterwards, the sums of the metrics, and what the client has acquired.
    """
    pooled, kept = draw(acquisition, examples["y"], pool.seed)
    columns = {name: column for name, column in examples.items() if name != "y"}
    fold_in = tf.random.experimental.stateless_fold_in

    def acquire_and_train(turn, variables, taken, metrics):
        seeds = tf.random.experimental.stateless_split(fold_in(seed, turn), 2)
        score_seed, train_seed = tf.unstack(seeds)
        left = tf.where(tf.equal(taken[: tf.size(pooled)], 0))[:, 0]
        rows = tf.gather(pooled, left)
        scores = _scores(model, acquisition, variables, columns, client, score_seed, rows)
        # Of equal scores, `top_k` takes the first.
        highest = tf.math.top_k(scores, tf.minimum(acquisition.size, tf.size(left))).indices
        places = tf.gather(left, highest)
        number = tf.fill(tf.shape(places), tf.reduce_max(taken) + 1)
        taken = tf.tensor_scatter_nd_update(taken, places[:, tf.newaxis], number)
        rows = tf.concat([tf.gather(pooled, places), kept], axis=0)
        batch = {name: tf.gather(column, rows) for name, column in examples.items()}
        context = client._replace(num_examples=tf.size(rows))
        variables, more = train_on(variables, batch, context, train_seed)
        return turn + 1, variables, taken, tf.nest.map_structure(tf.add, metrics, more)

    _, variables, taken, metrics = tf.while_loop(
        lambda turn, *_: turn < acquisition.per_round,
        acquire_and_train,
        (tf.zeros([], tf.int32), variables, pool.taken, no_metrics),
    )
    return variables, metrics, pool._replace(taken=taken)


def _scores(
    model: Model,
    acquisition: Acquisition,
    variables: Variables,
    columns: Mapping[str, tf.Tensor],
    client: ClientContext,
    seed: tf.Tensor,
    rows: tf.Tensor,
) -> tf.Tensor:
    """Scores examples, float32 [n]: the highest are acquired; `rows` are indices, int32 [n].

    What fills up the last batch are the pool's first examples once more; with batch normalisation
    these are part of the batch.
    """
    if acquisition.function == RANDOM:
        return tf.random.stateless_uniform(tf.shape(rows), seed)
    fold_in = tf.random.experimental.stateless_fold_in
    num = tf.size(rows)
    batches = -(-num // _BATCH_SIZE)
    places = tf.range(batches * _BATCH_SIZE) % tf.maximum(num, 1)
    batch_rows = tf.reshape(tf.gather(rows, places), [batches, _BATCH_SIZE])

    def scores_of_batch(index: tf.Tensor) -> tf.Tensor:
        taken = tf.gather(batch_rows, index)
        batch = {name: tf.gather(column, taken) for name, column in columns.items()}
        samples = mc_dropout.probabilities(
            model, variables, batch, client, fold_in(seed, index), acquisition.dropout_samples
        )
        return FUNCTIONS[acquisition.function](samples)

    signature = tf.TensorSpec([_BATCH_SIZE], tf.float32)
    scores = tf.map_fn(scores_of_batch, tf.range(batches), fn_output_signature=signature)
    return tf.reshape(scores, [-1])[:num]
