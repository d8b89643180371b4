"""A client's examples as one file, for runtimes that receive arguments over a network.

Reading a file costs a computation a fraction of what unpacking the same arrays
from a message does. The file holds the columns one after another, without a
header: the model's example spec tells dtypes and shapes, the length the rest.
"""

import collections
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf

Spec = Mapping[str, tf.TensorSpec]


def checked(examples: Mapping[str, Any], spec: Spec) -> collections.OrderedDict:
    """Returns a client's columns in the order of the spec.

    Raises:
      ValueError: If one is missing, has another dtype or shape than the spec, or another
        number of examples than the first.
    """
    columns = collections.OrderedDict((name, examples.get(name)) for name in spec)
    num_examples = None
    for name, column in columns.items():
        expected = f"Column {name!r} should be {spec[name].dtype.name} {spec[name].shape}"
        if column is None:
            raise ValueError(f"{expected}, but there are only {sorted(examples)}.")
        if tf.as_dtype(column.dtype) != spec[name].dtype or not (
            spec[name].shape.is_compatible_with(column.shape)
        ):
            raise ValueError(f"{expected}, found {column.dtype} {column.shape}.")
        num_examples = len(column) if num_examples is None else num_examples
        if len(column) != num_examples:
            raise ValueError(
                f"Column {name!r} has {len(column)} examples, others have {num_examples}."
            )
    return columns


def to_bytes(examples: Mapping[str, np.ndarray], spec: Spec) -> list[memoryview]:
    """Returns the parts of a client's file, in order, without copying the arrays.

    Raises:
      ValueError: As `checked`, or if all are 2 GiB or more, beyond which TensorFlow's
        string operations do not count.
    """
    parts = [
        np.ascontiguousarray(column).reshape(-1).view(np.uint8).data
        for column in checked(examples, spec).values()
    ]
    if (total := sum(part.nbytes for part in parts)) >= 2**31:
        raise ValueError(f"A client's examples must be less than 2 GiB, found {total} bytes.")
    return parts


def read(path: tf.Tensor, spec: Spec) -> collections.OrderedDict:
    """Reads a client's examples inside a computation; columns [n, ...] as in the spec."""
    data = tf.io.read_file(path)
    sizes = [column.dtype.size * math.prod(column.shape.as_list()[1:]) for column in spec.values()]
    num_examples = tf.strings.length(data) // sum(sizes)
    columns, start = collections.OrderedDict(), tf.zeros([], tf.int32)
    for (name, column), size in zip(spec.items(), sizes, strict=True):
        raw = tf.strings.substr(data, start, num_examples * size)
        values = tf.io.decode_raw(raw, column.dtype)
        columns[name] = tf.reshape(values, [num_examples, *column.shape.as_list()[1:]])
        start += num_examples * size
    return columns
