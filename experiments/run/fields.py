"""What can be set in a class of settings, read off its annotations and docstring."""

import dataclasses
import typing
from typing import Any, NamedTuple

from tff_het import kinds
from tff_het.registry import documented


class Field(NamedTuple):
    """One setting.

    Attributes:
      kind: What its values are, see `tff_het.kinds`.
      optional: Whether it can be None.
    """

    name: str
    kind: Any
    default: Any
    help: str
    optional: bool = True

    def parsed(self, given: Any) -> Any:
        """Returns the value that a text, or a value of a file or program, stands for."""
        return None if given is None and self.optional else kinds.parse(self.kind, given)


def of(settings: type) -> dict[str, Field]:
    """Returns the fields of a dataclass by name, those that it inherits first."""
    texts: dict[str, str] = {}
    for base in reversed(settings.__mro__):
        texts |= documented(base.__doc__, "Attributes")
    hints = typing.get_type_hints(settings, include_extras=True)
    found = {}
    for field in dataclasses.fields(settings):
        name, annotation = field.name, hints[field.name]
        if (kind := kinds.of(annotation)) is None:
            raise TypeError(f"{settings.__name__}.{name} is of no kind that can be set.")
        optional = type(None) in typing.get_args(annotation)
        found[name] = Field(name, kind, field.default, texts[name], optional)
    return found
