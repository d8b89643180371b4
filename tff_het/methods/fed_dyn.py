"""FedDyn: a correction makes clients' losses agree with the sum's minimum.

D. A. E. Acar, Y. Zhao, R. Matas Navarro, M. Mattina, P. N. Whatmough, V. Saligrama: Federated
Learning Based on Dynamic Regularization (2021), Algorithm 1.

| paper (Algorithm 1)                           | here                                           |
|-----------------------------------------------|------------------------------------------------|
| theta^t, h^t                                  | `ServerState.weights`, `.server_step`          |
| grad L_k(theta_k), as l_k                     | `ClientState.work`, starts at 0, never sent    |
| L_k - <l_k, theta> + alpha/2 norm(theta - theta^t)^2 | SGD on the loss plus two penalties      |
| l_k - alpha (theta_k - theta^t)               | after training; without examples it stays      |
| h - alpha / m sum(theta_k - theta^t)          | m is `num_clients`; the mean times participants |
| mean(theta_k) - h / alpha                     | clients count equally, with the new h          |

Moving statistics have no gradients and are averaged. A round without examples changes nothing.
"""

import numpy as np
import tensorflow as tf

from tff_het.kinds import Positive
from tff_het.learning.composer import AggregationFactory, compose
from tff_het.learning.local_training import LocalTraining
from tff_het.learning.process import FederatedProcess
from tff_het.learning.server_step import ServerStep
from tff_het.learning.steps import linear, proximal
from tff_het.learning.works import equally_weighted, local_sgd
from tff_het.models.architectures import Architecture
from tff_het.models.model import Weights


def build_fed_dyn(
    architecture: Architecture,
    training: LocalTraining,
    *,
    seed: int,
    num_clients: int | None = None,
    proximal_strength: Positive = 0.01,
    aggregator: AggregationFactory | None = None,
) -> FederatedProcess:
    """Builds FedDyn: a correction makes clients' losses agree with the sum's minimum.

    Args:
      architecture: The network, all of it shared.
      training: Settings of the clients' local SGD.
      num_clients: m, the size of the population.
      proximal_strength: alpha, how strongly clients are held near the shared model.
      aggregator: The mean of all clients, each counting the same, by default.

    Raises:
      ValueError: If the number of clients is missing, or examples are to be acquired.
    """
    if num_clients is None:
        raise ValueError("fed_dyn needs num_clients: its correction is a mean over all.")
    if training.acquisition is not None:
        raise ValueError("fed_dyn trains on all examples: leave the acquisition out.")
    model = architecture.model(local=())
    zeros = [np.zeros(s.shape, np.float32) for s in model.tensor_specs.global_weights.trainable]

    def dynamic(download, state):
        slopes = linear([-slope for slope in state.work])
        near = proximal(proximal_strength, download.weights)
        return lambda variables: slopes(variables) + near(variables)

    shared = equally_weighted(local_sgd(model, training, dynamic))

    def train(download, examples, client, seed, state):
        result = shared.train(download, examples, client, seed, state)
        pairs = zip(state.work, result.update.trainable, strict=True)
        kept = [slope - proximal_strength * change for slope, change in pairs]
        return result._replace(state=result.state._replace(work=kept))

    def init(client, seed, server_state):
        return shared.init(client, seed, server_state)._replace(work=zeros)

    def step(h, weights, change, participants):
        share = proximal_strength * participants / num_clients
        h = [one - share * mean for one, mean in zip(h, change.trainable, strict=True)]
        scale = tf.sign(participants) / proximal_strength
        moved = tf.nest.map_structure(tf.add, weights, change)
        corrected = [w - scale * one for w, one in zip(moved.trainable, h, strict=True)]
        return h, Weights(corrected, moved.non_trainable), ()

    return compose(
        model,
        shared._replace(train=train, init=init),
        seed=seed,
        aggregator=aggregator,
        server_step=ServerStep(lambda: zeros, step, True),
    )
