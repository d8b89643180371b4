"""Flags that take numbers."""

from typing import Any

from absl import flags

from tff_het.numbers import FLOAT32, INT32, Number


class _Parser(flags.ArgumentParser):
    def __init__(self, number: Number):
        self.number = number
        self.syntactic_help = str(number)

    def parse(self, argument: Any) -> Any:
        return self.number(argument)

    def flag_type(self) -> str:
        return "int" if self.number.is_whole else "float"


def whole(
    name: str,
    default: int | None,
    text: str,
    *,
    low: int = 1,
    high: int = INT32,
    **options: Any,
) -> flags.FlagHolder:
    """Defines a flag of a whole number from `low` to `high`; `options` are absl's."""
    number = Number(low, high, is_whole=True)
    return flags.DEFINE(_Parser(number), name, default, text, **options)


def real(
    name: str,
    default: float | None,
    text: str,
    *,
    low: float = 0.0,
    high: float = FLOAT32,
    above: bool = False,
    below: bool = False,
    **options: Any,
) -> flags.FlagHolder:
    """Defines a flag of a number, a `Number` of these; `options` are absl's."""
    number = Number(low, high, above, below)
    return flags.DEFINE(_Parser(number), name, default, text, **options)


# A flag belongs to the module that calls these.
flags.disclaim_key_flags()
