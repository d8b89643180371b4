"""FedBABU: the body learns under a head that stays random; clients fine-tune both, to predict.

J. Oh, S. Kim, S.-Y. Yun: FedBABU: Toward Enhanced Representation for Federated Image
Classification (2022), Algorithm 1.

| paper (Algorithm 1)          | here                                                          |
|------------------------------|---------------------------------------------------------------|
| theta_ext, the body          | the model's global variables; the mean weighted by examples   |
| theta_cls^0, the head        | local variables at their initial values, equal for all clients |
| lambda_cls = 0               | SGD on all but the head                                       |
| fine-tuning, section 5.2     | `fine_tuning_epochs` passes on both, or on the head           |
"""

from collections.abc import Sequence
from typing import Literal

from tff_het.kinds import Repeats
from tff_het.learning.composer import AggregationFactory, compose
from tff_het.learning.local_training import LocalTraining
from tff_het.learning.process import FederatedProcess
from tff_het.learning.server_step import apply_update
from tff_het.learning.steps import fit, is_any
from tff_het.learning.works import fine_tuning, local_sgd, sends_change
from tff_het.models.architectures import Architecture
from tff_het.models.model import Variables


def build_fed_babu(
    architecture: Architecture,
    training: LocalTraining,
    *,
    seed: int,
    local_layers: Sequence[str] | None = None,
    fine_tuning_epochs: Repeats = 5,
    fine_tune: Literal["all", "head"] = "all",
    aggregator: AggregationFactory | None = None,
    server_optimizer=None,
) -> FederatedProcess:
    """Builds FedBABU: the body learns under a random head; clients fine-tune to predict.

    Args:
      architecture: The network.
      training: Settings of the clients' SGD, and of fine-tuning.
      local_layers: Names of the head's layers; the architecture's classifier by default.
      fine_tuning_epochs: Passes over the client's training examples before it predicts.
      fine_tune: Whether all is fine-tuned, or the head alone.

    Raises:
      ValueError: If examples are to be acquired.
    """
    head = architecture.head if local_layers is None else local_layers
    model = architecture.model(local=head)

    # Not all that is local: an adversary is too, and it trains in every round.
    def is_head(spec):
        return spec.path.split("/")[0] in head

    def is_body(spec):
        return not is_head(spec)

    def train(download, examples, client, seed, state):
        before = Variables(download.weights, state.model)
        of = (examples, client, seed, download.round)
        after, metrics = fit(model, training, before, *of, trains=is_body)
        return sends_change(before, after, metrics, state)

    trains = is_any if fine_tune == "all" else is_head
    adapt = fine_tuning(model, training, fine_tuning_epochs, trains)
    return compose(
        model,
        local_sgd(model, training)._replace(train=train, adapt=adapt),
        seed=seed,
        aggregator=aggregator,
        server_step=apply_update(model, server_optimizer),
    )
