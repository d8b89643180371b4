"""What a process takes of each client in a round."""

import collections
import contextlib
import math
import os
import resource
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from tff_het import seeding
from tff_het.backend.names import tff
from tff_het.clients import Population, mapped
from tff_het.learning import example_files
from tff_het.learning.client_work import ClientState
from tff_het.learning.process import FederatedProcess, ProcessOutput, ServerState
from tff_het.simulation.several_workers import SeveralWorkersContext
from tff_het.simulation.shared_examples import SharedFile


class ClientInput(NamedTuple):
    """One client of a cohort.

    Attributes:
      client: Its index in the population.
      seed: int32 [2], for this client and round.
      examples: Columns [n, ...], arrays or what `Prepared` makes of them.
      state: Its state.
    """

    client: int
    seed: np.ndarray
    examples: Any
    state: ClientState


def cohort_inputs(
    cohort: Sequence[int],
    round_num: int,
    seed: int,
    examples: "Prepared",
    state_of: Callable[[int], ClientState],
) -> list[ClientInput]:
    """Returns what the clients of a round take part with.

    Args:
      cohort: Their indices.
      round_num: The round, counted from 0.
      seed: The seed of the run.
      examples: Client -> its training examples.
      state_of: Client -> its state.
    """
    return [
        ClientInput(
            client=client,
            seed=seeding.stateless_seed(seed, seeding.CLIENT_WORK, round_num, client),
            examples=examples[client],
            state=state_of(client),
        )
        for client in cohort
    ]


class Prepared:
    """The clients' training examples in the form in which the runtime takes them best.

    In this process that is TensorFlow's tensors: TensorFlow copies arrays at each call. They stay
    in memory, the most recently used of them, unless memory is not to grow with the population.
    Several workers that share a folder find them there.
    """

    def __init__(
        self, process: FederatedProcess, population: Population, *, in_memory: bool = True
    ):
        """Prepares nothing yet.

        Args:
          process: What trains on the examples.
          population: The clients.
          in_memory: Whether tensors of up to 2 GiB are kept, or the last client's alone.
        """
        self._in_memory = in_memory
        self._spec = process.model.example_spec
        self._population = population
        self._tensors: collections.OrderedDict[int, Mapping[str, Any]] = collections.OrderedDict()
        self._bytes = 0
        self._files: dict[int, SharedFile] = {}

    def __getitem__(self, client: int) -> Mapping[str, Any] | SharedFile:
        """Returns a client's columns, or where they stand.

        Raises:
          ValueError: If they are not those of the process's model.
        """
        context = tff.framework.get_context_stack().current
        if isinstance(context, SeveralWorkersContext) and context.shared_examples is not None:
            if client not in self._files:
                columns = self._fetched(client)
                self._files[client] = context.shared_examples.put(client, columns, self._spec)
            return self._files[client]
        if isinstance(context, SeveralWorkersContext) or _reads_files():
            return self._fetched(client)
        if client not in self._tensors:
            columns = example_files.checked(self._fetched(client), self._spec)
            self._tensors[client] = tf.nest.map_structure(tf.convert_to_tensor, columns)
            self._bytes += _size(columns)
            allowed = _KEPT_BYTES if self._in_memory else 0
            while self._bytes > allowed and len(self._tensors) > 1:
                self._bytes -= _size(self._tensors.popitem(last=False)[1])
        self._tensors.move_to_end(client)
        return self._tensors[client]

    def _fetched(self, client: int) -> Mapping[str, np.ndarray]:
        columns = self._population[client].train
        mapped.fetch(columns)
        return columns


_KEPT_BYTES = 2 * 2**30


def _size(columns: Mapping[str, Any]) -> int:
    return sum(
        tf.as_dtype(column.dtype).size * math.prod(column.shape) for column in columns.values()
    )


def _reads_files() -> bool:
    return getattr(tff.framework.get_context_stack().current, "reads_files", False)


def run_round(
    process: FederatedProcess, state: ServerState, clients: Sequence[ClientInput]
) -> ProcessOutput:
    """Runs `process.next`, giving examples in the form in which the runtime takes them best.

    A runtime with `reads_files` gets them as files in memory. They have no name in
    the file system, so nothing is left of them, however the program ends. Several workers
    get the two halves of `next`.

    Raises:
      ValueError: If a client's examples are not those of the process's model.
    """
    context = tff.framework.get_context_stack().current
    if isinstance(context, SeveralWorkersContext):
        return _run_halves(context, process, state, clients)
    with contextlib.ExitStack() as stack:
        examples: list[Any]
        spec = process.model.example_spec
        if _reads_files():
            process = process.reading_files
            _allow_open_files(len(clients))
            examples = [
                stack.enter_context(_memory_file(example_files.to_bytes(client.examples, spec)))
                for client in clients
            ]
        else:
            examples = [example_files.checked(client.examples, spec) for client in clients]
        return process.next(state, _arguments(clients, examples))


def _run_halves(
    context: SeveralWorkersContext,
    process: FederatedProcess,
    state: ServerState,
    clients: Sequence[ClientInput],
) -> ProcessOutput:
    """`client_update` over the workers, then `server_update` here."""
    spec = process.model.example_spec
    examples: list[Any]
    if (shared := context.shared_examples) is None:
        at_clients = process
        examples = [example_files.checked(client.examples, spec) for client in clients]
        sizes = [len(next(iter(columns.values()))) for columns in examples]
    else:
        at_clients = process.reading_files
        files = [
            client.examples
            if isinstance(client.examples, SharedFile)
            else shared.put(client.client, client.examples, spec)
            for client in clients
        ]
        examples = [file.path for file in files]
        sizes = [file.num_examples for file in files]
    download, arguments = process.download(state), _arguments(clients, examples)
    sent = context.map_clients(at_clients.client_update, download, arguments, sizes)
    uploads = [
        collections.OrderedDict((name, one[name]) for name in ("update", "weight", "metrics"))
        for one in sent
    ]
    combined = process.server_update(state, uploads)
    kept = [collections.OrderedDict(client=one["client"], state=one["state"]) for one in sent]
    return ProcessOutput(combined["state"], combined["metrics"], kept)


def _arguments(
    clients: Sequence[ClientInput], examples: Sequence[Any]
) -> list[collections.OrderedDict]:
    return [
        collections.OrderedDict(
            client=np.int32(client.client), seed=client.seed, examples=e, state=client.state
        )
        for client, e in zip(clients, examples, strict=True)
    ]


def _allow_open_files(count: int) -> None:
    """Raises the process's limit, often 1,024, where a cohort needs more."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = count + len(os.listdir("/proc/self/fd")) + 64  # Those of others, opened meanwhile.
    if soft != resource.RLIM_INFINITY and soft < needed:
        allowed = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))


@contextlib.contextmanager
def _memory_file(parts: Sequence[memoryview]) -> Iterator[str]:
    descriptor = os.memfd_create("tff_het_examples")
    try:
        for part in parts:
            while part:
                part = part[os.write(descriptor, part) :]
        yield f"/proc/{os.getpid()}/fd/{descriptor}"
    finally:
        os.close(descriptor)
