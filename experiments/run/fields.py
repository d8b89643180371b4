"""What can be set in a class of settings, read off its annotations and docstring."""

import dataclasses
import typing
from typing import Any, NamedTuple

from tff_het import kinds
from tff_het.registry import documented

_FOUND: dict[type, dict[str, "Field"]] = {}


class Field(NamedTuple):
    """One setting.

    Attributes:
      name: Its name.
      kind: What its values are, see `tff_het.kinds`.
      default: Its value where nobody sets it.
      help: What the docstring says of it.
      optional: Whether it can be None.
      repeated: Whether its flag may be given several times (a tuple), each with one text.
    """

    name: str
    kind: Any
    default: Any
    help: str
    optional: bool
    repeated: bool


def of(settings: type) -> dict[str, Field]:
    """Returns the fields of a dataclass, those that it inherits first.

    Raises:
      TypeError: If a field is of no kind that can be set.
    """
    if settings in _FOUND:
        return _FOUND[settings]
    texts: dict[str, str] = {}
    for base in reversed(settings.__mro__):
        texts |= documented(base.__doc__, "Attributes")
    hints = typing.get_type_hints(settings, include_extras=True)
    found = {}
    for field in dataclasses.fields(settings):
        annotation = hints[field.name]
        if (kind := kinds.of(annotation)) is None:
            raise TypeError(f"{settings.__name__}.{field.name} is of no kind that can be set.")
        optional = type(None) in typing.get_args(annotation)
        repeated = typing.get_origin(kind) is tuple
        found[field.name] = Field(
            field.name, kind, field.default, texts[field.name], optional, repeated
        )
    _FOUND[settings] = found
    return found


def parsed(field: Field, given: Any) -> Any:
    """Returns the value that a text, or a value of a file or program, stands for.

    Raises:
      ValueError: If it is of another kind.
    """
    return None if given is None and field.optional else kinds.parse(field.kind, given)
