"""From compiled building blocks to Python functions that execute them.

A block becomes a function (environment, run) -> value once; executing it then costs a few
dictionary look-ups beside TensorFlow. A lambda's value is a Python function (argument, run) -> value.
"""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import tensorflow as tf
import tensorflow_federated as tff

from tff_het.simulation.in_process import values
from tff_het.simulation.in_process.graphs import Graph
from tff_het.simulation.in_process.values import AllEqual, AtClients

Environment = dict[str, Any]
Function = Callable[[Any, "Run"], Any]


class Run(Protocol):
    """What one execution knows.

    Attributes:
      num_clients: How many clients the arguments hold.
      slot: The slot of the thread that asks, for graphs with resources.
    """

    num_clients: int

    @property
    def slot(self) -> int: ...

    def map_clients(self, function: Function, arguments: Sequence[Any]) -> list[Any]:
        """Calls the function for each client; results are in the clients' order."""


def compile_block(block: Any, graph: Callable[[Any], Graph]) -> Callable[[Environment, Run], Any]:
    """Returns the function that executes a block.

    Args:
      block: A building block in call-dominant form.
      graph: Returns the `Graph` of a TensorFlow block, from a cache.

    Raises:
      NotImplementedError: If it holds what this runtime does not execute, by name.
    """
    framework = tff.framework

    def compiled(inner: Any) -> Callable[[Environment, Run], Any]:
        return compile_block(inner, graph)

    if isinstance(block, framework.Reference):
        name = block.name
        return lambda env, run: env[name]
    if isinstance(block, framework.Block):
        local_values = [(name, compiled(value)) for name, value in block.locals]
        result = compiled(block.result)

        def run_block(env: Environment, run: Run) -> Any:
            env = dict(env)
            for name, value in local_values:
                env[name] = value(env, run)
            return result(env, run)

        return run_block
    if isinstance(block, framework.Struct):
        elements = [compiled(element) for element in block]
        return lambda env, run: [element(env, run) for element in elements]
    if isinstance(block, framework.Selection):
        source, index = compiled(block.source), _index(block)
        return lambda env, run: source(env, run)[index]
    if isinstance(block, framework.Lambda):
        name, body = block.parameter_name, compiled(block.result)

        def make_function(env: Environment, run: Run) -> Function:
            del run
            if name is None:
                return lambda argument, run: body(env, run)
            return lambda argument, run: body({**env, name: argument}, run)

        return make_function
    if isinstance(block, framework.CompiledComputation):
        function = _tensorflow(block, graph)
        return lambda env, run: function
    if isinstance(block, framework.Literal):
        literal = tf.convert_to_tensor(block.value)
        return lambda env, run: literal
    if isinstance(block, framework.Intrinsic):
        intrinsic = _INTRINSICS.get(block.uri)
        if intrinsic is None:
            raise NotImplementedError(
                f"The in-process runtime does not execute {block.uri}. Use TFF's worker for it."
            )
        argument_type = block.type_signature.parameter
        return lambda env, run: lambda argument, run: intrinsic(argument, argument_type, run)
    if isinstance(block, framework.Call):
        called = compiled(block.function)
        if block.argument is None:
            return lambda env, run: called(env, run)(None, run)
        argument = compiled(block.argument)
        return lambda env, run: called(env, run)(argument(env, run), run)
    raise NotImplementedError(
        f"The in-process runtime does not execute {type(block).__name__} blocks. Use TFF's worker "
        "for them."
    )


def _index(selection) -> int:
    if selection.index is not None:
        return selection.index
    names = [name for name, _ in tff.structure.to_elements(selection.source.type_signature)]
    return names.index(selection.name)


def _tensorflow(block, graph: Callable[[Any], Graph]) -> Function:
    imported = graph(block)
    result_type = block.type_signature.result

    def call(argument: Any, run: Run) -> Any:
        flat = [] if argument is None else list(values.flatten(argument))
        return values.pack(iter(imported(run.slot, flat)), result_type)

    return call


def _members(value: AtClients | AllEqual, run: Run) -> list[Any]:
    return value.values if isinstance(value, AtClients) else [value.value] * run.num_clients


def _map(argument, argument_type, run):
    function, value = argument
    return AtClients(run.map_clients(function, _members(value, run)))


def _map_all_equal(argument, argument_type, run):
    function, value = argument
    return AllEqual(function(value.value, run))


def _apply(argument, argument_type, run):
    function, value = argument
    return function(value, run)


def _aggregate(argument, argument_type, run):
    """In the clients' order, so that the result does not depend on the threads."""
    value, accumulator, accumulate, merge, report = argument
    del merge  # All accumulation happens here.
    for member in _members(value, run):
        accumulator = accumulate([accumulator, member], run)
    return report(accumulator, run)


def _zip_clients(argument, argument_type, run):
    def all_equal(value) -> bool:
        return all(map(all_equal, value)) if isinstance(value, list) else _is_all_equal(value)

    def pick(value, client: int):
        if isinstance(value, list):
            return [pick(element, client) for element in value]
        return value.value if isinstance(value, AllEqual) else value.values[client]

    if all_equal(argument):
        return AllEqual(pick(argument, 0))
    return AtClients([pick(argument, client) for client in range(run.num_clients)])


def _is_all_equal(value) -> bool:
    return isinstance(value, AllEqual)


def _select(argument, argument_type, run):
    """Each client gets the sequence of `select_fn(server_value, key)` of its own keys."""
    keys, max_key, server_value, select_fn = argument
    selected_type = argument_type[3].result

    def slices(client_keys, run):
        for key in client_keys.numpy():
            if not 0 <= key < max_key.numpy():
                raise ValueError(f"A key must lie in [0, {max_key.numpy()}), found {key}.")
        elements = [
            values.emit(select_fn([server_value, tf.constant(key)], run), selected_type)
            for key in client_keys.numpy()
        ]
        return values.sequence(elements, tff.SequenceType(selected_type))

    return AtClients(run.map_clients(slices, _members(keys, run)))


def _unchanged(argument, argument_type, run):
    return argument


def _to_all(argument, argument_type, run):
    return AllEqual(argument)


def _eval_at_clients(argument, argument_type, run):
    return AtClients(run.map_clients(argument, [None] * run.num_clients))


def _eval_at_server(argument, argument_type, run):
    return argument(None, run)


_INTRINSICS: dict[str, Callable[[Any, Any, Run], Any]] = {
    "federated_aggregate": _aggregate,
    "federated_apply": _apply,
    "federated_broadcast": _to_all,
    "federated_eval_at_clients": _eval_at_clients,
    "federated_eval_at_server": _eval_at_server,
    "federated_map": _map,
    "federated_map_all_equal": _map_all_equal,
    "federated_select": _select,
    "federated_value_at_clients": _to_all,
    "federated_value_at_server": _unchanged,
    "federated_zip_at_clients": _zip_clients,
    "federated_zip_at_server": _unchanged,
}
