"""MixFL: the server goes on with the better of two, what AveFL and what OptFL would take.

J. Qian, X. Fafoutis, L. K. Hansen: Towards Federated Learning: Robustness to Extremely Unbalanced
Data for Edge Computing (2019), Algorithm 3.

| paper              | here                                                                      |
|--------------------|---------------------------------------------------------------------------|
| W_ave^t            | the mean of the stack of the devices' models, each counting the same      |
| W_opt^t            | the most accurate of them, as in `opt_fl`                                 |
| acc_ave >= acc_opt | `mean_competes` of `choosing.best`: the mean unless a device's is better   |

All else is as in `opt_fl`, where it says what X and BNN(X, W) are.
"""

from collections.abc import Mapping

import numpy as np

from tff_het.kinds import Repeats
from tff_het.learning.choosing import best
from tff_het.learning.composer import compose
from tff_het.learning.local_training import LocalTraining
from tff_het.learning.process import FederatedProcess
from tff_het.learning.stacking import StackFactory, signed
from tff_het.learning.works import local_sgd
from tff_het.models.architectures import Architecture


def build_mix_fl(
    architecture: Architecture,
    training: LocalTraining,
    *,
    seed: int,
    selection: Mapping[str, np.ndarray],
    ensemble_dropout_samples: Repeats = 20,
) -> FederatedProcess:
    """Builds MixFL: the server takes the better of what AveFL and OptFL would take.

    Args:
      architecture: The network, all of it global.
      training: Settings of the devices' local SGD.
      seed: The initial weights follow from it, and the passes under dropout.
      selection: The columns that clients hold, of the examples that the server evaluates on.
      ensemble_dropout_samples: Dropout passes that an evaluation at the server is averaged over.

    Raises:
      ValueError: As `build_opt_fl`.
    """
    model = architecture.model(local=())
    step = best(model, selection, ensemble_dropout_samples, seed, mean_competes=True)
    work = signed(local_sgd(model, training))
    return compose(model, work, seed=seed, aggregator=StackFactory(), server_step=step)
