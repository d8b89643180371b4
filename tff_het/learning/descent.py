"""One step of an optimizer on some of a model's trainable variables."""

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from tff_het.backend.names import tff
from tff_het.models.model import Variables

LEARNING_RATE_KEY = tff.learning.optimizers.LEARNING_RATE_KEY


class Descent:
    """Steps of an optimizer on the variables that it owns, all others being held fixed."""

    def __init__(
        self,
        optimizer: Any,
        owned: Sequence[bool],
        variables: Variables,
        *,
        learning_rate: Any = None,
        weight_decay: float = 0.0,
        clip_norm: float | None = None,
    ):
        """Initialises the descent and its optimizer state.

        Args:
          optimizer: Any of `tff.learning.optimizers`.
          owned: For each of `trainable_of(variables)`, whether it is stepped.
          variables: All variables.
          learning_rate: float32 [], instead of the optimizer's own.
          weight_decay: Added to the gradient as `weight_decay * w`, before clipping.
          clip_norm: Gradients of the owned variables are scaled down to this global norm.
        """
        self._optimizer, self._owned = optimizer, tuple(owned)
        self._weight_decay, self._clip_norm = weight_decay, clip_norm
        specs = [tf.TensorSpec(v.shape, v.dtype) for v in self._own(variables)]
        state = optimizer.initialize(specs)
        hparams = optimizer.get_hparams(state)
        if learning_rate is not None:
            hparams[LEARNING_RATE_KEY] = learning_rate
            state = optimizer.set_hparams(state, hparams)
        self._plain = (
            type(optimizer) is type(tff.learning.optimizers.build_sgdm(1.0))
            and set(hparams) == {LEARNING_RATE_KEY}
            and not weight_decay
            and clip_norm is None
        )
        self._learning_rate = hparams.get(LEARNING_RATE_KEY)
        # Hyperparameters are Python numbers in a fresh state; a loop carries tensors. The fewer of
        # them, and of operations in a step, the better: for small batches they are a third of the
        # time.
        self.initial_state = (
            () if self._plain else tf.nest.map_structure(tf.convert_to_tensor, state)
        )

    def step(
        self, loss_of: Callable[[Variables], tuple[tf.Tensor, Any]], variables: Variables, state
    ) -> tuple[list[tf.Tensor], Any, Any]:
        """Makes one step.

        Args:
          loss_of: variables -> (float32 [], anything else).
          variables: The values before the step.
          state: The optimizer's.

        Returns:
          The values of `trainable_of(variables)` after it, the optimizer's state, and what else
          `loss_of` gave.
        """
        own = self._own(variables)
        with tf.GradientTape() as tape:
            tape.watch(own)
            loss, rest = loss_of(variables)
        # The step itself instead of the gradient, where that is all the optimizer makes of it: one
        # pass less over all variables, which for small batches is a tenth of the time.
        scale = -tf.convert_to_tensor(self._learning_rate) if self._plain else None
        gradients = tape.gradient(
            loss,
            own,
            output_gradients=scale,
            unconnected_gradients=tf.UnconnectedGradients.ZERO,
        )
        gradients = [tf.convert_to_tensor(g) for g in gradients]
        if self._weight_decay:
            gradients = [g + self._weight_decay * w for g, w in zip(gradients, own, strict=True)]
        if self._clip_norm is not None:
            gradients, _ = tf.clip_by_global_norm(gradients, self._clip_norm)
        if self._plain:
            own = [w + change for w, change in zip(own, gradients, strict=True)]
        else:
            state, own = self._optimizer.next(state, own, gradients)
        stepped = iter(own)
        trainable = [
            next(stepped) if is_own else w
            for w, is_own in zip(trainable_of(variables), self._owned, strict=True)
        ]
        return trainable, state, rest

    def _own(self, variables: Variables) -> list[tf.Tensor]:
        pairs = zip(trainable_of(variables), self._owned, strict=True)
        return [w for w, is_own in pairs if is_own]


def trainable_of(variables: Variables) -> list[Any]:
    """All that is trainable: the global ones, then the local ones."""
    return [*variables.global_weights.trainable, *variables.local_weights.trainable]


def with_trainable(variables: Variables, trainable: list[tf.Tensor]) -> Variables:
    """`variables` with the values of `trainable_of` replaced."""
    cut = len(variables.global_weights.trainable)
    return Variables(
        variables.global_weights._replace(trainable=list(trainable[:cut])),
        variables.local_weights._replace(trainable=list(trainable[cut:])),
    )
