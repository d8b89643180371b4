"""From compiled building blocks to Python functions that execute them.

A block becomes a function (environment, run) -> value once; executing it then costs a few
dictionary look-ups beside TensorFlow. A lambda's value is a Python function (argument, run) ->
value.
"""

import functools
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import tensorflow as tf

from tff_het.backend import internals
from tff_het.backend.in_process import values
from tff_het.backend.in_process.graphs import MERGED, Graph, Traced
from tff_het.backend.in_process.threads import Function, Run
from tff_het.backend.in_process.values import AtClients
from tff_het.backend.names import tff

Environment = dict[str, Any]
Executed = Callable[[Environment, Run], Any]


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


class Part:
    """Some of a block's values, computed one after the other."""

    def __init__(
        self, values_of: list[tuple[str, Executed]], taken: Sequence[str], made: Sequence[str]
    ):
        """Takes the names that it reads from the environment, and those that others read of it."""
        self._values, self._taken, self._made = values_of, taken, made

    def __call__(self, env: Environment, run: Run) -> Environment:
        """Returns the values by name."""
        env = dict(env)
        for name, value in self._values:
            env[name] = value(env, run)
        return {name: env[name] for name in self._made}


class Merged(Part):
    """Values that no client works for: one call of TensorFlow instead of one for each graph.

    Most of the time of a call on small tensors is the way to TensorFlow and back.
    """

    def __init__(self, *args):
        super().__init__(*args)
        self._traced = Traced()
        # By number of clients and form of what is taken: which tensors are fed, the form of what is
        # made, and of which tensors: those taken, or from the last backwards those fetched.
        self._calls: dict[Any, tuple[list[int], Any, list[int]]] = {}

    def __call__(self, env: Environment, run: Run) -> Environment:
        if run.num_clients > MERGED or run.library is not None:
            return super().__call__(env, run)
        tensors: list[tf.Tensor] = []
        form = values.form_of([env[name] for name in self._taken], tensors)

        def trace(library: list[str]) -> tuple[list[tf.Tensor], list[tf.Tensor]]:
            taken = [tf.compat.v1.placeholder(tensor.dtype) for tensor in tensors]
            own = dict(zip(self._taken, values.filled(form, iter(taken)), strict=True))
            own = Part.__call__(self, own, run.tracing(library))
            found: list[tf.Tensor] = []
            made = values.form_of(list(own.values()), found)
            places = {id(tensor): place for place, tensor in enumerate(taken)}
            fetched = list({id(t): t for t in found if id(t) not in places}.values())
            places |= {id(tensor): ~place for place, tensor in enumerate(fetched)}
            fed = [place for place, tensor in enumerate(taken) if tensor.consumers()]
            self._calls[key] = fed, made, [places[id(tensor)] for tensor in found]
            return [taken[place] for place in fed], fetched

        # A value that the server gives to all of them has as many tensors as there are clients.
        key = run.num_clients, form
        function = self._traced.get(key, trace)
        fed, made, places = self._calls[key]
        try:
            fetched = internals.call(function, [tensors[place] for place in fed], run.cancellation)
        except tf.errors.OpError:
            return super().__call__(env, run.again())  # Graph by graph: its error names the client.
        found = (tensors[place] if place >= 0 else fetched[~place] for place in places)
        return dict(zip(self._made, values.filled(made, found), strict=True))


def compile_block(block: Any, graph: Callable[[Any], Graph]) -> Executed:
    """Returns the function that executes a block.

    Args:
      block: A building block in call-dominant form.
      graph: Returns the `Graph` of a TensorFlow block, from a cache.

    Raises:
      NotImplementedError: If it holds what this runtime does not execute, by name.
    """
    framework, compiled = tff.framework, functools.partial(compile_block, graph=graph)
    if isinstance(block, framework.Reference):
        name = block.name
        return lambda env, run: env[name]
    if isinstance(block, framework.Block):
        parts, result = _parts(block, graph), compiled(block.result)

        def run_block(env: Environment, run: Run) -> Any:
            env = dict(env)
            for part in parts:
                env.update(part(env, run))
            return result(env, run)

        return run_block
    if isinstance(block, framework.Struct):
        elements = [compiled(element) for element in block]
        return lambda env, run: [element(env, run) for element in elements]
    if isinstance(block, framework.Selection):
        source, index = compiled(block.source), block.as_index()
        return lambda env, run: source(env, run)[index]
    if isinstance(block, framework.Lambda):
        name, body = block.parameter_name, compiled(block.result)
        kind: Any = Plain if _is_plain(block.result) else lambda function: function
        # Without a parameter, nothing in the body looks for the name None.
        return lambda env, _: kind(lambda argument, run: body({**env, name: argument}, run))
    if isinstance(block, framework.CompiledComputation):
        function = TensorFlow(graph(block), block.type_signature.result)
        return lambda env, run: function
    if isinstance(block, framework.Literal):
        value, dtype = block.value, block.type_signature.dtype
        return lambda env, run: tf.convert_to_tensor(value, dtype)
    if isinstance(block, framework.Intrinsic) and block.uri in _INTRINSICS:
        intrinsic = _INTRINSICS[block.uri]
        return lambda env, run: intrinsic
    if isinstance(block, framework.Call):
        called = compiled(block.function)
        if block.argument is None:
            return lambda env, run: called(env, run)(None, run)
        argument = compiled(block.argument)
        return lambda env, run: called(env, run)(argument(env, run), run)
    what = getattr(block, "uri", f"{type(block).__name__} blocks")
    raise NotImplementedError(f"The in-process runtime does not execute {what}. {values.ELSEWHERE}")


