"""All that this package uses beyond the public interfaces of TFF and TensorFlow.

Checked at import: with other versions these may have moved or may mean something else.
"""

import tensorflow as tf
import tensorflow_federated as tff

TESTED = {"tensorflow": ("2.14", tf.__version__), "tensorflow_federated": ("0.87", tff.__version__)}

for _name, (_tested, _found) in TESTED.items():
    if _found.split(".")[:2] != _tested.split("."):
        raise ImportError(
            f"The in-process runtime uses internals of {_name} {_tested}, found {_found}. Use "
            "TFF's worker (`runtime.use('worker')`), or run this package's tests with that "
            "version and add it to `TESTED`."
        )

# ruff: noqa: E402
from tensorflow_federated.proto.v0.computation_pb2 import TensorFlow as TensorFlowProto
from tensorflow_federated.python.core.impl.types.type_conversions import (
    type_to_py_container,
    type_to_tf_tensor_specs,
)
from tensorflow_federated.python.core.impl.utils.tensorflow_utils import (
    make_data_set_from_elements,
)

__all__ = [
    "TensorFlowProto",
    "make_data_set_from_elements",
    "type_to_py_container",
    "type_to_tf_tensor_specs",
    "call_flat",
]


def call_flat(function, arguments):
    """Calls a pruned function without captures on a list of tensors.

    `ConcreteFunction.__call__` spends a millisecond on binding names and on gradient tapes.
    """
    return function._inference_function(*arguments)
