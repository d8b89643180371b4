"""What layers may know of the call that they are part of: its client and seed.

Keras passes layers their inputs alone. Layers that draw random numbers, or that
condition on the client, find the rest here while a model is being called.
"""

import contextlib
import threading
from collections.abc import Iterator
from typing import NamedTuple

import tensorflow as tf

from tff_het.models.model import ClientContext

_thread = threading.local()


class Call(NamedTuple):
    """One call of a model: the `ClientContext` and the call's seed, int32 [2]."""

    client: ClientContext
    seed: tf.Tensor


@contextlib.contextmanager
def call(client: ClientContext, seed: tf.Tensor) -> Iterator[None]:
    """Layers called inside see this client and seed."""
    _thread.call = Call(client, tf.cast(seed, tf.int32))
    try:
        yield
    finally:
        _thread.call = None


def current(layer_name: str) -> Call:
    """Returns the call that is under way.

    Raises:
      RuntimeError: If the layer was called by hand rather than through a `Model`.
    """
    found = getattr(_thread, "call", None)
    if found is None:
        raise RuntimeError(
            f"Layer {layer_name!r} needs the client and seed of a call: use the functions of "
            "`tff_het.models.keras_model.from_keras(...)` rather than calling the Keras model."
        )
    return found
