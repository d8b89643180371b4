"""q-FFL: clients with a high loss count more, so that accuracy is more uniform over clients.

T. Li, M. Sanjabi, A. Beirami, V. Smith: Fair Resource Allocation in Federated Learning (2020),
Algorithm 2 (q-FedAvg).

| paper                                     | here                                              |
|-------------------------------------------|---------------------------------------------------|
| F_k(w^t)                                  | `measuring.mean_loss`, on all training examples   |
| L                                         | 1 / the clients' learning rate                    |
| Delta_k = F_k^q L (w^t - w_k)             | weight * (minus the update) of `train`            |
| h_k = q F_k^{q-1} \\|L (w^t - w_k)\\|^2 + L F_k^q | its weight                                   |
| w^{t+1} = w^t - sum_k Delta_k / sum_k h_k | the weighted mean of updates, at server rate 1    |

Both are divided by F_k^q L where that cancels: the update is (w_k - w^t) / (1 + q L |w^t - w_k|^2 /
F_k), which no power of a small loss makes 0 / 0. As in the authors' code 1e-10 is added to F_k.
With q = 0 all clients count the same, whatever their numbers of examples.

Departures: clients are drawn uniformly, where the paper draws them by their numbers of examples. A
client without examples counts nothing. Non-trainable variables (moving statistics), which the
paper does not have, are averaged with the same weights h_k; they are in no norm, and not scaled.
"""

import tensorflow as tf

from tff_het.kinds import NotNegative
from tff_het.learning import aggregators, measuring
from tff_het.learning.client_work import ClientResult
from tff_het.learning.composer import AggregationFactory, compose
from tff_het.learning.local_training import LocalTraining
from tff_het.learning.process import FederatedProcess
from tff_het.learning.server_step import apply_update
from tff_het.learning.works import local_sgd
from tff_het.methods import opponents
from tff_het.methods.warning import warn_if
from tff_het.models.architectures import Architecture
from tff_het.models.model import Variables

_EPSILON = 1e-10


def build_q_ffl(
    architecture: Architecture,
    training: LocalTraining,
    *,
    seed: int,
    q: NotNegative = 0.001,
    aggregator: AggregationFactory | None = None,
    server_optimizer=None,
) -> FederatedProcess:
    """Builds q-FedAvg: clients with a high loss count more (q-FFL).

    Args:
      architecture: The network, all of it global.
      training: Settings of the clients' local SGD; the optimizer needs a learning rate.
      q: How much a client's loss counts, not negative.
      aggregator: The mean weighted by h_k by default.

    Raises:
      ValueError: If the optimizer has no learning rate, examples are to be acquired, the aggregator
        takes no weights, or the network has an opponent.
    """
    warn_if(not q, "q_ffl with q 0 is federated averaging in which all clients count the same.")
    if training.acquisition is not None:
        raise ValueError(
            "q_ffl weighs a client by its loss on all of its examples, which takes the labels of "
            "those that were not acquired: leave the acquisition out "
            f"({training.acquisition.function}), or choose another method."
        )
    aggregators.check_weighted(aggregator, "q_ffl's weights h_k")
    measuring.learning_rate(training, tf.zeros([], tf.int32))  # Refused before anything is traced.
    opponents.refuse(architecture, "q_ffl")
    model = architecture.model(local=())
    plain = local_sgd(model, training)

    def train(download, examples, client, seed, state) -> ClientResult:
        start = Variables(download.weights, state.model)
        loss = measuring.mean_loss(model, start, examples, client, seed) + _EPSILON
        steepness = 1.0 / measuring.learning_rate(training, download.round)
        result = plain.train(download, examples, client, seed, state)
        squares = tf.square(tf.linalg.global_norm(result.update.trainable))
        shrinkage = 1.0 + q * steepness * squares / loss
        weight = steepness * tf.pow(loss, q) * shrinkage
        update = result.update._replace(trainable=[u / shrinkage for u in result.update.trainable])
        return result._replace(
            update=update, weight=tf.where(client.num_examples > 0, weight, tf.zeros_like(weight))
        )

    work = plain._replace(train=train)
    step = apply_update(model, server_optimizer)
    return compose(model, work, seed=seed, aggregator=aggregator, server_step=step)
