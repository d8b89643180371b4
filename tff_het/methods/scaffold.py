"""SCAFFOLD: control variates take the drift of a client's own data out of its steps.

S. P. Karimireddy, S. Kale, M. Mohri, S. Reddi, S. Stich, A. T. Suresh: SCAFFOLD: Stochastic
Controlled Averaging for Federated Learning (2020), Algorithm 1 with option II.

| paper (Algorithm 1)               | here                                                      |
|-----------------------------------|-----------------------------------------------------------|
| x, c                              | `ServerState.weights`, `.server_step[0]`                  |
| c_i                               | `ClientState.work`, starts at 0                           |
| y_i - eta_l (g_i(y_i) - c_i + c)  | plain SGD on the loss plus <c - c_i, y_i>                 |
| c_i+ = c_i - c + (x - y_i) / (K eta_l) | K is the client's own number of steps                |
| (dy_i, dc_i)                      | the update: `change` and `control`                        |
| x + eta_g / \\|S\\| sum dy_i        | the mean, each client counting the same; the server's rate |
| c + 1 / N sum dc_i                | `participants / num_clients` times the mean               |

Moving statistics have no control variates and are averaged. Clients without examples keep theirs.
"""

from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from tff_het.learning import measuring
from tff_het.learning.client_work import ClientWork
from tff_het.learning.composer import AggregationFactory, compose
from tff_het.learning.descent import is_sgd
from tff_het.learning.local_training import LocalTraining
from tff_het.learning.process import FederatedProcess
from tff_het.learning.server_step import ServerStep, apply_update
from tff_het.learning.steps import linear
from tff_het.learning.works import equally_weighted, local_sgd
from tff_het.models.architectures import Architecture
from tff_het.models.model import Model


class Corrected(NamedTuple):
    """What a client sends: the changes of the model and of its control variate."""

    change: Any
    control: Any


def build_scaffold(
    architecture: Architecture,
    training: LocalTraining,
    *,
    seed: int,
    num_clients: int,
    aggregator: AggregationFactory | None = None,
    server_optimizer=None,
) -> FederatedProcess:
    """Builds SCAFFOLD: control variates take clients' drift out of their steps.

    Args:
      architecture: The network, all of it shared.
      training: Settings of the clients' local SGD, without momentum.
      num_clients: N, the size of the population.
      aggregator: The mean of all clients, each counting the same, by default.
      server_optimizer: Any of `tff.learning.optimizers`; its rate is eta_g, 1 by default.

    Raises:
      ValueError: If the optimizer is not plain SGD, examples are to be acquired, or the network has
        an opponent.
    """
    if not is_sgd(training.optimizer) or training.acquisition is not None or architecture.opponent:
        raise ValueError("scaffold takes plain SGD alone: no momentum, acquisition or adversary.")
    model = architecture.model(local=())

    def correction(download, state):
        return linear([c - c_i for c, c_i in zip(download.more, state.work, strict=True)])

    work = equally_weighted(local_sgd(model, training, correction))
    step = apply_update(model, server_optimizer)
    work, server_step = controlled(model, training, work, step, num_clients)
    return compose(model, work, seed=seed, aggregator=aggregator, server_step=server_step)


def controlled(
    model: Model, training: LocalTraining, work: ClientWork, of: ServerStep, num_clients: int
) -> tuple[ClientWork, ServerStep]:
    """Returns a client work and a server step with control variates around them.

    Args:
      model: The network, all of it shared.
      training: Settings of the clients' local SGD.
      work: Trains with c, `Download.more`, and c_i, `ClientState.work`, which it leaves alone.
      of: The server's step for the model.
      num_clients: N, the size of the population.
    """
    zeros = [np.zeros(s.shape, np.float32) for s in model.tensor_specs.global_weights.trainable]

    def train(download, examples, client, seed, state):
        result = work.train(download, examples, client, seed, state)
        steps = tf.cast(training.num_steps(client.num_examples), tf.float32)
        eta = measuring.learning_rate(training, download.round)
        scale = tf.math.divide_no_nan(1.0, steps * eta)
        pairs = zip(download.more, result.update.trainable, strict=True)
        control = [tf.sign(steps) * (-c - scale * dy) for c, dy in pairs]
        kept = [c_i + dc for c_i, dc in zip(state.work, control, strict=True)]
        state = result.state._replace(work=kept)
        return result._replace(update=Corrected(result.update, control), state=state)

    def init(client, seed, server_state):
        return work.init(client, seed, server_state)._replace(work=zeros)

    def reads(state):
        return work.reads(state)._replace(more=state.server_step[0])

    def step(state, weights, sent, participants):
        optimizer, weights, measured = of.step(state[1], weights, sent.change)
        moved = zip(state[0], sent.control, strict=True)
        control = [c + participants / num_clients * dc for c, dc in moved]
        return (control, optimizer), weights, measured

    own = work._replace(train=train, init=init, reads=reads)
    return own, ServerStep(lambda: (zeros, of.initial()), step, True)