def _parts(block: Any, graph: Callable[[Any], Graph]) -> list[Part]:
    """Returns what computes a block's values: clients' work, and what lies between."""
    framework = tff.framework
    parts: list[Part] = []
    wanted = {one.name for one in _inside(block.result) if isinstance(one, framework.Reference)}
    for is_work, group in itertools.groupby(
        reversed(block.locals), lambda own: _is_work(own[1], graph)
    ):
        own = list(group)[::-1]
        made = [name for name, _ in own if name in wanted]
        inside = [one for _, value in own for one in _inside(value)]
        names = {one.name for one in inside if isinstance(one, framework.Reference)}
        # Names are unique: those of parameters and of other blocks are not looked up outside.
        names -= {name for name, _ in own}
        names -= {one.parameter_name for one in inside if isinstance(one, framework.Lambda)}
        names -= {n for one in inside if isinstance(one, framework.Block) for n, _ in one.locals}
        graphs = sum(isinstance(one, framework.CompiledComputation) for one in inside)
        kind = Merged if graphs > 1 and not is_work else Part
        values_of = [(name, compile_block(value, graph)) for name, value in own]
        parts.append(kind(values_of, sorted(names), made))
        wanted |= names
    return parts[::-1]


def _inside(block: Any) -> Iterator[Any]:
    """Yields a block and all that are in it."""
    yield block
    for child in block.children():
        yield from _inside(child)


def _is_work(block: Any, graph: Callable[[Any], Graph]) -> bool:
    """Whether clients compute something that is worth a thread's while: loops, or we cannot say."""
    framework = tff.framework
    if not isinstance(block, framework.Call) or not isinstance(block.function, framework.Intrinsic):
        return False
    function = block.argument
    if _INTRINSICS.get(block.function.uri) is _map and isinstance(function, framework.Struct):
        function = function[0]
    elif block.function.uri != "federated_eval_at_clients":
        return False
    if isinstance(function, framework.CompiledComputation):
        return graph(function).has_loops
    return not (isinstance(function, framework.Lambda) and _is_plain(function.result))


def _is_plain(block: Any) -> bool:
    if isinstance(block, tff.framework.Selection):
        return _is_plain(block.source)
    if isinstance(block, tff.framework.Struct):
        return all(map(_is_plain, block))
    return isinstance(block, tff.framework.Reference)


def _map(argument, run):
    function, value = argument
    if isinstance(function, Plain) or run.library is not None:
        return AtClients([function(member, run) for member in value.values])
    return AtClients(run.map_clients(function, value.values))


def _aggregate(argument, run):
    """In the clients' order, so that the result does not depend on the threads."""
    value, accumulator, accumulate, merge, report = argument
    del merge  # All accumulation happens here.
    if isinstance(accumulate, TensorFlow):
        return report(accumulate.fold(accumulator, value.values, run), run)
    for member in value.values:
        accumulator = accumulate([accumulator, member], run)
    return report(accumulator, run)


def _zip_clients(argument, run):
    def pick(value, client: int):
        if isinstance(value, list):
            return [pick(element, client) for element in value]
        return value.values[client]

    return AtClients([pick(argument, client) for client in range(run.num_clients)])


def _to_all(argument, run):
    return AtClients([argument] * run.num_clients)


def _unchanged(argument, run):
    return argument


_INTRINSICS: dict[str, Function] = {
    "federated_aggregate": _aggregate,
    "federated_apply": lambda argument, run: argument[0](argument[1], run),
    "federated_broadcast": _to_all,
    "federated_eval_at_clients": lambda function, run: _map([function, _to_all(None, run)], run),
    "federated_eval_at_server": lambda function, run: function(None, run),
    "federated_map": _map,
    "federated_map_all_equal": _map,
    "federated_value_at_clients": _to_all,
    "federated_value_at_server": _unchanged,
    "federated_zip_at_clients": _zip_clients,
    "federated_zip_at_server": _unchanged,
}
