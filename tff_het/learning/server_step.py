"""What the server does with the combination of the clients' updates."""

from collections.abc import Callable
from typing import Any, NamedTuple

from tff_het.backend.names import tff
from tff_het.learning.local_training import check_optimizer
from tff_het.models.model import Model, Weights


class ServerStep(NamedTuple):
    """A slot of the composer.

    Attributes:
      initial: () -> what the server keeps for it at first: a structure of tensors, arrays or
        numbers. Its values belong to the server's state; `step` knows its form alone.
      step: (what it keeps, global variables, aggregate) -> (what it keeps, global variables,
        measurements), in TensorFlow.
      counts_participants: Whether `step` takes one argument more, float32 []: how many clients of
        the round had examples. Each of them then sends a number more.
    """

    initial: Callable[[], Any]
    step: Callable[..., tuple[Any, Weights, Any]]
    counts_participants: bool = False


def apply_update(model: Model, optimizer=None) -> ServerStep:
    """Takes the mean update as the negative gradient of a server optimizer.

    Reddi et al. 2021, Algorithm 1 (FedOpt); SGD with learning rate 1, the
    default, is federated averaging. Non-trainable variables (moving statistics)
    are moved by their mean change, whatever the optimizer.

    Args:
      model: The model whose global variables are updated.
      optimizer: Any of `tff.learning.optimizers`.
    """
    optimizer = optimizer or tff.learning.optimizers.build_sgdm(learning_rate=1.0)
    check_optimizer(optimizer)

    def initial():
        return optimizer.initialize(model.tensor_specs.global_weights.trainable)

    def step(state, weights, update):
        descent = [-u for u in update.trainable]
        state, trainable = optimizer.next(state, list(weights.trainable), descent)
        non_trainable = [
            w + u for w, u in zip(weights.non_trainable, update.non_trainable, strict=True)
        ]
        return state, Weights(trainable, non_trainable), ()

    return ServerStep(initial, step)
