"""Sequences of a computation: datasets as the tensors of which TensorFlow's graphs make them."""

from typing import Any

import tensorflow as tf

from tff_het.backend import internals
from tff_het.backend.names import tff


def to_variant(value: Any, value_type: tff.SequenceType) -> tuple[tf.Tensor, int]:
    """Returns the variant tensor of a dataset or of a list of elements, and roughly its bytes.

    Each call restarts a dataset, as in TFF's worker. A `tf.data.Dataset` itself goes on: a
    seeded shuffle gives another order whenever it is read, to whichever client comes next.

    Raises:
      TypeError: If it is neither, or its elements do not have the type.
      ValueError: If the order of its elements' names is ambiguous.
    """
    if isinstance(value, list):
        dataset = internals.make_data_set_from_elements(None, value, value_type.element)
        return tf.data.experimental.to_variant(dataset), len(value) * _element_size(dataset)
    if not isinstance(value, tf.data.Dataset):
        raise TypeError(f"expected a tf.data.Dataset or a list, found {type(value).__name__}.")
    element_type = internals.tensorflow_to_type(value.element_spec)
    if not value_type.element.is_assignable_from(element_type):
        raise TypeError(f"expected {value_type}, found a dataset of {element_type}.")
    internals.check_dataset_containers(element_type)
    variant = tf.data.experimental.to_variant(value)
    if internals.draws_with_seed(value):
        variant = _anew(variant)
    # Unknown and infinite are negative: nobody can tell which of these is larger.
    return variant, max(int(value.cardinality()), 0) * _element_size(value)


def from_variant(variant: tf.Tensor, value_type: tff.SequenceType) -> tf.data.Dataset:
    """Returns the dataset of a variant tensor, its elements in the type's containers."""
    return tf.data.experimental.from_variant(
        variant, internals.type_to_tf_structure(value_type.element)
    )


# The form of a shuffle that has a generator of its own, and where it differs: its inputs come
# without the last one, the generator.
_SHUFFLES = {
    "ShuffleDatasetV3": "ShuffleDataset",
    "ShuffleAndRepeatDatasetV2": "ShuffleAndRepeatDataset",
}


def _anew(variant: tf.Tensor) -> tf.Tensor:
    """Returns a copy of a dataset, data included, that shares no random generator with it."""
    graph = tf.raw_ops.DatasetToGraphV2(input_dataset=variant)
    graph_def = tf.compat.v1.GraphDef.FromString(graph.numpy())
    for node in graph_def.node:
        if node.op in _SHUFFLES:
            node.op = _SHUFFLES[node.op]
            del node.input[-1]
    return tf.raw_ops.DatasetFromGraph(graph_def=graph_def.SerializeToString())


def _element_size(dataset: tf.data.Dataset) -> int:
    """Returns the bytes of an element; what is unknown counts as 1, and is so for all clients."""
    size = 0
    for spec in tf.nest.flatten(dataset.element_spec):
        elements = 1
        for dimension in spec.shape:
            elements *= dimension or 1
        size += elements * spec.dtype.size
    return size
