"""From compiled building blocks to Python functions that execute them.

A block becomes a function (environment, run) -> value once; executing it then costs a few
dictionary look-ups beside TensorFlow. A lambda's value is a Python function (argument, run) ->
value.
"""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import tensorflow as tf

from tff_het.backend.in_process import values
from tff_het.backend.in_process.graphs import Caller, Graph
from tff_het.backend.in_process.values import AllEqual, AtClients
from tff_het.backend.names import tff

Environment = dict[str, Any]
Function = Callable[[Any, "Run"], Any]


class Run(Caller, Protocol):
    """What one execution knows, beside the thread that asks.

    Attributes:
      num_clients: How many clients the arguments hold.
    """

    @property
    def num_clients(self) -> int: ...

    def map_clients(self, function: Function, arguments: Sequence[Any]) -> list[Any]:
        """Calls the function for each client; results are in the clients' order."""


class Plain:
    """A function that only moves values about: not worth a thread's while."""

    def __init__(self, function: Function):
        self._function = function

    def __call__(self, argument: Any, run: Run) -> Any:
        return self._function(argument, run)


class TensorFlow:
    """A function that is one TensorFlow graph."""

    def __init__(self, graph: Graph, result_type: tff.Type):
        self._graph = graph
        self._result_type = result_type

    def __call__(self, argument: Any, run: Run) -> Any:
        flat = [] if argument is None else list(values.flatten(argument))
        return values.pack(iter(self._graph(flat, run)), self._result_type)

    def fold(self, accumulator: Any, members: Sequence[Any], run: Run) -> Any:
        """Calls it on (accumulator, member) for one member after the other."""
        flat = [list(values.flatten(member)) for member in members]
        folded = self._graph.fold(list(values.flatten(accumulator)), flat, run)
        return values.pack(iter(folded), self._result_type)


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
        kind: Any = Plain if _is_plain(block.result) else lambda function: function

        def make_function(env: Environment, run: Run) -> Function:
            del run
            if name is None:
                return kind(lambda argument, run: body(env, run))
            return kind(lambda argument, run: body({**env, name: argument}, run))

        return make_function
    if isinstance(block, framework.CompiledComputation):
        function = TensorFlow(graph(block), block.type_signature.result)
        return lambda env, run: function
    if isinstance(block, framework.Literal):
        literal = tf.convert_to_tensor(block.value, block.type_signature.dtype)
        return lambda env, run: literal
    if isinstance(block, framework.Intrinsic):
        intrinsic = _INTRINSICS.get(block.uri)
        if intrinsic is None:
            raise NotImplementedError(
                f"The in-process runtime does not execute {block.uri}. {values.ELSEWHERE}"
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
        f"The in-process runtime does not execute {type(block).__name__} blocks. {values.ELSEWHERE}"
    )


def _index(selection) -> int:
    if selection.index is not None:
        return selection.index
    names = tff.structure.name_list_with_nones(selection.source.type_signature)
    return names.index(selection.name)


def _is_plain(block: Any) -> bool:
    if isinstance(block, tff.framework.Selection):
        return _is_plain(block.source)
    if isinstance(block, tff.framework.Struct):
        return all(map(_is_plain, block))
    return isinstance(block, tff.framework.Reference)


def _members(value: AtClients | AllEqual, run: Run) -> list[Any]:
    return value.values if isinstance(value, AtClients) else [value.value] * run.num_clients


def _map(argument, argument_type, run):
    function, value = argument
    if isinstance(function, Plain):
        return AtClients([function(member, run) for member in _members(value, run)])
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
    members = _members(value, run)
    if isinstance(accumulate, TensorFlow):
        return report(accumulate.fold(accumulator, members, run), run)
    for member in members:
        accumulator = accumulate([accumulator, member], run)
    return report(accumulator, run)


def _zip_clients(argument, argument_type, run):
    def all_equal(value) -> bool:
        return all(map(all_equal, value)) if _is_struct(value) else isinstance(value, AllEqual)

    def pick(value, client: int):
        if _is_struct(value):
            return [pick(element, client) for element in value]
        return value.value if isinstance(value, AllEqual) else value.values[client]

    if all_equal(argument):
        return AllEqual(pick(argument, 0))
    return AtClients([pick(argument, client) for client in range(run.num_clients)])


def _is_struct(value) -> bool:
    return isinstance(value, list)


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
    "federated_value_at_clients": _to_all,
    "federated_value_at_server": _unchanged,
    "federated_zip_at_clients": _zip_clients,
    "federated_zip_at_server": _unchanged,
}
