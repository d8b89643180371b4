"""What a process takes of each client in a round."""

import collections
import contextlib
import os
import resource
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow_federated as tff

from tff_het.learning import example_files
from tff_het.learning.client_work import ClientState
from tff_het.learning.process import FederatedProcess, ProcessOutput, ServerState


class ClientInput(NamedTuple):
    """One client of a cohort.

    Attributes:
      client: Its index in the population.
      seed: int32 [2], for this client and round.
      examples: Columns [n, ...].
      state: Its state.
    """

    client: int
    seed: np.ndarray
    examples: Mapping[str, np.ndarray]
    state: ClientState


def run_round(
    process: FederatedProcess, state: ServerState, clients: Sequence[ClientInput]
) -> ProcessOutput:
    """Runs `process.next`, giving examples in the form in which the runtime takes them best.

    A runtime with `reads_files` gets them as files in memory. They have no name in
    the file system, so nothing is left of them, however the program ends.
    """
    with contextlib.ExitStack() as stack:
        examples: list[Any]
        if getattr(tff.framework.get_context_stack().current, "reads_files", False):
            process = process.reading_files
            spec = process.model.example_spec
            _allow_open_files(len(clients))
            examples = [
                stack.enter_context(_memory_file(example_files.to_bytes(client.examples, spec)))
                for client in clients
            ]
        else:
            columns = tuple(process.model.example_spec)
            examples = [
                collections.OrderedDict((c, client.examples[c]) for c in columns)
                for client in clients
            ]
        arguments = [
            collections.OrderedDict(
                client=np.int32(client.client), seed=client.seed, examples=e, state=client.state
            )
            for client, e in zip(clients, examples, strict=True)
        ]
        return process.next(state, arguments)


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
