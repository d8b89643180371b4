"""Values of a computation under execution, and their way in and out.

Inside, a struct is a list of its elements in the type's order (names are the type's matter), a
sequence is a dataset's variant tensor, a value at SERVER stands for itself and what is at CLIENTS
is an `AtClients` or, where all are equal, an `AllEqual`.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_het.simulation.in_process import _private


class AtClients(NamedTuple):
    """One value for each client, in the order of the argument."""

    values: list[Any]


class AllEqual(NamedTuple):
    """The same value at every client."""

    value: Any


def ingest(value: Any, value_type: tff.Type) -> Any:
    """Brings an argument into the form in which it is executed.

    Raises:
      TypeError: If it does not have the type; as TFF's own contexts.
    """
    if isinstance(value_type, tff.FederatedType):
        if value_type.placement is tff.SERVER:
            return ingest(value, value_type.member)
        if value_type.all_equal:
            return AllEqual(ingest(value, value_type.member))
        if not isinstance(value, list | tuple):
            raise TypeError(
                f"Expected a list with one value for each client, found {type(value).__name__}."
            )
        return AtClients([ingest(member, value_type.member) for member in value])
    if isinstance(value_type, tff.StructType):
        elements = tff.structure.to_elements(tff.structure.from_container(value))
        types = tff.structure.to_elements(value_type)
        if len(elements) != len(types) or any(
            name not in (None, expected)
            for (name, _), (expected, _) in zip(elements, types, strict=True)
        ):
            raise TypeError(
                f"Expected a struct with elements {[name for name, _ in types]}, found "
                f"{[name for name, _ in elements]}."
            )
        return [ingest(v, t) for (_, v), (_, t) in zip(elements, types, strict=True)]
    if isinstance(value_type, tff.SequenceType):
        return sequence(value, value_type)
    return _tensor(value, value_type)


def sequence(value: Any, value_type: tff.SequenceType) -> tf.Tensor:
    """Makes the variant tensor of a dataset, or of a list of elements."""
    if isinstance(value, list):
        value = _private.make_data_set_from_elements(None, value, value_type.element)
    elif not isinstance(value, tf.data.Dataset):
        raise TypeError(f"Expected a tf.data.Dataset or a list, found {type(value).__name__}.")
    return tf.data.experimental.to_variant(value)


def _tensor(value: Any, value_type: tff.TensorType) -> Any:
    if not isinstance(value, tf.Tensor):
        # Python's own numbers take the type's precision; arrays have theirs.
        array = np.asarray(value)
        if isinstance(value, bool | int | float | complex):
            array = array.astype(value_type.dtype)
        value = tf.convert_to_tensor(array)
    expected = tf.as_dtype(value_type.dtype)
    if value.dtype != expected or not tf.TensorShape(value_type.shape).is_compatible_with(
        value.shape
    ):
        raise TypeError(
            f"Expected {value_type}, found {value.dtype.name}[{','.join(map(str, value.shape))}]."
        )
    return value


def emit(value: Any, value_type: tff.Type) -> Any:
    """Brings a result into the form that TFF's contexts give: NumPy values in TFF's structs."""
    if isinstance(value_type, tff.FederatedType):
        if isinstance(value, AtClients):
            return [emit(member, value_type.member) for member in value.values]
        if isinstance(value, AllEqual):
            value = value.value
        return emit(value, value_type.member)
    if isinstance(value_type, tff.StructType):
        return tff.structure.Struct(
            (name, emit(element, element_type))
            for element, (name, element_type) in zip(
                value, tff.structure.to_elements(value_type), strict=True
            )
        )
    if isinstance(value_type, tff.SequenceType):
        specs = _private.type_to_tf_tensor_specs(value_type.element)
        dataset = tf.data.experimental.from_variant(value, specs)
        return list(dataset.as_numpy_iterator())
    return value.numpy()


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


def size(value: Any) -> int:
    """Returns roughly how many bytes an unplaced value has; sequences count nothing."""
    return sum(
        tensor.shape.num_elements() * tensor.dtype.size
        for tensor in flatten(value)
        if tensor.dtype not in (tf.variant, tf.resource)
    )
