"""Keeps what was built, by the content of what it was built from.

Building a model or a process takes seconds and depends on the method, the network, the shapes and
the training settings, but not on the seed. A function decorated with `by_content` builds once for
equal arguments, even if these are other objects, and keeps the most recently used results.

    @kept.by_content(size=32)
    def build(architecture, training): ...

Arguments are equal if they have the same types and values. A function is its code together with
what it encloses and what the globals that it names hold; an object is its class together with its
attributes. What cannot be seen through has no key (a Keras layer, a tensor, an object of a class of
another package), and what is built from it is built each time.
"""

import collections
import dataclasses
import functools
import hashlib
import sys
import threading
import types
import weakref
from collections.abc import Callable, Hashable, Iterator, Mapping
from typing import Any, ParamSpec, TypeVar

import numpy as np
import tensorflow as tf

from tff_het.backend.names import PACKAGES, tff

_P = ParamSpec("_P")
_T = TypeVar("_T")

# Their functions, classes and modules stay what they are while a program runs.
_CONSTANT = {"tff_het", "numpy", *PACKAGES}
_CONSTANT |= sys.stdlib_module_names - {"__main__"}
# Of objects of other packages nobody knows what their attributes leave out.
_PLAIN_OBJECTS = ("tff_het.", "tensorflow_federated.")

# Building is done by one thread at a time, which may build other things on the way.
_lock = threading.RLock()
_caches: list[collections.OrderedDict] = []
# What is kept, by its id: inside of another key it stands for itself.
_results: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()


class UnkeyableError(ValueError):
    """A value has no key, because something that it depends on cannot be seen."""


@dataclasses.dataclass(frozen=True, eq=False)
class _Itself:
    """Stands for one object, which it keeps alive."""

    value: Any

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Itself) and self.value is other.value

    def __hash__(self) -> int:
        return id(self.value)


def by_content(size: int) -> Callable[[Callable[_P, _T]], Callable[_P, _T]]:
    """Returns a decorator for functions whose results are kept.

    Args:
      size: How many results are kept: those used last.
    """

    def decorate(build: Callable[_P, _T]) -> Callable[_P, _T]:
        results: collections.OrderedDict[Hashable, _T] = collections.OrderedDict()
        _caches.append(results)

        @functools.wraps(build)
        def kept(*args: _P.args, **kwargs: _P.kwargs) -> _T:
            try:
                key = content((args, kwargs))
            except UnkeyableError:
                return build(*args, **kwargs)
            with _lock:
                if key not in results:
                    results[key] = build(*args, **kwargs)
                    if hasattr(results[key], "__weakref__"):
                        _results[id(results[key])] = results[key]
                results.move_to_end(key)
                if len(results) > size:
                    results.popitem(last=False)
                return results[key]

        return kept

    return decorate


def forget() -> None:
    """Forgets all that is kept."""
    with _lock:
        for results in _caches:
            results.clear()


def content(value: Any) -> Hashable:
    """Returns a key that is equal for equal values alone.

    Raises:
      UnkeyableError: If there is none.
    """
    try:
        return _content(value)
    except (RecursionError, TypeError, ValueError) as error:
        # What holds itself, cannot be hashed, or encloses a name without a value.
        raise UnkeyableError(f"{type(value).__name__} has no key: {error}") from error


def _content(value: Any) -> Hashable:
    kind = type(value)
    if value is None or kind in (bool, int, str, bytes):
        return kind, value
    if kind is float:
        return kind, value.hex()  # Tells -0.0 from 0.0, and nan is nan.
    if (
        _results.get(id(value)) is value
        or isinstance(value, tff.Computation | types.BuiltinFunctionType)
        or (isinstance(value, type | types.ModuleType) and _is_constant(value))
    ):
        return _Itself(value)
    if isinstance(value, _Itself):
        return value
    if isinstance(value, np.dtype | tf.DType | tf.TensorShape | tf.TensorSpec | types.CodeType):
        return kind, value
    if isinstance(value, np.ndarray | np.generic) and value.dtype != object:
        data = np.ascontiguousarray(value)
        return kind, value.dtype.str, value.shape, hashlib.sha256(data.tobytes()).digest()
    return kind, *map(_content, _parts(value))


def _parts(value: Any) -> Iterator[Any]:
    """Yields what tells a value from others of its type."""
    kind = type(value)
    if isinstance(value, list | tuple):
        yield from value
    elif isinstance(value, Mapping):
        yield from value.items()
    elif isinstance(value, functools.partial):
        yield from (value.func, value.args, value.keywords)
    elif isinstance(value, types.MethodType):
        yield from (value.__self__, value.__func__)
    elif isinstance(value, types.FunctionType):
        yield from (value.__code__, [cell.cell_contents for cell in value.__closure__ or ()])
        yield from (value.__defaults__, value.__kwdefaults__, vars(value))
        if not _is_constant(value):
            names = _names(value.__code__) & value.__globals__.keys()
            yield {name: value.__globals__[name] for name in sorted(names)}
    elif isinstance(value, type):
        yield _Itself(value)
        own = [vars(base) for base in value.__mro__ if not _is_constant(base)]
        for name, member in (pair for members in own for pair in members.items()):
            if isinstance(member, types.FunctionType) and (
                name == "__call__" or not name.startswith("__")
            ):
                yield member
    elif dataclasses.is_dataclass(value) or kind.__module__.startswith(_PLAIN_OBJECTS):
        yield from (kind, vars(value))
    else:
        raise UnkeyableError(f"{kind.__name__} has no key.")


def _is_constant(value: Any) -> bool:
    """Whether a function, class or module stays what it is."""
    name = value.__name__ if isinstance(value, types.ModuleType) else value.__module__
    return name.partition(".")[0] in _CONSTANT


def _names(code: types.CodeType) -> set[str]:
    """All names that code and the functions inside it look up."""
    inside = [_names(const) for const in code.co_consts if isinstance(const, types.CodeType)]
    return set(code.co_names).union(*inside)
