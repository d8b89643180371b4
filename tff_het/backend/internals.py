"""All that is used beyond the public interfaces of TFF and TensorFlow.

With other versions than `names.unfit` accepts, it may have moved or may mean something else.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
from tensorflow.core.framework import function_pb2
from tensorflow.python.eager import context, execute
from tensorflow.python.eager.cancellation import CancellationManager as CancellationManager
from tensorflow.python.framework import op_def_registry, ops
from tensorflow_federated.python.core.environments.tensorflow_backend import (
    compiled_computation_transformations,
)
from tensorflow_federated.python.core.impl.compiler.array import (
    is_compatible_dtype as is_compatible_dtype,
)


def has_started() -> bool:
    """Whether TensorFlow has done anything in this process, so that its threads are there."""
    return context.context()._initialized


def optimized(block: Any) -> Any:
    """Optimizes the TensorFlow graph of a block, and leaves its loops in functions.

    TFF's own compiler does the same, but breaks loops up into single operations, which
    `rewriting.loops_in_sequence` could not tell from others any more.
    """
    config = tf.compat.v1.ConfigProto()
    config.experimental.executor_type = "SINGLE_THREADED_EXECUTOR"  # This is what keeps the loops.
    rewrites = config.graph_options.rewrite_options
    for kind in ("constant", "arithmetic", "loop", "function"):
        name = "constant_folding" if kind == "constant" else f"{kind}_optimization"
        setattr(rewrites, name, rewrites.AGGRESSIVE)
    # They find nothing to do in clients' graphs, and are a sixth of the time.
    rewrites.memory_optimization = rewrites.NO_MEM_OPT
    rewrites.experimental_conditional_code_motion = rewrites.OFF
    return compiled_computation_transformations.optimize_tensorflow_graphs(block, config)[0]


class Registered(NamedTuple):
    """A function in TensorFlow's table of functions, which has one for the whole process.

    Attributes:
      name: Its name there.
      num_outputs: How many tensors it gives.
      attributes: How TensorFlow is to execute it.
      library: The names of the functions that it calls.
    """

    name: str
    num_outputs: int
    attributes: tuple[Any, ...]
    library: Sequence[str]


def register(function: Any, name: str, library: Sequence[str]) -> Registered:
    """Puts a copy of a pruned function without captures into the table, for `call`.

    The function itself, whose graph of Python objects is large, is not needed any more.
    """
    definition = function_pb2.FunctionDef()
    definition.CopyFrom(function.function_def)
    definition.signature.name = name
    context.context().add_function_def(definition)
    config = tf.compat.v1.ConfigProto()
    config.CopyFrom(context.context().config)
    config.graph_options.rewrite_options.disable_meta_optimizer = True  # Executed as it is.
    attributes = ("executor_type", "", "config_proto", config.SerializeToString())
    return Registered(name, len(definition.signature.output_arg), attributes, library)


def forget(function: Registered) -> None:
    """Takes a function, and those that it calls, out of the table; nothing else does it."""
    for name in (function.name, *function.library):
        if context.context().has_function(name):
            context.context().remove_function(name)


def call(
    function: Registered, arguments: Sequence[Any], cancellation: CancellationManager
) -> list[Any]:
    """Calls a function on a list of tensors.

    `ConcreteFunction.__call__` spends a millisecond on binding names and on gradient tapes.
    """
    name, num_outputs, attributes, _ = function
    eager = context.context()
    return execute.execute_with_cancellation(
        name, num_outputs, list(arguments), attributes, eager, cancellation
    )


def eager_tensor(value: Any, dtype: tf.DType) -> tf.Tensor:
    """Returns a tensor of a NumPy value of this type, in half the time of `tf.constant`.

    TensorFlow shares the value's memory where it is aligned. Only what nobody can write to is
    shared: read-only arrays that no other array of NumPy's owns, as those of `emitter`.
    """
    if isinstance(value, np.ndarray) and (
        value.flags.writeable or value.base is None or isinstance(value.base, np.ndarray)
    ):
        value = value.copy()
    eager = context.context()
    eager.ensure_initialized()  # The first thing that TensorFlow does in a program may be this.
    return ops.EagerTensor(value, eager.device_name, dtype.as_datatype_enum)


def shape_of(tensor: tf.Tensor) -> tuple[int, ...]:
    """Returns an eager tensor's shape, without an object that costs more than the look at it."""
    return tensor._shape_tuple()


def has_container(operation: str) -> bool:
    """Whether an operation's resource lives in a container, under a name."""
    definition = op_def_registry.get(operation)
    return definition is not None and any(a.name == "container" for a in definition.attr)
