"""Keeps what was built, by the content of what it was built from.

Building a model or a process takes seconds and depends on the method, the network, the shapes and
the training settings, but not on the seed. A function decorated with `by_content` builds once for
equal arguments, however often they are made anew, and keeps the most recently used results.

    @kept.by_content(size=32)
    def build(architecture, training): ...

Arguments are equal if they have the same types and values. A function is its code together with
what it encloses; an object is its class together with its attributes. Functions and classes are
taken to depend on nothing else, so those typed into a notebook or script (module `__main__`), which
may read variables that change, have no key: what is built from them is built each time.
"""

import collections
import dataclasses
import functools
import hashlib
import threading
import types
import weakref
from collections.abc import Callable, Hashable, Iterator, Mapping
from typing import Any, ParamSpec, TypeVar

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

_P = ParamSpec("_P")
_T = TypeVar("_T")

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
    is_plain_class = isinstance(value, type) and value.__module__ != "__main__"
    if (
        is_plain_class
        or _results.get(id(value)) is value
        or isinstance(value, tff.Computation | types.BuiltinFunctionType)
    ):
        return _Itself(value)
    if isinstance(value, np.dtype | tf.DType | tf.TensorShape | tf.TensorSpec | types.CodeType):
        return kind, value
    if isinstance(value, np.ndarray | np.generic) and value.dtype != object:
        data = np.ascontiguousarray(value)
        return kind, value.dtype.str, value.shape, hashlib.sha256(data.tobytes()).digest()
    return kind, *map(_content, _parts(value))


def _parts(value: Any) -> Iterator[Any]:
    """Yields what tells a value from others of its type."""
    is_function = isinstance(value, types.FunctionType)
    own_module = value.__module__ if is_function else type(value).__module__
    if isinstance(value, list | tuple):
        yield from value
    elif isinstance(value, Mapping):
        yield from value.items()
    elif isinstance(value, functools.partial):
        yield from (value.func, value.args, value.keywords)
    elif isinstance(value, types.MethodType):
        yield from (value.__self__, value.__func__)
    elif own_module == "__main__":
        raise UnkeyableError(f"{value!r} is of a notebook or script.")
    elif is_function:
        enclosed = tuple(cell.cell_contents for cell in value.__closure__ or ())
        yield from (value.__code__, own_module, enclosed)
        yield from (value.__defaults__, value.__kwdefaults__, vars(value))
    elif dataclasses.is_dataclass(value) or own_module.startswith(_PLAIN_OBJECTS):
        yield vars(value)
    else:
        raise UnkeyableError(f"{type(value).__name__} has no key.")
