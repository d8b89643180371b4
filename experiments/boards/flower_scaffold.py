"""SCAFFOLD as Flower's NIID-Bench has it: with momentum, and weighted by examples; a plugin.

Facts of adap/flower's `baselines/niid_bench`. What differs from `tff_het/methods/scaffold.py`: a
step is one of SGD with momentum, after which w moves by -eta (c - c_i), without momentum; and
clients count by their examples. The control variate is (x - y) / (K eta), as there: with momentum
0.9 it is ten times the mean gradient, and so is the length of the steps that it corrects.
"""

from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from tff_het.learning import measuring, steps
from tff_het.learning.composer import compose
from tff_het.learning.local_training import LocalTraining
from tff_het.learning.process import FederatedProcess
from tff_het.learning.server_step import ServerStep, apply_update
from tff_het.learning.works import local_sgd, sends_change
from tff_het.methods import METHODS
from tff_het.models.architectures import Architecture
from tff_het.models.model import Variables


class _Sent(NamedTuple):
    change: Any
    control: Any


def build(
    architecture: Architecture,
    training: LocalTraining,
    *,
    seed: int,
    num_clients: int,
) -> FederatedProcess:
    """SCAFFOLD with momentum, weighted by examples, as Flower's NIID-Bench has it.

    Args:
      architecture: The network, all of it shared.
      training: Settings of the clients' local SGD.
      seed: Of the initial weights.
      num_clients: N, the size of the population.
    """
    model = architecture.model(local=())
    work, updating = local_sgd(model, training), apply_update(model)
    zeros = [np.zeros(s.shape, np.float32) for s in model.tensor_specs.global_weights.trainable]

    def train(download, examples, client, seed, state):
        rate = measuring.learning_rate(training, download.round)
        correction = [c - c_i for c, c_i in zip(download.more, state.work, strict=True)]
        plain = steps.sgd(model, training, download.round)

        def step(carry, batches, seeds, client):
            (variables, momentum), outputs = plain.step(carry, batches, seeds, client)
            return (steps.moved(variables, correction, -rate), momentum), outputs

        before, own = Variables(download.weights, state.model), plain._replace(step=step)
        after, metrics = steps.run(model, training, own, before, examples, client, seed)
        result = sends_change(before, after, metrics, state)
        scale = 1.0 / (tf.cast(training.num_steps(client.num_examples), tf.float32) * rate)
        pairs = zip(download.more, result.update.trainable, strict=True)
        control = [-c - scale * change for c, change in pairs]
        kept = [c_i + dc for c_i, dc in zip(state.work, control, strict=True)]
        return result._replace(
            update=_Sent(result.update, control), state=result.state._replace(work=kept)
        )

    def init(client, seed, server_state):
        return work.init(client, seed, server_state)._replace(work=zeros)

    def reads(state):
        return work.reads(state)._replace(more=state.server_step[0])

    def step(state, weights, sent, participants):
        optimizer, weights, measured = updating.step(state[1], weights, sent.change)
        moved = zip(state[0], sent.control, strict=True)
        control = [c + participants / num_clients * dc for c, dc in moved]
        return (control, optimizer), weights, measured

    return compose(
        model,
        work._replace(train=train, init=init, reads=reads),
        seed=seed,
        server_step=ServerStep(lambda: (zeros, updating.initial()), step, True),
    )


METHODS.register("flower_scaffold", build)
