"""What is embedded: one example before it is read, and why it may be left out."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Item:
    """One example.

    Attributes:
      id: Unique in a job; records are sorted by it.
      label: The name of its class.
      split: 'train' or 'test'.
      source: Where it comes from, such as a collection of recordings; may be empty.
      path: The file that holds it, of a source of files.
      row: Its place in its split, of a source of arrays.
    """

    id: str
    label: str
    split: str
    source: str = ""
    path: str = ""
    row: int = -1


class UnusableError(Exception):
    """An example cannot be embedded; the others can.

    Attributes:
      reason: One word or two, joined by `_`, under which such examples are counted.
      detail: What exactly, for people.
    """

    def __init__(self, reason: str, detail: str):
        super().__init__(f"{reason}: {detail}")
        self.reason = reason
        self.detail = detail
