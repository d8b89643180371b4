"""Centralised training: one model on everybody's training examples, the reference of the others.

It is federated averaging with a single client that holds the examples of all: the mean over one
client is that client's model. Who that is, is a matter of population and schedule
(`Population.with_pooled`, `cohorts.always`); every client is tested with the result.

A round is one local training of the pooled client. With E epochs it takes E * ceil(n / B) steps
one after another, n being all clients' examples: as many examples as a round of federated
averaging with all clients, but steps that each build on the one before. With a number of steps
instead, a round takes that many, however many clients there are. As at any client, the
optimizer's state starts afresh in every round.
"""

from tff_het.learning.local_training import LocalTraining
from tff_het.learning.process import FederatedProcess
from tff_het.methods.fed_avg import build_fed_avg
from tff_het.models.architectures import Architecture


def build_centralized(
    architecture: Architecture, training: LocalTraining, *, seed: int
) -> FederatedProcess:
    """Builds centralised training: one model on everybody's examples, pooled at one client.

    Args:
      architecture: The network, all of it in one place.
      training: Settings of SGD on the pooled examples.
      seed: The initial weights follow from it; those of federated averaging are the same.
    """
    return build_fed_avg(architecture, training, seed=seed)
