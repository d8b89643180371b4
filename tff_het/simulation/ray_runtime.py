"""Executes a round's clients on the nodes of a Ray cluster.

    with runtime.use("ray"):
        result = loop.train(process, population, schedule, settings)

Each node has one actor, which executes `client_update` on its part of the cohort with the
in-process runtime. This process collects the results in the clients' order and executes
`server_update`. So the results are those of `in_process`, however many nodes there are and
whichever of them are lost: the others compute a lost node's clients again.
"""

import contextlib
import copy
import functools
import importlib
import logging
import pickle
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from tff_het.backend import in_process, internals, names
from tff_het.backend.in_process import values
from tff_het.backend.names import tff
from tff_het.learning import example_files
from tff_het.learning.process import FederatedProcess, ProcessOutput, ServerState
from tff_het.numbers import Number
from tff_het.simulation import feeding, ray_cluster

DEADLINE_SECONDS = 60.0
_START_SECONDS = 300.0  # Actors import TensorFlow, on machines that may be busy.
# More than Ray keeps out of the object store: a sign of life shows that the node's store answers.
_SIGN_BYTES = 2**18


class NoNodeLeft(ConnectionError):  # noqa: N818
    """No node answers; the message says why each was lost."""


class _Node(NamedTuple):
    """A node's actor; `born` is its first sign of life."""

    name: str
    threads: int
    actor: Any
    born: Any


class Placed:
    """Something that each node keeps from when it first needs it, such as a client's examples.

    Nodes have it from this process alone. Of an object that several of them hold, Ray takes any
    copy, and waits for a minute if that is on a node that has just stopped.
    """

    def __init__(self, value: Any):
        self.num_bytes = sum(array.nbytes for array in tf.nest.flatten(value))
        self._value = value
        self._kept: dict[Any, Any] = {}  # By actor.

    def at(self, node: _Node) -> Any:
        """Returns a reference to what `_Host.keep` gives."""
        if node.actor not in self._kept:
            self._kept[node.actor] = node.actor.keep.remote(self._value)
        return self._kept[node.actor]


class _Host:
    """Computes parts of rounds: an actor, in a process of its own on a node."""

    def __init__(self, clients_in_parallel: int):
        self._ray = importlib.import_module("ray")
        self._context = in_process.open_context(clients_in_parallel)
        # TensorFlow starts, with one thread an operation. If optimizing a graph started it, that
        # would be a thread a core, and round differently.
        tf.constant(0)
        self._loaded = functools.lru_cache(maxsize=8)(
            lambda content: tff.framework.deserialize_computation(pickle.loads(content))
        )

    def sign(self) -> np.ndarray:
        return np.zeros(_SIGN_BYTES, np.uint8)

    def keep(self, value: Any) -> Any:
        """Puts something into this node's part of the object store; returns where it is."""
        return self._ray.put(value)

    def run(self, download: Any, clients: Any, computation: Any, *examples: Any) -> Any:
        """Returns what a computation gives for each client; or its error.

        Args:
          download: What all clients get.
          clients: Each client's index, seed and state.
          computation: What `keep` gave for the computation.
          *examples: What it gave for each client's examples.
        """
        content, *all_columns = self._ray.get([computation, *examples])
        given = [
            [client, seed, columns, state]
            for (client, seed, state), columns in zip(clients, all_columns, strict=True)
        ]
        try:
            with tff.framework.get_context_stack().install(self._context):
                return _plain(self._loaded(content.tobytes())(_tensors(download), _tensors(given)))
        except Exception as error:  # The computation's; what Ray raises means that a node is lost.
            return error


