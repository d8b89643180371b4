"""Settings that are numbers: finite, in a range, whole where only that makes sense."""

import dataclasses
import math
import operator
from typing import Any

import numpy as np

# What TensorFlow computes with: a number beyond these would be another one there.
INT32 = np.iinfo(np.int32).max
FLOAT32 = float(np.finfo(np.float32).max)


@dataclasses.dataclass(frozen=True)
class Number:
    """A range of numbers; called with a number or a text, it gives the number.

    Attributes:
      low: The smallest.
      high: The greatest.
      above: Whether `low` itself is left out.
      below: Whether `high` itself is left out.
      is_whole: Whether fractions are refused.
    """

    low: float = -FLOAT32
    high: float = FLOAT32
    above: bool = False
    below: bool = False
    is_whole: bool = False

    def __call__(self, given: Any) -> Any:
        """Returns the number.

        Raises:
          ValueError: If it is none, or outside of the range, or float32 makes it so.
        """
        try:
            whole = int if isinstance(given, str) else operator.index
            # Python counts with true and false.
            number: Any = math.nan if isinstance(given, bool) else given
            value = whole(number) if self.is_whole else float(number)
        except (ValueError, TypeError, OverflowError):
            value = math.nan
        # So small that TensorFlow computes with 0, where that is not allowed.
        tiny = abs(value) < np.finfo(np.float32).tiny
        vanishes = self._has(value) and tiny and not self._has(0.0)
        if not self._has(value) or vanishes:
            # Python reads numbers of any length; what is shown of one is not.
            shown = str(given) if len(str(given)) <= 40 else f"{str(given)[:40]}..."
            raise ValueError(f"expected {self}; found {shown}")
        return value

    def _has(self, value: float) -> bool:
        # So that a number that is none (nan) is in no range.
        least = self.low < value if self.above else self.low <= value
        return least and (value < self.high if self.below else value <= self.high)

    def __str__(self) -> str:
        kind = "a whole number" if self.is_whole else "a number"
        low, high = (int(end) if self.is_whole else f"{end:.4g}" for end in (self.low, self.high))
        if not self.above and not self.below:
            return f"{kind} from {low} to {high}"
        start = f"above {low}" if self.above else f"from {low}"
        return f"{kind} {start} and {'below' if self.below else 'at most'} {high}"

    @property
    def hint(self) -> str:
        """Returns the range without what computers add to it."""
        text = str(self)
        for end in (f" to {INT32}", f" to {FLOAT32:.4g}", f" and at most {FLOAT32:.4g}"):
            text = text.replace(end, "")
        return text

    def check(self, name: str, given: Any) -> None:
        """Raises ValueError, beginning with the name, if `given` is no such number."""
        try:
            self(given)
        except ValueError as error:
            raise ValueError(f"{name}: {error}.") from error
