"""Federated averaging: everything is shared, nothing stays at the client.

H. B. McMahan, E. Moore, D. Ramage, S. Hampson, B. Agüera y Arcas:
Communication-Efficient Learning of Deep Networks from Decentralized Data (2017).

| paper (Algorithm 1)        | here                                              |
|----------------------------|---------------------------------------------------|
| w_t                        | `ServerState.weights`                             |
| E, B, eta                  | `LocalTraining.epochs`, `.batch_size`, `.optimizer` |
| sum_k n_k/n w^k_{t+1}      | the aggregator, on w^k_{t+1} - w_t                |

With a server optimizer other than SGD at rate 1 this is FedOpt (Reddi et al. 2021).
"""

from tff_het.learning.composer import AggregationFactory, compose
from tff_het.learning.local_training import LocalTraining
from tff_het.learning.process import FederatedProcess
from tff_het.learning.server_step import apply_update
from tff_het.learning.works import local_sgd
from tff_het.models.architectures import Architecture


def build_fed_avg(
    architecture: Architecture,
    training: LocalTraining,
    *,
    seed: int,
    aggregator: AggregationFactory | None = None,
    server_optimizer=None,
) -> FederatedProcess:
    """Builds federated averaging: everything is shared, nothing stays at the client.

    Args:
      architecture: The network, all of it global.
      training: Settings of the clients' local SGD.
    """
    model = architecture.model(local=())
    work = local_sgd(model, training)
    step = apply_update(model, server_optimizer)
    return compose(model, work, seed=seed, aggregator=aggregator, server_step=step)
