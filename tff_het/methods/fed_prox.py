"""Federated averaging with a proximal term, which holds clients near the global model (FedProx).

T. Li et al.: Federated Optimization in Heterogeneous Networks (2020), Algorithm 2.

| paper                        | here                                         |
|------------------------------|----------------------------------------------|
| h_k(w; w_t), eq. (2)         | loss + mu / 2 * norm(w - w_t)^2              |
| mu                           | `proximal_strength`                          |
| gamma-inexact solution       | the steps of `LocalTraining`                 |

Departure: clients are drawn uniformly and their models averaged by their numbers of examples, as
in federated averaging; the paper draws them by these numbers and averages plainly. TFF 0.87.0's own
FedProx has the term's gradient with the other sign, which drives clients away from the model.
"""

from tff_het.kinds import NotNegative
from tff_het.learning.composer import AggregationFactory, compose
from tff_het.learning.local_training import LocalTraining
from tff_het.learning.process import FederatedProcess
from tff_het.learning.server_step import apply_update
from tff_het.learning.steps import Penalty, proximal
from tff_het.learning.works import local_sgd
from tff_het.methods.warning import warn_if
from tff_het.models.architectures import Architecture
from tff_het.numbers import Number


def build_fed_prox(
    architecture: Architecture,
    training: LocalTraining,
    *,
    seed: int,
    proximal_strength: NotNegative = 1.0,
    aggregator: AggregationFactory | None = None,
    server_optimizer=None,
) -> FederatedProcess:
    """Builds FedProx: a proximal term holds clients near the global model.

    Args:
      architecture: The network, all of it global.
      training: Settings of the clients' local SGD.
      proximal_strength: mu, how strongly clients are held near the global model.

    Raises:
      ValueError: If mu is negative.
    """
    Number(low=0).check("proximal_strength", proximal_strength)
    warn_if(not proximal_strength, "fed_prox with proximal_strength 0 is federated averaging.")
    model = architecture.model(local=())

    def near(download, state) -> Penalty:
        return proximal(proximal_strength, download.weights)

    work = local_sgd(model, training, near)
    step = apply_update(model, server_optimizer)
    return compose(model, work, seed=seed, aggregator=aggregator, server_step=step)
