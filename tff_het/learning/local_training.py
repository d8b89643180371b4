"""Settings of a client's local training."""

import dataclasses
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from tff_het.backend.names import tff
from tff_het.learning.acquisition import Acquisition
from tff_het.learning.augmentation import Augmentation
from tff_het.numbers import INT32, Number

_COUNT = Number(1, INT32, is_whole=True)
_LIMITS = {
    "batch_size": _COUNT,
    "epochs": _COUNT,
    "steps": _COUNT,
    "opponent_steps": _COUNT,
    "clip_norm": Number(low=0, above=True),
    "weight_decay": Number(low=0),
}
_MOST_EXAMPLES = 50_000_000  # Of a client's round, whose order is laid out before its first step.


def check_optimizer(optimizer: Any) -> None:
    """Raises TypeError for what is none of TFF's."""
    if not isinstance(optimizer, tff.learning.optimizers.Optimizer):
        raise TypeError(
            "optimizer must come from tff.learning.optimizers (Keras optimizers hold variables and "
            f"cannot run inside federated computations), found {type(optimizer).__name__}."
        )


@dataclasses.dataclass(frozen=True)
class LocalTraining:
    """Settings of local SGD.

    Attributes:
      optimizer: Any of `tff.learning.optimizers`; its state starts afresh in
        every round.
      batch_size: Examples a step; the last batch of a pass may be short.
      epochs: Passes over the client's examples. Exactly one of `epochs` and
        `steps` is given.
      steps: Number of steps, over as many passes as that takes.
      at_most_one_pass: With `steps`: stop at the end of the first pass.
      shuffle: Whether each pass has an order of its own.
      augment: Function of (x, seed) for each batch, such as `crop_and_flip()`.
      weight_decay: Added to the gradient as `weight_decay * w` (coupled L2) for all
        trainable variables, before clipping.
      clip_norm: Gradients are scaled down to this global norm.
      learning_rate: Schedule: round (int32 [], from 0) -> the learning rate of
        that round, instead of the optimizer's own.
      opponent_steps: Of a model with an opponent: how many steps this makes for each of the rest.
        It makes one on every batch, the rest one on each batch of that number.
      acquisition: How clients acquire what they train on, where that is not all of their examples:
        `epochs` or `steps` are then those of one acquisition.
    """

    optimizer: Any
    batch_size: int
    epochs: int | None = None
    steps: int | None = None
    at_most_one_pass: bool = False
    shuffle: bool = True
    augment: Augmentation | None = None
    weight_decay: float = 0.0
    clip_norm: float | None = None
    learning_rate: Callable[[tf.Tensor], tf.Tensor] | None = None
    opponent_steps: int = 1
    acquisition: Acquisition | None = None

    def __post_init__(self):
        if (self.epochs is None) == (self.steps is None):
            raise ValueError(
                "Give the length of local training as either epochs or steps; found "
                f"epochs={self.epochs}, steps={self.steps}."
            )
        for name, number in _LIMITS.items():
            if (value := getattr(self, name)) is not None:
                number.check(name, value)
        if self.at_most_one_pass and self.steps is None:
            raise ValueError("at_most_one_pass limits `steps`, which is not given.")
        check_optimizer(self.optimizer)

    def within(self, largest: int) -> "LocalTraining":
        """Returns these settings for clients of at most `largest` examples.

        No batch is larger than that: the rest of it would be examples of weight 0.

        Raises:
          ValueError: If the round of such a client would be longer than can be laid out, or too
            short for a step against the opponent.
        """
        found = dataclasses.replace(self, batch_size=min(self.batch_size, max(largest, 1)))
        steps = int(found.num_steps(largest))
        if 0 < steps < self.opponent_steps:
            raise ValueError(
                f"The network makes a step after {self.opponent_steps} of its adversary, one on "
                f"each batch, and would never learn: the largest client's round has {steps}. Lower "
                "adversary_steps, or give clients more local epochs or steps."
            )
        if steps * found.batch_size > _MOST_EXAMPLES:
            raise ValueError(
                f"A client of {largest} examples would take {steps} steps of {found.batch_size} in "
                f"a round, expected at most {_MOST_EXAMPLES} examples in all. Lower local epochs, "
                "local steps or the batch size."
            )
        return found

    def num_steps(self, num_examples: Any) -> Any:
        """Returns how many steps a client of this many examples takes; none without examples."""
        a_pass = -(-num_examples // self.batch_size)
        if self.steps is None:
            return a_pass * self.epochs
        if self.at_most_one_pass:
            return tf.minimum(self.steps, a_pass)
        return tf.where(a_pass > 0, self.steps, 0)
