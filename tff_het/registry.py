"""Named things that are imported when they are asked for."""

import ast
import functools
import importlib
import importlib.util
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, Generic, TypeVar, cast

T = TypeVar("T")


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
          ValueError: If the name is taken by another one.
        """
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

    def _place(self, name: str) -> str | T:
        if name not in self._places:
            raise ValueError(f"There is no {self._kind} {name!r}; there are: {', '.join(self)}.")
        return self._places[name]


def _docstring(place: str) -> str | None:
    """The docstring of a function, or the one behind an assignment, read off the source."""
    module, _, attribute = place.partition(":")
    body = _source(module).body
    for statement, following in zip(body, [*body[1:], None], strict=True):
        match statement, following:
            case ast.FunctionDef(name=name), _ if name == attribute:
                return ast.get_docstring(statement)
            case (
                ast.Assign(targets=[ast.Name(id=name)]),
                ast.Expr(value=ast.Constant(value=str(text))),
            ) if name == attribute:
                return text
    return None


@functools.lru_cache
def _source(module: str) -> ast.Module:
    spec = importlib.util.find_spec(module)
    assert spec is not None and spec.origin is not None, module
    return ast.parse(Path(spec.origin).read_text())
