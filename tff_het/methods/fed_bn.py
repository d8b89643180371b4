"""FedBN: batch normalisation stays at the client, everything else is averaged.

X. Li, M. Jiang, X. Zhang, M. Kamp, Q. Dou: FedBN: Federated Learning on Non-IID Features via Local
Batch Normalization (2021), Algorithm 1.

| paper (Algorithm 1)                | here                                                    |
|------------------------------------|---------------------------------------------------------|
| w of layers that are no BN         | global variables; the mean weighted by examples         |
| w of BN layers                     | local variables: scale, shift and moving statistics     |
"""

from tff_het.learning.composer import AggregationFactory, compose
from tff_het.learning.local_training import LocalTraining
from tff_het.learning.process import FederatedProcess
from tff_het.learning.server_step import apply_update
from tff_het.learning.works import local_sgd
from tff_het.models.architectures import Architecture


def build_fed_bn(
    architecture: Architecture,
    training: LocalTraining,
    *,
    seed: int,
    aggregator: AggregationFactory | None = None,
    server_optimizer=None,
) -> FederatedProcess:
    """Builds FedBN: batch normalisation stays at the client.

    Args:
      architecture: The network, with batch normalisation.
      training: Settings of the clients' local SGD.

    Raises:
      ValueError: If the network has no batch normalisation.
    """
    # Other normalisation layers have a scale and a shift as well, but no moving statistics.
    paths = [spec.path.rpartition("/") for spec in architecture.model(local=()).specs]
    normalizing = tuple(layer for layer, _, name in paths if name == "moving_mean")
    if not normalizing:
        raise ValueError(
            "fed_bn keeps batch normalisation at the clients, and this network has none (layers "
            f"{', '.join(architecture.layers)}): take one with it, such as cnn_edge_small_bn."
        )
    model = architecture.model(local=lambda path: path.rpartition("/")[0] in normalizing)
    return compose(
        model,
        local_sgd(model, training),
        seed=seed,
        aggregator=aggregator,
        server_step=apply_update(model, server_optimizer),
    )
