"""AveFL: the server goes on with the mean of the devices' models, each counting the same.

J. Qian, X. Fafoutis, L. K. Hansen: Towards Federated Learning: Robustness to Extremely Unbalanced
Data for Edge Computing (2019), Algorithm 1.

| paper                     | here                                                               |
|---------------------------|--------------------------------------------------------------------|
| W^t                       | `ServerState.weights`; the first is trained at the server           |
| W_i^t                     | W^t plus the update of device i                                     |
| 1/n sum_i W_i^t           | `equally_weighted`, and the mean                                    |
| epochs over acquired data | `LocalTraining.epochs` (with `LocalTraining.acquisition`)           |
| ensemble frequency        | how many acquisitions are in a round                                |

It is federated averaging but for the weights, which the paper leaves open and then takes to be
uniform. A device without examples counts nothing.
"""

from tff_het.learning.composer import AggregationFactory, compose
from tff_het.learning.local_training import LocalTraining
from tff_het.learning.process import FederatedProcess
from tff_het.learning.server_step import apply_update
from tff_het.learning.works import equally_weighted, local_sgd
from tff_het.models.architectures import Architecture


def build_ave_fl(
    architecture: Architecture,
    training: LocalTraining,
    *,
    seed: int,
    aggregator: AggregationFactory | None = None,
    server_optimizer=None,
) -> FederatedProcess:
    """Builds AveFL: the server takes the mean of the devices' models, each counting the same.

    Args:
      architecture: The network, all of it global.
      training: Settings of the devices' local SGD.
      aggregator: The mean of all devices, each counting the same, by default.
    """
    model = architecture.model(local=())
    work = equally_weighted(local_sgd(model, training))
    step = apply_update(model, server_optimizer)
    return compose(model, work, seed=seed, aggregator=aggregator, server_step=step)
