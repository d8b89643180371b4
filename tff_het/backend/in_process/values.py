"""Values of a running computation, and their conversion from and to Python.

Inside, a struct is a list of its elements in the type's order (names are the type's matter), a
function is a Python function, a value at SERVER stands for itself and what is at CLIENTS is an
`AtClients`.

A type becomes a Python function once, which then brings in or out value after value.
"""

import collections
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from tff_het.backend import internals
from tff_het.backend.names import tff

ELSEWHERE = 'Use the runtime `worker` for it: `tff_het.simulation.runtime.use("worker")`.'


class AtClients(NamedTuple):
    """One value for each client, in the order of the argument."""

    values: list[Any]


class Cohort:
    """What an argument says about its clients.

    Attributes:
      sizes: Roughly how many bytes each has, without what is equally large for all.
      ids: What they are called, the field `client` of an argument; empty without one.
    """

    def __init__(self) -> None:
        self.sizes: list[int] = []
        self.ids: list[tf.Tensor] = []
        self._known = False
        self._size = 0

    def count(self, size: int) -> None:
        """Counts bytes for the client that is being brought in."""
        self._size += size

    def add(self, members: list[Any], ingest: "Ingest") -> list[Any]:
        """Brings in one value for each client.

        Raises:
          ValueError: If there are more or fewer than in another part of the argument.
        """
        if not self._known:
            self._known, self.sizes = True, [0] * len(members)
        if len(members) != len(self.sizes):
            raise ValueError(
                "Arguments hold different numbers of clients: "
                f"{len(self.sizes)} and {len(members)}."
            )
        found = []
        for client, member in enumerate(members):
            self._size = 0
            try:
                found.append(ingest(member, self))
            except TypeError as error:
                raise TypeError(f"Client {client}: {error}") from error
            self.sizes[client] += self._size
        return found


Ingest = Callable[[Any, Cohort], Any]


def ingester(value_type: tff.Type | None, where: str = "Argument") -> Ingest:
    """Returns the function that brings an argument into the form in which it is executed.

    It raises TypeError if a value does not have the type, as TFF's own contexts do; errors call the
    value `where`.
    """
    if value_type is None:
        return lambda value, cohort: None
    if isinstance(value_type, tff.FederatedType) and value_type.placement is tff.SERVER:
        return ingester(value_type.member, where)
    if isinstance(value_type, tff.FederatedType) and not value_type.all_equal:
        member = ingester(value_type.member, where)
        place = _place_of_client(value_type.member)

        def clients(value: Any, cohort: Cohort) -> AtClients:
            if not isinstance(value, list | tuple):
                raise TypeError(
                    f"{where}: expected a list with one value for each client, found "
                    f"{type(value).__name__}."
                )
            found = cohort.add(list(value), member)
            if place is not None:
                cohort.ids = [one[place] for one in found]
            return AtClients(found)

        return clients
    if isinstance(value_type, tff.StructType):
        return _struct_ingester(value_type, where)
    if isinstance(value_type, tff.TensorType):
        return _tensor_ingester(value_type, where)
    raise NotImplementedError(
        f"{where}: the in-process runtime takes no values of type {value_type}. {ELSEWHERE}"
    )


def _place_of_client(member_type: tff.Type) -> int | None:
    """Where clients say what they are called: the tensor `client`."""
    if isinstance(member_type, tff.StructType):
        for place, (name, element) in enumerate(tff.structure.to_elements(member_type)):
            if name == "client" and isinstance(element, tff.TensorType):
                return place
    return None


def _struct_ingester(value_type: tff.StructType, where: str) -> Ingest:
    names = tuple(tff.structure.name_list_with_nones(value_type))
    elements = [
        ingester(element, f"{where}[{i}]" if name is None else f"{where}.{name}")
        for i, (name, element) in enumerate(tff.structure.to_elements(value_type))
    ]

    def struct(value: Any, cohort: Cohort) -> list[Any]:
        found, parts = _elements(value)
        if len(parts) != len(names) or (
            found is not None
            and found != names
            and any(f not in (None, n) for f, n in zip(found, names, strict=True))
        ):
            described = type(value).__name__ if found is None else list(found)
            raise TypeError(
                f"{where}: expected a struct of {len(names)} with names {list(names)}, found "
                f"{len(parts)}: {described}."
            )
        return [element(part, cohort) for element, part in zip(elements, parts, strict=True)]

    return struct


def _elements(value: Any) -> tuple[tuple[str | None, ...] | None, list[Any]]:
    """Returns a container's names, None if it has none, and its elements."""
    if isinstance(value, dict):
        return tuple(value), list(value.values())
    if isinstance(value, list | tuple):
        return getattr(value, "_fields", None), list(value)
    # Rarer ones: attrs classes and TFF's own struct. Anything else is a TypeError.
    pairs = tff.structure.to_elements(tff.structure.from_container(value))
    return tuple(name for name, _ in pairs), [element for _, element in pairs]


