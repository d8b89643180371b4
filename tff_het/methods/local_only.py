"""Local training alone: every client keeps all of its model, and nothing travels.

The baseline of Liang et al. (2019) and others: what a client reaches without the
rest. All clients start from the same weights, as they would in federated averaging.
"""

from tff_het.learning.composer import compose
from tff_het.learning.local_training import LocalTraining
from tff_het.learning.process import FederatedProcess
from tff_het.learning.works import local_sgd
from tff_het.models.architectures import Architecture


def build_local_only(
    architecture: Architecture, training: LocalTraining, *, seed: int
) -> FederatedProcess:
    """Builds local training: every client keeps all of its model, and nothing travels.

    Args:
      architecture: The network, all of it local.
      training: Settings of the clients' SGD; a round is one such training.
    """
    model = architecture.model(local=lambda path: True)
    return compose(model, local_sgd(model, training), seed=seed)
