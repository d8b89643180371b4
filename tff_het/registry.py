"""Named things that are imported when they are asked for."""

import ast
import dataclasses
import functools
import importlib
import importlib.util
import inspect
import re
import sys
import typing
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar, cast

from tff_het import kinds

T = TypeVar("T")


class Parameter(NamedTuple):
    """What can be set of a function, or of a class of settings.

    Attributes:
      name: Its name.
      kind: What its values are, see `kinds`.
      default: Its value where nobody sets it.
      help: What the docstring says of it.
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


class Registry(Collection[str], Generic[T]):
    """Things by name; neither names nor descriptions import what stands behind them."""

    def __init__(self, kind: str, places: Mapping[str, str]):
        """Makes a registry.

        Args:
          kind: What the things are, for error messages, such as 'method'.
          places: Where each name's thing is defined: 'module:attribute'.
        """
        self._kind = kind
        self._places: dict[str, str | T] = dict(places)

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, name: object) -> bool:
        return name in self._places

    def __getitem__(self, name: str) -> T:
        """Returns what has this name.

        Raises:
          ValueError: If nothing has.
        """
        place = self._place(name)
        if not isinstance(place, str):
            return place
        module, _, attribute = place.partition(":")
        return getattr(importlib.import_module(module), attribute)

    def register(self, name: str, thing: T) -> None:
        """Adds a thing of your own.

        Raises:
          ValueError: If the name is taken by another one, or could not be a folder's and a flag's.
        """
        if not re.fullmatch(r"\w+", name):
            raise ValueError(f"A {self._kind}'s name has letters, digits and _; found {name!r}.")
        if self._places.setdefault(name, thing) is not thing:
            raise ValueError(f"There is a {self._kind} {name!r} already: choose another name.")

    def description(self, name: str) -> str:
        """Returns the first line of its docstring, empty without one.

        Raises:
          ValueError: If nothing has this name.
        """
        place = self._place(name)
        text = _docstring(place) if isinstance(place, str) else cast(Any, place).__doc__
        return (text or "").strip().partition("\n")[0]

    def parameters(self, name: str) -> list[Parameter]:
        """Returns the keyword-only parameters of a function that can be set, in its order.

        Raises:
          ValueError: If nothing has this name.
        """
        place = self._place(name)
        if isinstance(place, str):
            found = _definition(place)
            return _of_source(found) if isinstance(found, ast.FunctionDef) else []
        return _of_function(place) if inspect.isfunction(place) else []

    def needed(self, name: str) -> list[str]:
        """Returns the keyword-only parameters of a thing that was registered without a default."""
        place = self._place(name)
        if isinstance(place, str) or not callable(place):
            return []
        parameters = inspect.signature(place).parameters.values()
        return [p.name for p in parameters if p.kind is p.KEYWORD_ONLY and p.default is p.empty]

    def origin(self, name: str) -> str:
        """Returns the module that defines it; of what was registered, the file.

        Raises:
          ValueError: If nothing has this name.
        """
        place = self._place(name)
        if isinstance(place, str):
            return place.partition(":")[0]
        return str(sys.modules[cast(Any, place).__module__].__file__)

    def _place(self, name: str) -> str | T:
        if name not in self._places:
            raise ValueError(f"There is no {self._kind} {name!r}; there are: {', '.join(self)}.")
        return self._places[name]


def documented(docstring: str | None, section: str) -> dict[str, str]:
    """Returns what a docstring says in a section of the form of 'Args:', by name."""
    _, _, rest = inspect.cleandoc(docstring or "").partition(f"{section}:\n")
    found: dict[str, str] = {}
    for paragraph in re.split(r"\n(?=  ?\S|\S)", f"\n{rest}")[1:]:
        match = re.match(r"  (\w+): (.*)", paragraph, re.S)
        if match is None:
            break
        found[match[1]] = " ".join(match[2].split())
    return found


def settings(of: type) -> dict[str, Parameter]:
    """Returns what can be set in a dataclass, by name, what it inherits first."""
    texts: dict[str, str] = {}
    for base in reversed(of.__mro__):
        texts |= documented(base.__doc__, "Attributes")
    hints = typing.get_type_hints(of, include_extras=True)
    found = {}
    for field in dataclasses.fields(of):
        name, hint = field.name, hints[field.name]
        optional = type(None) in typing.get_args(hint)
        found[name] = Parameter(name, kinds.of(hint), field.default, texts[name], optional)
    return found


def _of_source(function: ast.FunctionDef) -> list[Parameter]:
    texts = documented(ast.get_docstring(function), "Args")
    arguments = zip(function.args.kwonlyargs, function.args.kw_defaults, strict=True)
    return [
        Parameter(argument.arg, kind, _value(default), texts.get(argument.arg, ""))
        for argument, default in arguments
        if argument.annotation and (kind := kinds.of(ast.unparse(argument.annotation))) is not None
    ]


def _of_function(function: Callable) -> list[Parameter]:
    texts = documented(function.__doc__, "Args")
    hints = typing.get_type_hints(function, include_extras=True)
    return [
        Parameter(name, kind, None if p.default is p.empty else p.default, texts.get(name, ""))
        for name, p in inspect.signature(function).parameters.items()
        if p.kind is p.KEYWORD_ONLY and (kind := kinds.of(hints.get(name))) is not None
    ]


def _value(default: ast.expr | None) -> Any:
    """What a default is: a literal, or numbers that are computed with."""
    return None if default is None else eval(ast.unparse(default), {"__builtins__": {}})


def _docstring(place: str) -> str | None:
    """The docstring of a function, or the one behind an assignment, read off the source."""
    found = _definition(place)
    if isinstance(found, ast.FunctionDef):
        return ast.get_docstring(found)
    body = _source(place.partition(":")[0]).body
    following = body[body.index(found) + 1 :]
    match following[:1]:
        case [ast.Expr(value=ast.Constant(value=str(text)))]:
            return text
    return None


def _definition(place: str) -> ast.stmt:
    module, _, attribute = place.partition(":")
    for statement in _source(module).body:
        match statement:
            case ast.FunctionDef(name=name) | ast.Assign(targets=[ast.Name(id=name)]):
                if name == attribute:
                    return statement
    raise ValueError(f"There is no {place}.")


@functools.lru_cache
def _source(module: str) -> ast.Module:
    spec = importlib.util.find_spec(module)
    assert spec is not None and spec.origin is not None, module
    return ast.parse(Path(spec.origin).read_text(encoding="utf-8"))
