"""FedALA: each client learns how much of the shared model it takes, number by number.

J. Zhang, Y. Hua, H. Wang, T. Song, Z. Xue, R. Ma, H. Guan: FedALA: Adaptive Local Aggregation for
Personalized Federated Learning (2023), Algorithm 1.

| paper (Algorithm 1)                   | here                                                    |
|---------------------------------------|---------------------------------------------------------|
| Theta^{t-1}                           | `ServerState.weights`, w                                |
| Theta_i^{t-1}, W_i                    | `ClientState.work`: v, and A, which starts at 1         |
| the p top layers                      | `adaptive_layers`; the others start from w              |
| Theta_i + (Theta - Theta_i) * W_i     | `_mixed`, the same as w + (v - w) * (1 - A)             |
| clip(W - eta grad * (Theta - Theta_i)) | SGD on A, with all else fixed                          |
| s % of the data                       | a window of the client's examples, drawn in each round  |
| sum_i k_i Theta_i                     | the aggregator, weighted by examples                    |

In a client's first round v = w, and A is not learned. In its second one A is learned until the
losses of the last 10 passes have a standard deviation below `threshold` (100 passes at most, where
the authors' code has no limit), later in one pass. A client predicts with its v.
What it sends depends on v, which it keeps: this is the method's idea.
"""

import dataclasses
from collections.abc import Sequence
from typing import Annotated, Any, NamedTuple

import tensorflow as tf

from tff_het.kinds import NotNegative
from tff_het.learning import steps
from tff_het.learning.composer import AggregationFactory, compose
from tff_het.learning.descent import trainable_of, with_trainable
from tff_het.learning.local_training import LocalTraining
from tff_het.learning.process import FederatedProcess
from tff_het.learning.server_step import apply_update
from tff_het.learning.works import local_sgd, sends_change, with_own_globals
from tff_het.methods.warning import warn_if
from tff_het.models.architectures import Architecture
from tff_het.models.model import Variables, Weights
from tff_het.numbers import Number

_fold_in = tf.random.experimental.stateless_fold_in
_LOSSES, _MOST_PASSES = 10, 100


class Aggregated(NamedTuple):
    """What a client keeps: its own model, and for each number of the top how much is shared."""

    weights: Weights
    mixing: Any