class RayContext(tff.framework.SyncContext, feeding.Feeding):
    """Executes clients on the nodes of a cluster, and everything else in this process."""

    def __init__(
        self, ray: Any, local: tff.framework.SyncContext, deadline: float, threads: int | None
    ):
        self._ray, self._local, self._deadline, self._threads = ray, local, deadline, threads
        self._nodes: dict[str, _Node] = {}
        self._lost: dict[str, str] = {}
        self._last: tuple[Any, Any] = None, None  # The last computation, as such and placed.

    def invoke(self, comp: Any, arg: Any) -> Any:
        return self._local.invoke(comp, arg)

    def place(self, client: int, columns: Mapping[str, Any]) -> Placed:
        """As `Feeding`."""
        return Placed(_plain(columns))

    def run_round(
        self, process: FederatedProcess, state: ServerState, clients: Sequence[feeding.ClientInput]
    ) -> ProcessOutput:
        """As `Feeding`: `client_update` over the nodes, then `server_update` here.

        Raises:
            NoNodeLeft: If no node answers within the deadline, or all that began certain clients
                were lost.
            tf.errors.OpError: What TensorFlow raised in a client's work.
        """
        spec, update = process.model.example_spec, process.client_update
        placed = [
            one.examples
            if isinstance(one.examples, Placed)
            else self.place(one.client, example_files.checked(one.examples, spec))
            for one in clients
        ]
        given = [_plain((np.int32(one.client), one.seed, one.state)) for one in clients]
        if self._last[0] is not update:
            content = pickle.dumps(tff.framework.serialize_computation(update))
            self._last = update, Placed(np.frombuffer(content, np.uint8))
        download = _plain(process.download(state))
        emit = values.emitter(update.type_signature.result.member)
        results: dict[int, Any] = {}
        # All nodes may be lost in one round, even one after another, but not again and again.
        chances = len(self.serving()) + 1
        while left := [i for i in range(len(clients)) if i not in results]:
            if not chances:
                raise NoNodeLeft(
                    f"{self._how_lost()} A client may need more memory than they have."
                )
            chances -= 1
            calls = {}
            for node, part in _split(left, [one.num_bytes for one in placed], self.serving()):
                kept = [one.at(node) for one in (self._last[1], *(placed[i] for i in part))]
                call = node.actor.run.remote(download, [given[i] for i in part], *kept)
                calls[call] = node, part
            for part, found in self._ended(calls):
                results |= {i: emit(_tensors(one)) for i, one in zip(part, found, strict=True)}
        sent = [results[i] for i in range(len(clients))]
        combined = feeding.server_half(process, state, sent)
        # States stay with the caller, and would keep the store full.
        return combined._replace(client_states=copy.deepcopy(combined.client_states))

    def serving(self, patience: float | None = None) -> list[_Node]:
        """Returns the nodes whose actor answers, and starts actors where there are none.

        Args:
            patience: For how many seconds to wait for all nodes; by default for the first one.

        Raises:
            NoNodeLeft: If none answers in this time, by default the deadline; with patience, also
                if the actors of all nodes fail to start.
        """
        end = time.monotonic() + (patience or self._deadline)
        while True:
            self._begin()
            born = {node.born: node for node in self._nodes.values()}
            ready = self._ray.wait([*born], num_returns=len(born), timeout=0)[0] if born else []
            serving = [born[one] for one in ready if self._reply(born[one], one) is not None]
            is_late = time.monotonic() > end or (patience and 0 < len(ready) == len(born))
            if serving and (is_late or patience is None):
                return serving
            if is_late:
                raise NoNodeLeft(self._how_lost())
            time.sleep(0.05)

    def _begin(self) -> None:
        strategy = self._ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy
        for found in self._ray.nodes():
            name = f"{found['NodeManagerAddress']} ({found['NodeID'][:8]})"
            cores = int(found["Resources"].get("CPU", 0))
            if found["Alive"] and cores and name not in self._nodes:
                threads = self._threads or cores
                options = {
                    "num_cpus": cores,
                    "max_concurrency": 2,  # A part, and a sign of life.
                    "scheduling_strategy": strategy(found["NodeID"], soft=False),
                }
                actor = self._ray.remote(_Host).options(**options).remote(threads)
                self._nodes[name] = _Node(name, threads, actor, actor.sign.remote())

    def _ended(self, calls: dict[Any, tuple[_Node, list[int]]]) -> Iterator[tuple[list[int], Any]]:
        """Yields each part with what its node gave; leaves out those of lost nodes."""
        patience = self._deadline / 2  # Without a result, then without a sign of life.
        while calls:
            done, _ = self._ray.wait([*calls], timeout=patience)
            for call in done:
                node, part = calls.pop(call)
                found = self._reply(node, call)
                if isinstance(found, Exception):
                    raise found
                if found is not None:
                    yield part, found
            if not done:
                signs = {node.actor.sign.remote(): call for call, (node, _) in calls.items()}
                for sign in self._ray.wait([*signs], num_returns=len(signs), timeout=patience)[1]:
                    node, _ = calls.pop(signs[sign])
                    self._lose(node, f"no sign of life within {self._deadline:g} s")

    def _reply(self, node: _Node, reply: Any) -> Any:
        """What a node has replied; None, and the node is lost, if it cannot any more."""
        try:
            return self._ray.get(reply)
        except self._ray.exceptions.RayError as error:
            self._lose(node, " ".join(str(error).split()))
            return None

    def _lose(self, node: _Node, why: str) -> None:
        logging.warning("Lost a node, its clients are computed again: %s: %s", node.name, why)
        self._lost[node.name] = why
        self._nodes.pop(node.name, None)
        self._ray.kill(node.actor)

    def close(self) -> None:
        """Ends the actors."""
        for node in self._nodes.values():
            self._ray.kill(node.actor)

    def _how_lost(self) -> str:
        each = "; ".join(f"{name}: {why}" for name, why in self._lost.items())
        return (
            f"No node is left ({each or 'none has begun'}). A run with checkpoints goes on from "
            "the last of them when it is started again."
        )


