"""TFF and Keras, under the names that the rest of this project uses.

from tff_het.backend.names import keras, tff
"""

import atexit
from typing import Any

import tensorflow as tf
import tensorflow_federated as tff

__all__ = ["PACKAGES", "eager_mode", "keras", "tff", "unfit"]

keras = tf.keras
# In which functions and classes stay what they are while a program runs.
PACKAGES = ("tensorflow", "tensorflow_federated", "keras")

# What the in-process runtime, which uses internals, was tested with.
_TESTED = {tf: "2.14", tff: "0.87"}


def unfit() -> str | None:
    """Returns why the in-process runtime cannot be used with the installed versions, or None."""
    for package, tested in _TESTED.items():
        if package.__version__.split(".")[:2] != tested.split("."):
            return f"it uses internals of {package.__name__} {tested}, found {package.__version__}"
    return None


def eager_mode() -> Any:
    """Returns a context manager in which TensorFlow 2's rules hold, also while TFF traces."""
    return tf.__internal__.eager_context.eager_mode()


class _Ended(tff.framework.SyncContext):
    """Refuses calls; takes the place of TFF's own context while the modules it needs still exist.

    Left to the interpreter's teardown, that one prints an `AttributeError`.
    """

    def invoke(self, comp: Any, arg: Any) -> Any:
        raise RuntimeError("The program is ending: computations can no longer be called.")


atexit.register(lambda: tff.framework.set_default_context(_Ended()))