def build_fed_ala(
    architecture: Architecture,
    training: LocalTraining,
    *,
    seed: int,
    adaptive_layers: Sequence[str] | None = None,
    mixing_rate: NotNegative = 1.0,
    examples_share: Annotated[float, Number(0.0, 1.0, above=True)] = 0.8,
    threshold: NotNegative = 0.1,
    aggregator: AggregationFactory | None = None,
    server_optimizer=None,
) -> FederatedProcess:
    """Builds FedALA: each client learns how much of the shared model it takes, number by number.

    Args:
      architecture: The network, all of it shared.
      training: Settings of the clients' local SGD; A is learned with its batch size.
      adaptive_layers: Layers mixed by learned weights A; the network's classifier by default.
      mixing_rate: eta of the steps on A.
      examples_share: s, the share of its examples on which a client learns A.
      threshold: A has converged when the standard deviation of the losses is below this.

    Raises:
      ValueError: If there is no such layer, or examples are to be acquired.
    """
    warn_if(not mixing_rate, "fed_ala with mixing_rate 0 trains as federated averaging does.")
    if training.acquisition is not None:
        raise ValueError("fed_ala trains on all examples: leave the acquisition out.")
    layers = architecture.head if adaptive_layers is None else tuple(adaptive_layers)
    if not layers or set(layers) - set(architecture.layers):
        raise ValueError(
            f"adaptive_layers are some of {', '.join(architecture.layers)}; found "
            f"{', '.join(layers) or 'none'}."
        )
    model = architecture.model(local=())
    top = [spec.path.split("/")[0] in layers for spec in model.specs if spec.trainable]
    shared = local_sgd(model, training)
    once = dataclasses.replace(training, epochs=1, steps=None, at_most_one_pass=False)
    once = dataclasses.replace(once, shuffle=False)

    def mixing_steps(v: Variables, w: Variables) -> steps.Steps:
        def step(carry, batches, seeds, client):
            mixing, _ = carry
            m = _mixed(v, w, mixing, top)
            slope, result = steps.gradient(model, m, batches[0], client, seeds[0])
            of = zip(_picked(slope, top), *(_of_top(x, top) for x in (w, v)), mixing, strict=True)
            moved = [a - mixing_rate * g * (w_j - v_j) for g, w_j, v_j, a in of]
            return ([tf.clip_by_value(a, 0.0, 1.0) for a in moved], result.loss), result.outputs

        return steps.Steps(lambda mixing: (mixing, tf.zeros([])), step, lambda carry: carry)

    def learned(v, w, mixing, examples, client, seed):
        """A after passes over a window of the examples."""
        share = tf.cast(tf.cast(client.num_examples, tf.float32) * examples_share, tf.int32)
        size = tf.minimum(tf.maximum(share, 1), client.num_examples)
        last = client.num_examples - size + 1
        start = tf.random.stateless_uniform([], _fold_in(seed, 0), 0, last, tf.int32)
        window = {k: tf.gather(x, start + tf.range(size)) for k, x in examples.items()}
        part = client._replace(num_examples=size)

        def more(number, mixing, losses):
            varies = tf.math.reduce_std(losses) >= threshold
            converging = (number <= _LOSSES) | (varies & (number < _MOST_PASSES))
            return (number == 0) | ((client.rounds == 1) & converging)

        def a_pass(number, mixing, losses):
            given = (window, part, _fold_in(seed, 1 + number))
            (mixing, loss), _ = steps.run(model, once, mixing_steps(v, w), mixing, *given)
            return number + 1, mixing, tf.concat([losses[1:], loss[tf.newaxis]], axis=0)

        first = (tf.zeros([], tf.int32), list(mixing), tf.zeros([_LOSSES]))
        return tf.while_loop(more, a_pass, first)[1]

    def train(download, examples, client, seed, state):
        w = Variables(download.weights, state.model)
        v, mixing = Variables(state.work.weights, state.model), list(state.work.mixing)
        if mixing_rate:
            given = (v, w, mixing, examples, client, _fold_in(seed, 2))
            learns = (client.rounds > 0) & (client.num_examples > 0)
            mixing = tf.cond(learns, lambda: learned(*given), lambda: mixing)
        start = _mixed(v, w, mixing, top)
        after, metrics = steps.fit(model, training, start, examples, client, seed, download.round)
        trained = client.num_examples > 0
        own = tf.nest.map_structure(
            lambda new, old: tf.where(trained, new, old), after.global_weights, state.work.weights
        )
        return sends_change(w, after, metrics, state._replace(work=Aggregated(own, mixing)))

    def init(client, seed, server_state):
        ones = [tf.ones_like(x) for x in _picked(server_state.weights.trainable, top)]
        work = Aggregated(server_state.weights, ones)
        return shared.init(client, seed, server_state)._replace(work=work)

    return compose(
        model,
        shared._replace(train=train, init=init, adapt=with_own_globals),
        seed=seed,
        aggregator=aggregator,
        server_step=apply_update(model, server_optimizer),
    )


def _picked(values: Sequence[Any], top: Sequence[bool]) -> list[Any]:
    return [value for value, is_top in zip(values, top, strict=True) if is_top]


def _of_top(variables: Variables, top: Sequence[bool]) -> list[Any]:
    return _picked(trainable_of(variables), top)


def _mixed(v: Variables, w: Variables, mixing: Sequence[Any], top: Sequence[bool]) -> Variables:
    """The shared model, whose top layers have A of it and 1 - A of one's own; w itself at A = 1."""
    shares, pairs = iter(mixing), zip(trainable_of(v), trainable_of(w), top, strict=True)
    mixed = [b + (a - b) * (1 - next(shares)) if is_top else b for a, b, is_top in pairs]
    return with_trainable(w, mixed)
