"""Which networks a method with steps of its own cannot train."""

from tff_het.learning.local_training import LocalTraining
from tff_het.models.architectures import Architecture


def refuse(architecture: Architecture, method: str) -> None:
    """Refuses an adversary: on the network's loss, it would learn to guess worse.

    Raises:
      ValueError: If the architecture has an opponent.
    """
    if architecture.opponent:
        raise ValueError(
            f"{method} has no step for an adversary, found {', '.join(architecture.opponent)}: "
            "leave out what it guesses (protected), or choose another method."
        )


def refuse_steps(training: LocalTraining, method: str) -> None:
    """Refuses several steps of an adversary for each of a network that it does not train with.

    Raises:
      ValueError: If there are several.
    """
    if training.opponent_steps > 1:
        raise ValueError(
            f"{method} trains the shared part on every batch, the adversary beside the head: leave "
            f"adversary_steps out (found {training.opponent_steps}), or choose another method."
        )
