"""IFCA: the server keeps several models, and each client trains the one that fits it best.

A. Ghosh, J. Chung, D. Yin, K. Ramchandran: An Efficient Framework for Clustered Federated Learning
(2020), Algorithm 1 with model averaging (option II).

| paper (Algorithm 1)             | here                                                          |
|---------------------------------|---------------------------------------------------------------|
| theta_1 ... theta_k             | `ServerState.weights`, rows [k, ...] with starts of their own |
| j = argmin F_i(theta_j)         | `_closest`, on all training examples, again in each round      |
| LocalUpdate(theta_j)            | `local_sgd` from row j                                        |
| s_i, one-hot                    | `used`, sent beside the change                                |
| mean over the clients of j      | changes over `used`; an empty cluster keeps its model         |

Clients download all models and predict with the one of lowest loss on their training examples. Of
an update one row of k is not 0: the ledger counts that row alone.
"""

import dataclasses
from typing import Any, NamedTuple

import tensorflow as tf

from tff_het import kept, seeding
from tff_het.kinds import Repeats
from tff_het.learning.composer import compose
from tff_het.learning.local_training import LocalTraining
from tff_het.learning.measuring import mean_loss
from tff_het.learning.process import FederatedProcess
from tff_het.learning.server_step import ServerStep
from tff_het.learning.works import equally_weighted, local_sgd
from tff_het.methods.warning import warn_if
from tff_het.models.architectures import Architecture
from tff_het.models.model import Model, Variables, Weights


class Clustered(NamedTuple):
    """What a client sends: the change of all models, and which of them it used, [k]."""

    change: Any
    used: Any


def build_ifca(
    architecture: Architecture, training: LocalTraining, *, seed: int, num_clusters: Repeats = 2
) -> FederatedProcess:
    """Builds IFCA: several models, of which each client trains the one that fits it best.

    Args:
      architecture: The network, all of it shared.
      training: Settings of the clients' local SGD.
      seed: The initial weights of all models follow from it.
      num_clusters: k, the number of models.

    Raises:
      ValueError: If clients are to keep moving statistics: there are k of each; or examples are to
        be acquired.
    """
    if architecture.local_statistics or training.acquisition is not None:
        raise ValueError("ifca takes no local_statistics, and no acquisition: it reads all labels.")
    warn_if(num_clusters == 1, "ifca with 1 cluster is federated averaging with equal weights.")
    model = architecture.model(local=())
    local = equally_weighted(local_sgd(model, training))

    def closest(weights, examples, client, seed):
        own = [Variables(_row(weights, j), Weights([], [])) for j in range(num_clusters)]
        losses = [mean_loss(model, one, examples, client, seed) for one in own]
        return tf.argmin(losses, output_type=tf.int32)

    def train(download, examples, client, seed, state):
        j = closest(download.weights, examples, client, seed)
        own = download._replace(weights=_row(download.weights, j))
        result, used = local.train(own, examples, client, seed, state), tf.one_hot(j, num_clusters)
        change = tf.nest.map_structure(lambda u: tf.tensordot(used, u, 0), result.update)
        return result._replace(update=Clustered(change, used))

    def adapt(download, examples, client, seed, state):
        j = closest(download.weights, examples, client, seed)
        first = tf.nest.map_structure(lambda w: tf.roll(w, -j, axis=0), download.weights)
        return Variables(first, state.model)

    def step(state, weights, sent):
        def moved(w, change):
            used = tf.reshape(sent.used, [-1] + [1] * (len(w.shape) - 1))
            return w + tf.math.divide_no_nan(change, used)

        return state, tf.nest.map_structure(moved, weights, sent.change), ()

    work = local._replace(train=train, adapt=adapt, upload_share=1 / num_clusters)
    server_step = ServerStep(lambda: (), step)
    return compose(_stacked(model, num_clusters), work, seed=seed, server_step=server_step)


def _row(weights: Weights, j: Any) -> Weights:
    return tf.nest.map_structure(lambda w: tf.gather(w, j), weights)


@kept.by_content(size=64)
def _stacked(model: Model, k: int) -> Model:
    """A model of k rows, which predicts with the first of them."""

    def initial(seed):
        seeds = [seed, *(seeding.integer_seed(seed, seeding.MODEL, j) for j in range(1, k))]
        return tf.nest.map_structure(lambda *w: tf.stack(w), *map(model.initial_variables, seeds))

    def predict(variables, *rest):
        return model.predict(Variables(_row(variables[0], 0), variables[1]), *rest)

    specs = tuple(dataclasses.replace(spec, shape=(k, *spec.shape)) for spec in model.specs)
    of = dataclasses.replace(model, specs=specs, initial_variables=initial, predict=predict)
    return dataclasses.replace(of, client_is_input=True)
