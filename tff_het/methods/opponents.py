"""Which networks a method with steps of its own cannot train."""

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
