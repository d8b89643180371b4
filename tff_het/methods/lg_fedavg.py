"""LG-FedAvg: local representations, and a global model that works on them.

P. P. Liang, T. Liu, L. Ziyin, N. B. Allen, R. P. Auerbach, D. Brent, R. Salakhutdinov, L.-P.
Morency: Think Locally, Act Globally: Federated Learning with Local and Global Representations
(2019).

| paper                                   | here                                               |
|-----------------------------------------|----------------------------------------------------|
| the local model of device m             | local variables: the layers in `local_layers`      |
| the global model                        | global variables: all others                       |
| H_m, the local representation           | the activations of the last of the `local_layers`  |
| the auxiliary network, its loss, eq. 1  | `local_loss`: variables that stay at the device too |
| weights by the norm of the global gradient, §2.2 | `norm_weights`                            |
| FedAvg before, local models as its copies | `loop.train(start=...)`                          |

Which layers are local is a choice: the paper's global model is the last two layers of the MLP for
MNIST (three in the authors' code), but the two convolutions, its first layers, for CIFAR-10.

The text does not say which gradient weighs a device: here the norm of its update of the global
variables, which is that of the sum of its steps, times its number of examples. Of main_mtl.py in
the authors' code there is no method here: its penalty takes the weights of the first ten devices
for those of the ten that were drawn, and the paper does not mention it.
"""

from collections.abc import Sequence
from typing import Literal

from tff_het.kinds import Positive
from tff_het.learning import aggregators
from tff_het.learning.composer import AggregationFactory, compose
from tff_het.learning.local_training import LocalTraining
from tff_het.learning.process import FederatedProcess
from tff_het.learning.server_step import apply_update
from tff_het.learning.works import local_sgd, weighted_by_norm
from tff_het.models import auxiliary
from tff_het.models.architectures import Architecture


def build_lg_fedavg(
    architecture: Architecture,
    training: LocalTraining,
    *,
    seed: int,
    local_layers: Sequence[str] | None = None,
    local_loss: Literal["supervised", "autoencoder", "rotation"] | None = None,
    local_loss_weight: Positive | None = None,
    norm_weights: bool = False,
    aggregator: AggregationFactory | None = None,
    server_optimizer=None,
) -> FederatedProcess:
    """Builds LG-FedAvg: local representations, and a global model that works on them.

    Args:
      architecture: The network.
      training: Settings of the clients' local SGD, which trains both parts together.
      local_layers: Names of the local layers; by default all but the last two, and at least the
        first.
      local_loss: A loss on the local representation, with a network of its own that stays at the
        client; none by default.
      local_loss_weight: What it counts beside the loss of the predictions, positive; by default 1.
      norm_weights: Whether a client's update counts by its norm too.

    Raises:
      ValueError: If a layer does not exist, the local loss does not fit the network, there is a
        weight without it, or norms are to be weights and the aggregator takes none.
    """
    if local_layers is None:  # Two are global, as the text has it for MNIST.
        local_layers = architecture.layers[:-2] or architecture.layers[:1]
    if local_loss is not None:
        weight = 1.0 if local_loss_weight is None else local_loss_weight
        architecture = auxiliary.attach(architecture, local_loss, tuple(local_layers), weight)
    elif local_loss_weight is not None:
        raise ValueError("local_loss_weight is what a local_loss counts: give that too.")
    if norm_weights:
        aggregators.check_weighted(aggregator, "weights by norm")
    model = architecture.model(local=local_layers)
    work = local_sgd(model, training)
    if norm_weights:
        work = weighted_by_norm(work)
    step = apply_update(model, server_optimizer)
    return compose(model, work, seed=seed, aggregator=aggregator, server_step=step)