@contextlib.contextmanager
def use(
    *, clients_in_parallel: int | None = None, deadline: float = DEADLINE_SECONDS
) -> Iterator[RayContext]:
    """Opens a runtime (see `runtime`) whose clients are on the nodes of a Ray cluster.

    Args:
        clients_in_parallel: How many clients each node computes at the same time, at least 1; the
            number of its cores by default.
        deadline: After how many seconds without a sign of life a node is lost. It may compute for
            as long as it takes. A node that is there again is given clients again.

    Raises:
        ValueError: As `ray_cluster.connected`; if the installed TensorFlow or TFF is not the one of
            `in_process`, or an argument is out of range.
        ConnectionError: As `ray_cluster.connected`.
        NoNodeLeft: If no node answers; in a round, see `RayContext.run_round`.
    """
    if (reason := names.unfit()) is not None:
        raise ValueError(f"The runtime ray is not to be had, since {reason}.")
    Number(low=0, above=True).check("deadline", deadline)
    with (
        in_process.in_process(clients_in_parallel=clients_in_parallel) as local,
        ray_cluster.connected() as ray,
        contextlib.closing(RayContext(ray, local, deadline, clients_in_parallel)) as context,
    ):
        context.serving(_START_SECONDS)
        with tff.framework.get_context_stack().install(context):
            yield context


def _plain(value: Any) -> Any:
    """The value as lists of arrays, in its type's order: nodes need not know a method's classes."""
    if isinstance(value, Mapping):
        value = list(value.values())
    return [_plain(one) for one in value] if isinstance(value, list | tuple) else np.asarray(value)


def _tensors(value: Any) -> Any:
    """What `_plain` gave, as tensors in the object store's memory, which stays taken with them."""

    def tensor(array: np.ndarray) -> tf.Tensor:
        # Through a view, since an array on an array is copied: somebody might write to that.
        view = np.asarray(array.data)
        return internals.eager_tensor(view, tf.as_dtype(view.dtype))

    return tf.nest.map_structure(tensor, value)


def _split(
    places: Sequence[int], sizes: Sequence[int], nodes: Sequence[_Node]
) -> list[tuple[_Node, list[int]]]:
    """Assigns clients, the largest first, each to the node whose threads have the least to do."""
    parts: list[list[int]] = [[] for _ in nodes]
    loads = [(0.0, 0.0)] * len(nodes)
    for place in sorted(places, key=lambda place: -sizes[place]):
        least = loads.index(min(loads))
        (size, count), threads = loads[least], nodes[least].threads
        parts[least].append(place)
        loads[least] = (size + sizes[place] / threads, count + 1 / threads)
    return [(node, part) for node, part in zip(nodes, parts, strict=True) if part]
