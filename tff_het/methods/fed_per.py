"""FedPer: shared base layers, and personalization layers that each client keeps.

M. G. Arivazhagan, V. Aggarwal, A. K. Singh, S. Choudhary: Federated Learning with Personalization
Layers (2019), Algorithm 1.

| paper (Algorithm 1)              | here                                                |
|----------------------------------|-----------------------------------------------------|
| W_B, the base layers             | the model's global variables                        |
| W_P_j, personalization layers    | its local variables: the last layer                 |
| K_P, how many of these           | the names in `local_layers`                         |
| SGD_j on (W_B, W_P_j), e, b      | `local_sgd`; `LocalTraining.epochs`, `.batch_size`  |
| gamma_j = n_j / sum n_j          | the aggregator, on the change of W_B                |

The same computation as HDAFL (Yang et al. 2020), under the name that later papers compare with.
Departures: all clients start from the same random W_P, and the mean is over those sampled; in the
paper all clients take part in every round.
"""

from collections.abc import Sequence

from tff_het.learning.composer import AggregationFactory, compose
from tff_het.learning.local_training import LocalTraining
from tff_het.learning.process import FederatedProcess
from tff_het.learning.server_step import apply_update
from tff_het.learning.works import local_sgd
from tff_het.models.architectures import Architecture


def build_fed_per(
    architecture: Architecture,
    training: LocalTraining,
    *,
    seed: int,
    local_layers: Sequence[str] | None = None,
    aggregator: AggregationFactory | None = None,
    server_optimizer=None,
) -> FederatedProcess:
    """Builds FedPer: shared base layers, private personalization layers.

    Args:
      architecture: The network.
      training: Settings of the clients' local SGD, which trains both parts together.
      local_layers: Names of the personalization layers; the architecture's classifier by default.

    Raises:
      ValueError: If a layer does not exist.
    """
    model = architecture.model(local=architecture.head if local_layers is None else local_layers)
    return compose(
        model,
        local_sgd(model, training),
        seed=seed,
        aggregator=aggregator,
        server_step=apply_update(model, server_optimizer),
    )
