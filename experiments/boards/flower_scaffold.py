"""SCAFFOLD as Flower's NIID-Bench has it: with momentum, and weighted by examples; a plugin.

Facts of adap/flower's `baselines/niid_bench`. What differs from `tff_het/methods/scaffold.py`: a
step is one of SGD with momentum, after which w moves by -eta (c - c_i), without momentum; and
clients count by their examples. The control variate is (x - y) / (K eta), as there: with momentum
0.9 it is ten times the mean gradient, and so is the length of the steps that it corrects.
"""

from tff_het.learning import measuring, steps
from tff_het.learning.composer import compose
from tff_het.learning.local_training import LocalTraining
from tff_het.learning.process import FederatedProcess
from tff_het.learning.server_step import apply_update
from tff_het.learning.works import local_sgd, sends_change
from tff_het.methods import METHODS
from tff_het.methods.scaffold import controlled
from tff_het.models.architectures import Architecture
from tff_het.models.model import Variables


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

    def train(download, examples, client, seed, state):
        rate = measuring.learning_rate(training, download.round)
        correction = [c - c_i for c, c_i in zip(download.more, state.work, strict=True)]
        plain = steps.sgd(model, training, download.round)

        def step(carry, batches, seeds, client):
            (variables, momentum), outputs = plain.step(carry, batches, seeds, client)
            return (steps.moved(variables, correction, -rate), momentum), outputs

        before, own = Variables(download.weights, state.model), plain._replace(step=step)
        after, metrics = steps.run(model, training, own, before, examples, client, seed)
        return sends_change(before, after, metrics, state)

    work = local_sgd(model, training)._replace(train=train)
    work, server_step = controlled(model, training, work, apply_update(model), num_clients)
    return compose(model, work, seed=seed, server_step=server_step)


METHODS.register("flower_scaffold", build)
