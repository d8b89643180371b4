"""All that is used beyond the public interfaces of TFF and TensorFlow.

With other versions than `names.unfit` accepts, it may have moved or may mean something else.
"""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import tensorflow as tf
from tensorflow.core.framework import function_pb2
from tensorflow.python.eager import context, execute
from tensorflow.python.eager.cancellation import CancellationManager
from tensorflow.python.framework import op_def_registry
from tensorflow_federated.python.core.environments.tensorflow_backend import (
    compiled_computation_transformations,
)
from tensorflow_federated.python.core.impl.compiler.array import (
    is_compatible_dtype,
    is_compatible_shape,
)

__all__ = [
    "CancellationManager",
    "Registered",
    "call",
    "forget",
    "has_container",
    "has_started",
    "is_compatible_dtype",
    "is_compatible_shape",
    "optimized",
    "register",
]


def has_started() -> bool:
    """Whether TensorFlow has done anything in this process, so that its threads are there."""
    return context.context()._initialized


def optimized(block: Any) -> Any:
    """Optimizes the TensorFlow graph of a block, and leaves its loops in functions.

    TFF's own compiler does the same, but breaks loops up into single operations, which
    `rewriting.in_sequence` could not tell from others any more.
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
    """A function in TensorFlow's table of functions, which has one for the whole process."""

    name: str
    num_outputs: int


def register(function: Any, name: str) -> Registered:
    """Puts a copy of a pruned function without captures into the table, for `call`.

    The function itself, whose graph of Python objects is large, is not needed any more.
    """
    definition = function_pb2.FunctionDef()
    definition.CopyFrom(function.function_def)
    definition.signature.name = name
    context.context().add_function_def(definition)
    return Registered(name, len(definition.signature.output_arg))


def forget(names: Iterable[str]) -> None:
    """Takes functions out of the table, where they are; nothing else does it."""
    for name in names:
        if context.context().has_function(name):
            context.context().remove_function(name)


def call_attributes() -> tuple[Any, ...]:
    """Returns how TensorFlow is to execute a function, for `call`: as it is."""
    config = tf.compat.v1.ConfigProto()
    config.CopyFrom(context.context().config)
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    return ("executor_type", "", "config_proto", config.SerializeToString())


def call(
    function: Registered,
    arguments: Sequence[Any],
    attributes: tuple[Any, ...],
    cancellation: CancellationManager | None,
) -> list[Any]:
    """Calls a function on a list of tensors.

    `ConcreteFunction.__call__` spends a millisecond on binding names and on gradient tapes.
    """
    eager = context.context()
    if cancellation is None:
        return execute.execute(
            function.name, function.num_outputs, list(arguments), attributes, eager
        )
    return execute.execute_with_cancellation(
        function.name, function.num_outputs, list(arguments), attributes, eager, cancellation
    )


def has_container(operation: str) -> bool:
    """Whether an operation's resource lives in a container, under a name."""
    definition = op_def_registry.get(operation)
    return definition is not None and any(a.name == "container" for a in definition.attr)