def _tensor_ingester(value_type: tff.TensorType, where: str) -> Ingest:
    dtype, shape = value_type.dtype, value_type.shape
    tensor_dtype = tf.as_dtype(dtype)
    static, is_string = tf.TensorShape(shape), tensor_dtype == tf.string
    known = tuple(static.as_list()) if static.is_fully_defined() else None

    def fail(found: Any) -> TypeError:
        return TypeError(f"{where}: expected {value_type}, found {found}.")

    def array(value: Any) -> Any:
        """As TFF's worker: widening is allowed, and lists are arrays."""
        if isinstance(value, tf.Variable):
            value = value.numpy()
        if isinstance(value, list | tuple):
            if not all(
                internals.is_compatible_dtype(leaf, dtype.type) for leaf in tf.nest.flatten(value)
            ):
                raise fail(f"a {type(value).__name__} with elements of another type")
            value = np.asarray(value, None if is_string else dtype)
        if not isinstance(
            value, np.ndarray | np.generic | bool | int | float | complex | str | bytes
        ):
            raise fail(type(value).__name__)
        if not internals.is_compatible_dtype(value, dtype.type):
            raise fail(
                repr(value) if np.ndim(value) == 0 else f"an array of {np.asarray(value).dtype}"
            )
        return value if is_string else np.asarray(value, dtype)

    def tensor(value: Any, cohort: Cohort) -> tf.Tensor:
        if isinstance(value, tf.Tensor) and value.dtype != tensor_dtype:
            value = value.numpy()
        if not isinstance(value, tf.Tensor):
            if not isinstance(value, np.ndarray | np.generic) or value.dtype != dtype:
                value = array(value)
            value = internals.eager_tensor(value, tensor_dtype)
        if internals.shape_of(value) == known:
            return value
        if not static.is_compatible_with(value.shape):
            raise fail(f"{value.dtype.name}[{','.join(map(str, value.shape))}]")
        cohort.count(value.shape.num_elements() * tensor_dtype.size)
        return value

    return tensor


def emitter(value_type: tff.Type) -> Callable[[Any], Any]:
    """Returns the function that brings a result into the form of TFF's own contexts.

    Tensors become NumPy's, arrays read-only as there: they share TensorFlow's memory.

    Raises:
      ValueError: If no Python container can hold a struct of the type.
      NotImplementedError: If it holds a sequence, or one value for all clients.
    """
    if isinstance(value_type, tff.FederatedType) and value_type.placement is tff.SERVER:
        return emitter(value_type.member)
    if isinstance(value_type, tff.FederatedType) and not value_type.all_equal:
        member = emitter(value_type.member)
        return lambda value: [member(one) for one in value.values]
    if isinstance(value_type, tff.StructType):
        elements = [emitter(element) for element in value_type]
        container = _container(value_type)
        return lambda value: container(
            [element(part) for element, part in zip(elements, value, strict=True)]
        )
    if isinstance(value_type, tff.TensorType):
        return _to_numpy
    raise NotImplementedError(
        f"The in-process runtime gives no values of type {value_type}. {ELSEWHERE}"
    )


def _to_numpy(tensor: tf.Tensor) -> Any:
    if tensor.shape.rank == 0 or tensor.dtype == tf.string:
        return tensor.numpy()
    array = np.asarray(tensor)
    array.flags.writeable = False
    return array


def _container(struct_type: tff.StructType) -> Callable[[list[Any]], Any]:
    """Returns what makes the type's Python container of its elements."""
    names = tff.structure.name_list_with_nones(struct_type)
    container: Any = struct_type.python_container
    named = [name for name in names if name is not None]
    if named and len(named) < len(names):
        raise ValueError(f"No Python container has elements with and without names: {struct_type}.")
    if container is None:
        container = collections.OrderedDict if named else tuple
    if hasattr(container, "_fields") or hasattr(container, "__attrs_attrs__"):
        return lambda elements: container(**dict(zip(names, elements, strict=True)))
    if not named:
        return container
    if issubclass(container, list | tuple):
        raise ValueError(f"A {container.__name__} cannot hold the names of {struct_type}.")
    return lambda elements: container(zip(names, elements, strict=True))


def flatten(value: Any) -> Iterator[Any]:
    """Yields the tensors of an unplaced value, in the type's order."""
    if isinstance(value, list):
        for element in value:
            yield from flatten(element)
    else:
        yield value


def pack(tensors: Iterator[Any], value_type: tff.Type) -> Any:
    """Undoes `flatten`."""
    if isinstance(value_type, tff.StructType):
        return [pack(tensors, element_type) for element_type in value_type]
    return next(tensors)


def form_of(value: Any, tensors: list[Any]) -> Any:
    """Appends a value's tensors to a list; returns what `filled` makes it of again, hashable."""
    if isinstance(value, AtClients):
        return AtClients, *(form_of(one, tensors) for one in value.values)
    if isinstance(value, list):
        return tuple(form_of(element, tensors) for element in value)
    tensors.append(value)
    return None


def filled(form: Any, tensors: Iterator[Any]) -> Any:
    """Undoes `form_of`."""
    if form is None:
        return next(tensors)
    if form[:1] == (AtClients,):
        return AtClients([filled(one, tensors) for one in form[1:]])
    return [filled(element, tensors) for element in form]
