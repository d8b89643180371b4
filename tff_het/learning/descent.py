"""One step of an optimizer on some of a model's trainable variables."""

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tff_het.backend.names import eager_mode, tff
from tff_het.learning.local_training import LocalTraining
from tff_het.models.model import Model, Variables

LEARNING_RATE_KEY = tff.learning.optimizers.LEARNING_RATE_KEY


class Descent:
    """Steps of an optimizer on the variables that it owns, all others being held fixed."""

    def __init__(
        self,
        model: Model,
        training: LocalTraining,
        owned: Sequence[bool] | None = None,
        round_num: Any = (),
    ):
        """Initialises the descent and its optimizer state.

        Args:
          model: The model.
          training: The settings; gradients of the owned variables are clipped together.
          owned: For each of `trainable_of(variables)`, whether it is stepped; by default all are.
          round_num: int32 [], for the learning rate's schedule, if there is one.
        """
        specs = trainable_of(model.tensor_specs)
        self._optimizer = optimizer = training.optimizer
        self._owned = (True,) * len(specs) if owned is None else tuple(owned)
        self._weight_decay, self._clip_norm = training.weight_decay, training.clip_norm
        state = optimizer.initialize(list(itertools.compress(specs, self._owned)))
        hparams = optimizer.get_hparams(state)
        if training.learning_rate is not None:
            hparams[LEARNING_RATE_KEY] = tf.cast(training.learning_rate(round_num), tf.float32)
            state = optimizer.set_hparams(state, hparams)
        self._plain = is_sgd(optimizer) and not self._weight_decay and self._clip_norm is None
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
        own = list(itertools.compress(trainable_of(variables), self._owned))
        with tf.GradientTape() as tape:
            tape.watch(own)
            loss, rest = loss_of(variables)
        # The step itself instead of the gradient, where that is all the optimizer makes of it: one
        # pass less over all variables, which for small batches is a tenth of the time.
        scale = -tf.convert_to_tensor(self._learning_rate) if self._plain else None
        zero = tf.UnconnectedGradients.ZERO
        gradients = tape.gradient(loss, own, output_gradients=scale, unconnected_gradients=zero)
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


def is_sgd(optimizer: Any) -> bool:
    """Whether its step is w - rate * gradient; tried out, since TFF has no name for it."""
    with eager_mode():
        state = optimizer.initialize([tf.TensorSpec([3])])
        if list(optimizer.get_hparams(state)) != [LEARNING_RATE_KEY]:
            return False
        rate, gradient = optimizer.get_hparams(state)[LEARNING_RATE_KEY], [0.5, -3.0, 0.0]
        after, (weights,) = optimizer.next(state, [tf.ones([3])], [tf.constant(gradient)])
        expected = tf.ones([3]) - rate * tf.constant(gradient)
        return len(tf.nest.flatten(after)) == 1 and np.allclose(weights, expected)


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
