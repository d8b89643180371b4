"""Define an example to embed, and the error for one that cannot be embedded."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Item:
    """One example to embed, not yet read.

    Attributes:
      id: Unique in a job; records are sorted by it.
      label: The name of its class.
      split: 'train' or 'test'.
      source: Origin, such as a collection of recordings; may be empty.
      path: Its file, in sources of files.
      row: Its index in its split, in sources of arrays.
    """

    id: str
    label: str
    split: str
    source: str = ""
    path: str = ""
    row: int = -1


class UnusableError(Exception):
    """Raised for an example that cannot be embedded; the job skips it.

    Attributes:
      reason: Short key under which such examples are counted, words joined by `_`.
      detail: Explanation for people.
    """

    def __init__(self, reason: str, detail: str):
        super().__init__(f"{reason}: {detail}")
        self.reason = reason
        self.detail = detail
