"""Keras variables whose value is a tensor of the caller's choice.

Keras 2 has no stateless call. A model that is built under `slots` holds
`SlotVariable`s; inside `bound` they read as the given tensors, so the same
Keras model becomes a pure function that can be traced into any graph, without
variables or initialisers in it.
"""

import contextlib
import threading
from collections.abc import Iterator, Sequence
from typing import Any

import tensorflow as tf

_thread = threading.local()


class SlotVariable(tf.Variable):
    """A `tf.Variable` that reads as the tensor bound to it, or else as its own value."""

    def __init__(self, variable: tf.Variable, initial_value: Any):
        self._variable = variable
        # Keras passes `functools.partial(initializer, shape, dtype=...)`, from
        # which the model is initialised again with other seeds.
        self.initial_value_fn = initial_value

    def value(self) -> tf.Tensor:
        values = getattr(_thread, "values", {})
        return values[id(self)] if id(self) in values else self._variable.value()

    def read_value(self) -> tf.Tensor:
        return self.value()

    def _bind(self, value: tf.Tensor) -> tf.Tensor:
        if id(self) not in getattr(_thread, "values", {}):
            raise RuntimeError(
                f"{self.name} is assigned to outside of a call of the model: give values as the "
                "`variables` argument of the model's functions instead."
            )
        _thread.values[id(self)] = tf.ensure_shape(tf.cast(value, self.dtype), self.shape)
        return _thread.values[id(self)]

    def assign(self, value, use_locking=None, name=None, read_value=True):
        return self._bind(tf.convert_to_tensor(value))

    def assign_add(self, delta, use_locking=None, name=None, read_value=True):
        return self._bind(self.value() + delta)

    def assign_sub(self, delta, use_locking=None, name=None, read_value=True):
        return self._bind(self.value() - delta)

    def numpy(self):
        return self._variable.numpy()

    dtype = property(lambda self: self._variable.dtype)
    shape = _shape = property(lambda self: self._variable.shape)
    name = property(lambda self: self._variable.name)
    trainable = property(lambda self: self._variable.trainable)


def _to_tensor(slot: SlotVariable, dtype=None, name=None, as_ref=False) -> tf.Tensor:
    del name, as_ref
    return tf.convert_to_tensor(slot.value(), dtype=dtype)


tf.register_tensor_conversion_function(SlotVariable, _to_tensor)


@contextlib.contextmanager
def slots() -> Iterator[None]:
    """Floating point variables created inside are `SlotVariable`s."""

    def create(next_creator, **kwargs):
        variable = next_creator(**kwargs)
        # Others cannot be part of a model (`keras_model.from_keras` says so), but random generators
        # hold some, and those that make them must come as far as that message.
        if not variable.dtype.is_floating:
            return variable
        return SlotVariable(variable, kwargs.get("initial_value"))

    with tf.variable_creator_scope(create):
        yield


@contextlib.contextmanager
def bound(variables: Sequence[SlotVariable], tensors: Sequence[Any]) -> Iterator[dict[int, Any]]:
    """Inside, `variables` read as `tensors`; yields the values by the slots' `id`.

    After assignments (moving statistics) the yielded mapping holds what was
    assigned. Bindings belong to the thread and may not be nested.
    """
    if getattr(_thread, "values", None):
        raise RuntimeError("A model was called while another call of a model was being traced.")
    _thread.values = {id(v): t for v, t in zip(variables, tensors, strict=True)}
    try:
        yield _thread.values
    finally:
        _thread.values = {}
