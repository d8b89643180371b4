"""FedAvg with fine-tuning: each client tunes the shared model on its own examples, to predict.

The baseline of T. Yu, E. Bagdasaryan, V. Shmatikov: Salvaging Federated Learning by Local
Adaptation (2020), section 3.1, among others.

| symbol          | here                                                              |
|-----------------|-------------------------------------------------------------------|
| w               | `ServerState.weights`, trained by federated averaging             |
| w_i             | w after `fine_tuning_epochs` of SGD at client i, which is not kept |
"""

import dataclasses

from tff_het.backend.names import tff
from tff_het.kinds import Passes, Positive
from tff_het.learning.composer import AggregationFactory, compose
from tff_het.learning.local_training import LocalTraining
from tff_het.learning.process import FederatedProcess
from tff_het.learning.server_step import apply_update
from tff_het.learning.works import fine_tuning, local_sgd
from tff_het.methods.warning import warn_if
from tff_het.models.architectures import Architecture


def build_fed_avg_ft(
    architecture: Architecture,
    training: LocalTraining,
    *,
    seed: int,
    fine_tuning_epochs: Passes = 1,
    fine_tuning_rate: Positive | None = None,
    aggregator: AggregationFactory | None = None,
    server_optimizer=None,
) -> FederatedProcess:
    """Builds federated averaging whose clients fine-tune the model before they predict.

    Args:
      architecture: The network, all of it shared.
      training: Settings of the clients' local SGD, and of fine-tuning.
      fine_tuning_epochs: Passes over the client's training examples.
      fine_tuning_rate: Learning rate of fine-tuning by plain SGD; the clients' own optimizer and
        rate by default.
    """
    warn_if(not fine_tuning_epochs, "fed_avg_ft with 0 epochs is federated averaging.")
    model = architecture.model(local=())
    work = local_sgd(model, training)
    if fine_tuning_rate is not None:
        sgd = tff.learning.optimizers.build_sgdm(fine_tuning_rate)
        training = dataclasses.replace(training, optimizer=sgd)
    if fine_tuning_epochs:
        work = work._replace(adapt=fine_tuning(model, training, fine_tuning_epochs))
    return compose(
        model,
        work,
        seed=seed,
        aggregator=aggregator,
        server_step=apply_update(model, server_optimizer),
    )
