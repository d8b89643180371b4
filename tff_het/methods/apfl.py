"""APFL: each client mixes a model of its own with the shared one, and learns how much of each.

Y. Deng, M. M. Kamani, M. Mahdavi: Adaptive Personalized Federated Learning (2020), Algorithm 1.

| paper (Algorithm 1)                         | here                                              |
|---------------------------------------------|---------------------------------------------------|
| w, w_i                                      | `ServerState.weights`; u in the steps, sent       |
| v_i, alpha_i                                | `ClientState.work`, never sent                    |
| m = alpha v + (1 - alpha) w                 | `_mixed`, with which a client predicts            |
| v - eta grad_v f_i(m)                       | SGD on the loss at m, of which v has alpha's share |
| alpha - eta <v - w, grad f_i(m)>, eq. (10)  | once a round, on its first batch, kept in [0, 1]  |

On each batch both models move by gradients at the old values. The mean counts clients equally.
"""

from typing import Any, NamedTuple

import tensorflow as tf

from tff_het.kinds import Share
from tff_het.learning import measuring, steps
from tff_het.learning.composer import AggregationFactory, compose
from tff_het.learning.descent import Descent, trainable_of, with_trainable
from tff_het.learning.local_training import LocalTraining
from tff_het.learning.process import FederatedProcess
from tff_het.learning.server_step import apply_update
from tff_het.learning.works import equally_weighted, local_sgd, sends_change
from tff_het.methods import opponents
from tff_het.methods.warning import warn_if
from tff_het.models.architectures import Architecture
from tff_het.models.model import Variables, Weights


class Mixed(NamedTuple):
    """What a client keeps: its own model, and how much of it is in the mixture."""

    weights: Weights
    mixing: Any


def build_apfl(
    architecture: Architecture,
    training: LocalTraining,
    *,
    seed: int,
    mixing: Share = 0.5,
    adapt_mixing: bool = True,
    aggregator: AggregationFactory | None = None,
    server_optimizer=None,
) -> FederatedProcess:
    """Builds APFL: each client mixes a model of its own with the shared one.

    Args:
      architecture: The network, all of it shared.
      training: Settings of the clients' local SGD, of both models.
      mixing: alpha at first, from 0 (the shared model alone) to 1 (the client's own alone).
      adapt_mixing: Whether clients learn alpha.
      aggregator: The mean of all clients, each counting the same, by default.

    Raises:
      ValueError: If examples are to be acquired, or the network has an opponent.
    """
    fixed = not mixing and not adapt_mixing
    warn_if(fixed, "apfl with mixing 0 is federated averaging with equal weights.")
    opponents.refuse(architecture, "apfl")
    model = architecture.model(local=())
    shared = equally_weighted(local_sgd(model, training))

    def mixing_steps(alpha, rate, round_num) -> steps.Steps:
        descent = Descent(model, training, round_num=round_num)

        def step(carry, batches, seeds, client):
            (u, u_state), (v, v_state), share, is_first = carry

            def loss(values: Variables):
                result = model.loss(values, batches[0], client, seeds[0], True)
                return result.loss, result

            def learned():
                m = _mixed(v, u, share)
                slope, _ = steps.gradient(model, m, batches[0], client, seeds[0])
                both = zip(trainable_of(v), trainable_of(u), slope, strict=True)
                change = tf.add_n([tf.reduce_sum((a - b) * g) for a, b, g in both])
                return tf.clip_by_value(share - rate * change, 0.0, 1.0)

            def keeps() -> Any:
                return share

            next_share = tf.cond(is_first, learned, keeps) if adapt_mixing else share
            new_v, v_state, own = descent.step(
                lambda values: loss(_mixed(values, u, share)), v, v_state
            )
            new_u, u_state, result = descent.step(loss, u, u_state)
            u = with_trainable(result.variables, new_u)
            v = with_trainable(own.variables, new_v)
            return ((u, u_state), (v, v_state), next_share, tf.constant(False)), result.outputs

        def init(both):
            states = [(one, descent.initial_state) for one in both]
            return (*states, alpha, tf.constant(True))

        return steps.Steps(init, step, lambda carry: (carry[0][0], carry[1][0], carry[2]))

    def train(download, examples, client, seed, state):
        before = Variables(download.weights, state.model)
        own = Variables(state.work.weights, state.model)
        rate = measuring.learning_rate(training, download.round)
        of = mixing_steps(state.work.mixing, rate, download.round)
        found, metrics = steps.run(model, training, of, (before, own), examples, client, seed)
        u, v, alpha = found
        result = sends_change(before, u, metrics, state)
        kept = state._replace(model=v.local_weights, work=Mixed(v.global_weights, alpha))
        return result._replace(weight=tf.sign(result.weight), state=kept)

    def init(client, seed, server_state):
        work = Mixed(server_state.weights, tf.constant(mixing, tf.float32))
        return shared.init(client, seed, server_state)._replace(work=work)

    def adapt(download, examples, client, seed, state):
        own = Variables(state.work.weights, state.model)
        return _mixed(own, Variables(download.weights, state.model), state.work.mixing)

    return compose(
        model,
        shared._replace(train=train, init=init, adapt=adapt),
        seed=seed,
        aggregator=aggregator,
        server_step=apply_update(model, server_optimizer),
    )


def _mixed(own: Variables, shared: Variables, alpha: Any) -> Variables:
    """alpha times one's own plus the rest of the shared model; moving statistics are one's own."""
    pairs = zip(trainable_of(own), trainable_of(shared), strict=True)
    return with_trainable(own, [alpha * v + (1 - alpha) * w for v, w in pairs])
