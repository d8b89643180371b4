"""Kinds of settings: what a value has to be, read off a type annotation."""

import collections.abc
import types
import typing
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, Literal

from tff_het.numbers import INT32, Number

Whole = Annotated[int, Number(1, INT32, is_whole=True)]
"""A whole number from 1 on."""
Count = Annotated[int, Number(0, INT32, is_whole=True)]
"""A whole number from 0 on."""
Repeats = Annotated[int, Number(1, 1000, is_whole=True)]
"""A whole number from 1 to 1000: of repetitions that are planned as a whole, such as epochs."""
Passes = Annotated[int, Number(0, 1000, is_whole=True)]
"""A whole number from 0 to 1000: the same, where there may be none."""
Label = Annotated[int, Number(0, INT32, is_whole=True)]
"""A class."""
Positive = Annotated[float, Number(0.0, above=True)]
"""A number above 0."""
NotNegative = Annotated[float, Number(0.0)]
"""A number from 0 on."""
Share = Annotated[float, Number(0.0, 1.0)]
"""A number from 0 to 1."""

_LISTS = (collections.abc.Sequence, tuple, list)
_NAMES = {
    **{name: kind for name, kind in globals().items() if typing.get_origin(kind) is Annotated},
    "Annotated": Annotated,
    "Literal": Literal,
    "Mapping": Mapping,
    "Number": Number,
    "Sequence": Sequence,
}


class Among:
    """One of some names, which may grow."""

    def __init__(self, names: Iterable[str]):
        self._names = names

    def __call__(self, given: Any) -> str:
        """Returns the name.

        Raises:
          ValueError: If there is none of that name.
        """
        if given not in [*self._names]:  # It may be anything, also what has no hash.
            raise ValueError(f"should be one of <{'|'.join(self._names)}>; found {given}")
        return given

    def __str__(self) -> str:
        return ", ".join(self._names)


def of(annotation: Any) -> Any:
    """Returns the kind that an annotation, or its source text, names; None if it is no setting's.

    Of a union, the first kind counts.
    """
    if isinstance(annotation, str):
        try:
            annotation = eval(annotation, dict(_NAMES))
        except (NameError, TypeError, AttributeError):
            # A union with a type that is not known here, such as a predicate's.
            first, found, _ = annotation.partition(" | ")
            return of(first) if found else None
    origin, args = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in (typing.Union, types.UnionType):
        return next(filter(None, map(of, args)), None)
    if annotation in (bool, str, int, float) or origin in (Annotated, Literal):
        return annotation
    if origin in _LISTS or origin is collections.abc.Mapping:
        inner = args[-1 if origin is collections.abc.Mapping else 0]
        return None if of(inner) is None else annotation
    return None


def parse(kind: Any, given: Any) -> Any:
    """Returns the value that a text of a command line, or a value of a file or program, stands for.

    Lists are written with commas between (lists of lists with semicolons), mappings as 'a=1,b=2';
    what a flag gives one by one (a tuple) may be a mapping, too: 'name=value,value' of each.

    Raises:
      ValueError: If it is of another kind.
    """
    origin, args = typing.get_origin(kind), typing.get_args(kind)
    if origin is Annotated:
        return args[1](given)
    if origin is Literal:
        return Among(args)(given)
    if origin is tuple and isinstance(given, Mapping):
        given = [_assigned(name, values) for name, values in given.items()]
    if origin in _LISTS:
        return tuple(parse(args[0], part) for part in _parts(args[0], given))
    if origin is collections.abc.Mapping:
        return {str(name): parse(args[1], part) for name, part in _pairs(given)}
    if kind in (int, float):
        return Number(is_whole=kind is int)(given)
    if kind is bool:
        words = {"true": True, "1": True, "false": False, "0": False}
        found = given if isinstance(given, bool) else words.get(str(given).lower())
        if found is None:
            raise ValueError(f"expected true or false; found {given}")
        return found
    if not isinstance(given, str | int | float) or isinstance(given, bool):
        raise ValueError(f"expected a text; found {given!r}")
    return str(given)


def text(value: Any) -> str:
    """Returns how a value is written on a command line."""
    if isinstance(value, Mapping):
        return ",".join(f"{name}={text(part)}" for name, part in value.items())
    if isinstance(value, Sequence) and not isinstance(value, str):
        nested = any(isinstance(part, Sequence) and not isinstance(part, str) for part in value)
        return (";" if nested else ",").join(map(text, value))
    return str(value)


def hint(kind: Any) -> str:
    """Returns what values there are, for help."""
    origin, args = typing.get_origin(kind), typing.get_args(kind)
    if origin is Annotated:
        return args[1].hint if isinstance(args[1], Number) else str(args[1])
    if origin is Literal:
        return str(Among(args))
    if origin in _LISTS:
        separated = "lists with semicolons" if "with commas" in hint(args[0]) else "with commas"
        return f"{inner}, {separated}" if (inner := hint(args[0])) else ""
    if origin is collections.abc.Mapping:
        return f"name={hint(args[1])}, with commas"
    return {bool: "", str: "", int: "a whole number", float: "a number"}[kind]


def _parts(inner: Any, given: Any) -> Sequence[Any]:
    if isinstance(given, str):
        separator = ";" if typing.get_origin(inner) in _LISTS else ","
        return given.split(separator) if given else ()
    if isinstance(given, Sequence):
        return given
    return (given,)


def _assigned(name: str, values: Any) -> str:
    """'name=value,value', with semicolons where values have commas."""
    texts = list(map(text, values if isinstance(values, list) else [values]))
    return f"{name}={(';' if any(',' in one for one in texts) else ',').join(texts)}"


def _pairs(given: Any) -> list[tuple[Any, Any]]:
    if isinstance(given, Mapping):
        return list(given.items())
    pairs = [str(part).partition("=") for part in _parts(str, given)]
    if not pairs or not all(name and found for name, found, _ in pairs):
        raise ValueError(f"expected name=value,name=value; found {given}")
    return [(name, value) for name, _, value in pairs]
