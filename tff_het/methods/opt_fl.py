"""OptFL: the server goes on with the most accurate of the devices' models.

J. Qian, X. Fafoutis, L. K. Hansen: Towards Federated Learning: Robustness to Extremely Unbalanced
Data for Edge Computing (2019), Algorithm 2.

| paper                   | here                                                                 |
|-------------------------|----------------------------------------------------------------------|
| W_j^t                   | W^t plus the update of device j, side by side in the stack           |
| X, "test dataset"       | `selection`: examples held out at the server, or the test set        |
| BNN(X, W)               | probabilities, averaged over passes under dropout                    |
| A(.)                    | how many of X have their class as the most probable one              |
| argmax                  | `choosing.best`; of equals, the device of the lowest index           |

The paper selects by the test set that it reports on. Which examples are given is the caller's
choice; the passes, of which the paper gives no number, are the same for all models of a round.
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


def build_opt_fl(
    architecture: Architecture,
    training: LocalTraining,
    *,
    seed: int,
    selection: Mapping[str, np.ndarray],
    ensemble_dropout_samples: Repeats = 20,
) -> FederatedProcess:
    """Builds OptFL: the server takes the most accurate of the devices' models.

    Args:
      architecture: The network, all of it global.
      training: Settings of the devices' local SGD.
      seed: The initial weights follow from it, and the passes under dropout.
      selection: The columns that clients hold, of the examples that the server evaluates on.
      ensemble_dropout_samples: Dropout passes that an evaluation at the server is averaged over.

    Raises:
      ValueError: If there are no such examples, they differ in form from the clients', or there
        are no passes.
    """
    model = architecture.model(local=())
    step = best(model, selection, ensemble_dropout_samples, seed)
    work = signed(local_sgd(model, training))
    return compose(model, work, seed=seed, aggregator=StackFactory(), server_step=step)
