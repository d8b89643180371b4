"""Ditto: each client trains a model of its own, held near the shared one.

T. Li, S. Hu, A. Beirami, V. Smith: Ditto: Fair and Robust Federated Learning Through
Personalization (2021), Algorithm 1 with federated averaging as the solver of the shared problem.

| paper (Algorithm 1)                       | here                                             |
|-------------------------------------------|--------------------------------------------------|
| w^t                                       | `ServerState.weights`                            |
| w_k^t, solver of G                        | `local_sgd`, sent; the mean counts clients equally |
| v_k                                       | `ClientState.work.weights`, never sent           |
| v_k's step with lambda (v_k - w^t)        | SGD with `proximal(lambda, w^t)`, w^t as downloaded |
| s, eta of v_k                             | those of `training`                              |

A client's own model starts as the server's is when they first meet, and it predicts with it. With
plain SGD, a step of the proximal term alone passes w^t where eta * lambda > 1, and such steps
diverge where it is above 2.
"""

import tensorflow as tf

from tff_het.kinds import NotNegative
from tff_het.learning.composer import AggregationFactory, compose
from tff_het.learning.local_training import LocalTraining
from tff_het.learning.process import FederatedProcess
from tff_het.learning.server_step import apply_update
from tff_het.learning.steps import fit, proximal
from tff_het.learning.works import (
    Personal,
    equally_weighted,
    local_sgd,
    starts_from_globals,
    with_own_globals,
)
from tff_het.methods.warning import warn_if
from tff_het.models.architectures import Architecture
from tff_het.models.model import Variables


def build_ditto(
    architecture: Architecture,
    training: LocalTraining,
    *,
    seed: int,
    proximal_strength: NotNegative = 1.0,
    aggregator: AggregationFactory | None = None,
    server_optimizer=None,
) -> FederatedProcess:
    """Builds Ditto: each client trains a model of its own, held near the shared one.

    Args:
      architecture: The network, all of it shared.
      training: Settings of the clients' local SGD, of both models.
      proximal_strength: lambda, how strongly a client's own model is held near the shared one.
      aggregator: The mean of all clients, each counting the same, by default.

    Raises:
      ValueError: If examples are to be acquired.
    """
    alone = "ditto with proximal_strength 0 is local training, from the model first received."
    warn_if(not proximal_strength, alone)
    if training.acquisition is not None:
        raise ValueError("ditto trains on all examples: leave the acquisition out.")
    model = architecture.model(local=())
    shared = equally_weighted(local_sgd(model, training))

    def train(download, examples, client, seed, state):
        result = shared.train(download, examples, client, seed, state)
        own, _ = fit(
            model,
            training,
            Variables(state.work.weights, state.model),
            examples,
            client,
            tf.random.experimental.stateless_fold_in(seed, 2),
            download.round,
            proximal(proximal_strength, download.weights),
        )
        kept = state._replace(model=own.local_weights, work=Personal(own.global_weights, ()))
        return result._replace(state=kept)

    init = starts_from_globals(shared)
    return compose(
        model,
        shared._replace(train=train, init=init, adapt=with_own_globals),
        seed=seed,
        aggregator=aggregator,
        server_step=apply_update(model, server_optimizer),
    )
