"""A client's examples as one file: for runtimes that receive arguments over a network.

Reading a file costs a computation a fraction of what unpacking the same arrays
from a message does. The file holds the columns one after another, without a
header: the model's example spec tells dtypes and shapes, the length the rest.
"""

import collections
import math
from collections.abc import Mapping

import numpy as np
import tensorflow as tf

Spec = Mapping[str, tf.TensorSpec]


def to_bytes(examples: Mapping[str, np.ndarray], spec: Spec) -> list[memoryview]:
    """Returns the parts of a client's file, in order, without copying the arrays.

    Raises:
      ValueError: If a column has another dtype or shape than the spec, or another
        number of examples than the first, or if all are 2 GiB or more, beyond
        which TensorFlow's string operations do not count.
    """
    parts = []
    num_examples = len(examples[next(iter(spec))])
    for name, column_spec in spec.items():
        column = np.ascontiguousarray(examples[name])
        if column.dtype != column_spec.dtype.as_numpy_dtype or not (
            column_spec.shape.is_compatible_with(column.shape)
        ):
            raise ValueError(
                f"Column {name!r} should be {column_spec.dtype.name} {column_spec.shape}, found "
                f"{column.dtype} {column.shape}."
            )
        if len(column) != num_examples:
            raise ValueError(
                f"Column {name!r} has {len(column)} examples, others have {num_examples}."
            )
        parts.append(column.reshape(-1).view(np.uint8).data)
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
