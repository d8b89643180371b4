"""What executes computations, from settings; only what is asked for is imported."""

import contextlib
from collections.abc import Sequence

from tff_het.simulation import runtime, several_workers


def use(
    runtime_name: str,
    workers: Sequence[str] | None = None,
    worker_deadline: float | None = None,
    *,
    shared_examples_dir: str | None = None,
    clients_in_parallel: int | None = None,
) -> contextlib.AbstractContextManager:
    """Returns a runtime, not opened yet.

    Args:
      runtime_name: One of `runtime.RUNTIMES`.
      workers: Addresses of workers, which then train clients instead.
      worker_deadline: Seconds without a sign of life after which one of them is lost.
      shared_examples_dir: A folder that they all see.
      clients_in_parallel: Clients that train at the same time; one a core by default.

    Raises:
      ValueError: If an address is none.
      FileNotFoundError: If there is no folder for shared examples.
    """
    if workers is None:
        return runtime.use(runtime_name, clients_in_parallel=clients_in_parallel)
    return several_workers.use(
        workers,
        deadline=several_workers.DEADLINE_SECONDS if worker_deadline is None else worker_deadline,
        shared_examples_dir=shared_examples_dir,
        clients_in_parallel=clients_in_parallel,
    )
