"""What a process takes of each client in a round."""

import collections
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from tff_het import seeding
from tff_het.backend.names import tff
from tff_het.clients import Population, mapped
from tff_het.learning import example_files
from tff_het.learning.client_work import ClientState
from tff_het.learning.process import FederatedProcess, ProcessOutput, ServerState


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
    examples: "Mapping[int, Any] | Prepared",
    state_of: Callable[[int], ClientState],
) -> list[ClientInput]:
    """Returns what the clients of a round take part with.

    Args:
      cohort: Their indices, each once.
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


class Feeding:
    """How examples reach what executes a round: here, as tensors and arguments of `process.next`.

    Contexts whose way is another one inherit from it.
    """

    def place(self, client: int, columns: Mapping[str, Any]) -> Any:
        """Returns a client's columns in the form in which `run_round` takes them best.

        Args:
          client: The client's index.
          columns: Columns [n, ...], those of the process's model.
        """
        # TensorFlow copies arrays at each call.
        return tf.nest.map_structure(tf.convert_to_tensor, columns)

    def run_round(
        self, process: FederatedProcess, state: ServerState, clients: Sequence[ClientInput]
    ) -> ProcessOutput:
        """Runs `process.next` for clients whose examples are columns, or what `place` gave.

        Raises:
          ValueError: If a client's examples are not those of the process's model.
        """
        spec = process.model.example_spec
        examples = [example_files.checked(client.examples, spec) for client in clients]
        return process.next(state, arguments(clients, examples))


class Prepared:
    """The clients' training examples in the form in which the runtime takes them best.

    They stay there, the most recently used of them, unless memory is not to grow with the
    population.
    """

    def __init__(
        self, process: FederatedProcess, population: Population, *, in_memory: bool = True
    ):
        """Prepares nothing yet.

        Args:
          process: What trains on the examples.
          population: The clients.
          in_memory: Whether examples of up to 2 GiB stay placed, or the last client's alone.
        """
        self._in_memory = in_memory
        self._spec = process.model.example_spec
        self._population = population
        self._placed: collections.OrderedDict[int, tuple[Any, int]] = collections.OrderedDict()
        self._bytes = 0

    def __getitem__(self, client: int) -> Any:
        """Returns a client's columns, as the runtime has placed them.

        Raises:
          ValueError: If they are not those of the process's model.
        """
        if client not in self._placed:
            columns = example_files.checked(self._fetched(client), self._spec)
            size = sum(column.nbytes for column in columns.values())
            self._placed[client] = _current().place(client, columns), size
            self._bytes += size
            allowed = _KEPT_BYTES if self._in_memory else 0
            while self._bytes > allowed and len(self._placed) > 1:
                self._bytes -= self._placed.popitem(last=False)[1][1]
        self._placed.move_to_end(client)
        return self._placed[client][0]

    def _fetched(self, client: int) -> Mapping[str, np.ndarray]:
        columns = self._population[client].train
        mapped.fetch(columns)
        return columns


_KEPT_BYTES = 2 * 2**30


def run_round(
    process: FederatedProcess, state: ServerState, clients: Sequence[ClientInput]
) -> ProcessOutput:
    """Runs `process.next` in the way of the runtime that is installed; see `Feeding`.

    Raises:
      ValueError: If a client's examples are not those of the process's model.
    """
    return _current().run_round(process, state, clients)


def arguments(
    clients: Sequence[ClientInput], examples: Sequence[Any]
) -> list[collections.OrderedDict]:
    """Returns what `next` and `client_update` take of clients, with these as their examples."""
    return [
        collections.OrderedDict(
            client=np.int32(client.client), seed=client.seed, examples=e, state=client.state
        )
        for client, e in zip(clients, examples, strict=True)
    ]


def server_half(
    process: FederatedProcess, state: ServerState, sent: Sequence[Mapping[str, Any]]
) -> ProcessOutput:
    """Runs `process.server_update` on what `client_update` gave, in the clients' order."""
    uploads = [
        collections.OrderedDict((name, one[name]) for name in ("update", "weight", "metrics"))
        for one in sent
    ]
    combined = process.server_update(state, uploads)
    kept = [collections.OrderedDict(client=one["client"], state=one["state"]) for one in sent]
    return ProcessOutput(combined["state"], combined["metrics"], kept)


def _current() -> Feeding:
    context = tff.framework.get_context_stack().current
    return context if isinstance(context, Feeding) else _IN_THIS_PROCESS


_IN_THIS_PROCESS = Feeding()
