"""Between TensorFlow's structures and TFF's types."""

import inspect
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from tff_het.backend.names import eager_mode, tff


def type_of(specs: Any) -> tff.Type:
    """Returns the `tff.Type` of a structure of `tf.TensorSpec`s."""
    return tff.to_type(
        tf.nest.map_structure(lambda s: tff.TensorType(s.dtype.as_numpy_dtype, s.shape), specs)
    )


def specs_of(values: Any) -> Any:
    """Returns the `tf.TensorSpec`s of a structure of tensors, arrays or numbers."""
    return tf.nest.map_structure(
        lambda value: tf.TensorSpec.from_tensor(tf.convert_to_tensor(value)), values
    )


def computation(fn: Callable[..., Any], *types: tff.Type) -> tff.Computation:
    """Makes a computation of a TensorFlow function, traced as `tf.function` traces it.

    TFF traces in a graph of TensorFlow 1's kind, in which `tensor == tensor`
    compares Python objects, silently: methods, models and metrics would have to
    know. Here `fn` is traced under TensorFlow 2's rules and only then embedded.

    Args:
      fn: Takes one argument for each type, of Python containers as TFF makes
        them, and returns a structure of tensors.
      *types: Types of the arguments, without placements.
    """

    signature = inspect.signature(fn)

    def embedded(*args, **kwargs):
        args = signature.bind(*args, **kwargs).args
        flat = tf.nest.flatten(args)
        specs = [tf.TensorSpec(tensor.shape, tensor.dtype) for tensor in flat]
        with eager_mode():
            traced = tf.function(
                lambda *tensors: fn(*tf.nest.pack_sequence_as(args, tensors)), autograph=False
            ).get_concrete_function(*specs)
        return traced(*flat)

    # TFF refuses a variable number of arguments: show it those of `fn`.
    embedded.__signature__ = signature  # type: ignore[attr-defined]
    return tff.tensorflow.computation(embedded, types if len(types) != 1 else types[0])
