"""pFedMe: personal models are proximal points of the shared one (Moreau envelopes).

C. T. Dinh, N. H. Tran, T. D. Nguyen: Personalized Federated Learning with Moreau Envelopes (2020),
Algorithm 1.

| paper (Algorithm 1)                    | here                                                  |
|----------------------------------------|-------------------------------------------------------|
| w^t, w_i^{t,r}                         | `ServerState.weights`; u in the steps, sent           |
| theta_i(w_i^{t,r}), eq. (7)            | `inner_steps` steps, from the last theta, on the loss |
|                                        | plus lambda / 2 norm(theta - u)^2, at `personal_rate` |
| w_i - eta lambda (w_i - theta_i)       | eta is the clients' learning rate                     |
| R                                      | the steps of `training`                               |
| (1 - beta) w + beta mean(w_i)          | the server's SGD at rate beta; clients count equally  |

A client predicts with the theta of its last round; until its first, with the server's model.
"""

from typing import Literal

import tensorflow as tf

from tff_het.backend.names import tff
from tff_het.kinds import NotNegative, Positive, Repeats
from tff_het.learning import measuring, steps
from tff_het.learning.composer import AggregationFactory, compose
from tff_het.learning.descent import is_sgd, trainable_of
from tff_het.learning.local_training import LocalTraining
from tff_het.learning.process import FederatedProcess
from tff_het.learning.server_step import apply_update
from tff_het.learning.works import (
    Personal,
    equally_weighted,
    local_sgd,
    sends_change,
    starts_from_globals,
    with_own_globals,
)
from tff_het.methods import opponents
from tff_het.methods.warning import warn_if
from tff_het.models.architectures import Architecture
from tff_het.models.model import Variables


def build_p_fed_me(
    architecture: Architecture,
    training: LocalTraining,
    *,
    seed: int,
    proximal_strength: Positive = 15.0,
    personal_rate: Positive = 0.1,
    inner_steps: Repeats = 5,
    server_mixing: NotNegative = 1.0,
    predict_with: Literal["theta", "u"] = "theta",
    client_weights: Literal["equal", "examples"] = "equal",
    aggregator: AggregationFactory | None = None,
) -> FederatedProcess:
    """Builds pFedMe: personal models are proximal points of the shared one.

    Args:
      architecture: The network, all of it shared.
      training: Settings of the clients' steps, of plain SGD; its rate is eta.
      proximal_strength: lambda, how strongly theta is held near the shared model.
      personal_rate: Rate of the steps on theta.
      inner_steps: K, how many steps on theta a batch gets.
      server_mixing: beta, which may exceed 1.
      predict_with: theta, a client's own model, or u, its copy of the shared one (as in PerMFL's
        released code).
      client_weights: Weights in the mean: equal, or by examples (as in PerMFL's released code).
      aggregator: The mean of all clients by default.

    Raises:
      ValueError: If the clients' optimizer is not plain SGD, with weight decay or clipping,
        examples are to be acquired, or the network has an opponent.
    """
    warn_if(not server_mixing, "p_fed_me with server_mixing 0 never moves the shared model.")
    is_plain = not training.weight_decay and training.clip_norm is None
    if not (is_sgd(training.optimizer) and is_plain):
        raise ValueError(
            "p_fed_me moves clients by its own rule: leave momentum and other optimizers, weight "
            "decay and clipping out."
        )
    opponents.refuse(architecture, "p_fed_me")
    model = architecture.model(local=())
    is_equal = client_weights == "equal"
    shared = local_sgd(model, training)
    shared = equally_weighted(shared) if is_equal else shared

    def envelope_steps(rate) -> steps.Steps:
        def step(carry, batches, seeds, client):
            u, theta = carry
            outputs = None
            for _ in range(inner_steps):
                slope, result = steps.gradient(model, theta, batches[0], client, seeds[0])
                outputs = outputs or result.outputs
                pairs = zip(trainable_of(theta), trainable_of(u), strict=True)
                pull = [proximal_strength * (a - b) for a, b in pairs]
                change = [g + p for g, p in zip(slope, pull, strict=True)]
                theta = steps.moved(result.variables, change, -personal_rate)
            pairs = zip(trainable_of(u), trainable_of(theta), strict=True)
            u = steps.moved(u, [a - b for a, b in pairs], -rate * proximal_strength)
            # Moving statistics are those of theta.
            u = Variables(
                u.global_weights._replace(non_trainable=theta.global_weights.non_trainable),
                u.local_weights,
            )
            return (u, theta), outputs

        return steps.Steps(lambda variables: (variables, variables), step, lambda carry: carry)

    def train(download, examples, client, seed, state):
        before = Variables(download.weights, state.model)
        of = envelope_steps(measuring.learning_rate(training, download.round))
        (u, theta), metrics = steps.run(model, training, of, before, examples, client, seed)
        result = sends_change(before, u, metrics, state)
        own = u if predict_with == "u" else theta
        kept = state._replace(model=theta.local_weights, work=Personal(own.global_weights, ()))
        weight = tf.sign(result.weight) if is_equal else result.weight
        return result._replace(weight=weight, state=kept)

    init = starts_from_globals(shared)
    return compose(
        model,
        shared._replace(train=train, init=init, adapt=with_own_globals),
        seed=seed,
        aggregator=aggregator,
        server_step=apply_update(model, tff.learning.optimizers.build_sgdm(server_mixing)),
    )
