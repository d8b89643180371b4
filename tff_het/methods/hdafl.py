"""Heterogeneous-data-aware federated learning: shared features, a private classifier.

L. Yang, C. Beliard, D. Rossi: Heterogeneous Data-Aware Federated Learning (2020).

| paper (Algorithm 1)        | here                                              |
|----------------------------|---------------------------------------------------|
| wb, the generic parameters | the model's global variables                      |
| wl, the specific ones      | its local variables: the last layer               |
| ClientInit(k, wb_0, wl_0)  | `ServerState.initial_local`, the same for all       |
| C, E                       | clients a round, `LocalTraining.epochs`           |
| sum_k n_k/n wb^k_t         | the aggregator, on wb^k_{t+1} - wb_t              |

Algorithm 1 divides by the examples of all K clients; read literally that would shrink the
weights whenever fewer take part. As §4 says, the mean is over those selected.
"""

from collections.abc import Callable, Sequence

from tff_het.learning.composer import AggregationFactory, compose
from tff_het.learning.local_training import LocalTraining
from tff_het.learning.process import FederatedProcess
from tff_het.learning.server_step import apply_update
from tff_het.learning.works import local_sgd
from tff_het.models.architectures import Architecture


def build_hdafl(
    architecture: Architecture,
    training: LocalTraining,
    *,
    seed: int,
    local_layers: Sequence[str] | Callable[[str], bool] | None = None,
    aggregator: AggregationFactory | None = None,
    server_optimizer=None,
) -> FederatedProcess:
    """Builds HDAFL: shared features, a private classifier.

    Args:
      architecture: The network.
      training: Settings of the clients' local SGD, which trains both parts together.
      local_layers: The specific part: names of layers (in Python also a predicate on variable
        paths); the architecture's classifier by default.
    """
    model = architecture.model(local=architecture.head if local_layers is None else local_layers)
    work = local_sgd(model, training)
    step = apply_update(model, server_optimizer)
    return compose(model, work, seed=seed, aggregator=aggregator, server_step=step)
