"""What executes computations, from settings."""

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
    """Returns, not opened yet, a runtime by name, or that of workers, where clients then train."""
    if workers is None:
        return runtime.use(runtime_name, clients_in_parallel=clients_in_parallel)
    return several_workers.use(
        workers,
        deadline=worker_deadline or several_workers.DEADLINE_SECONDS,
        shared_examples_dir=shared_examples_dir,
        clients_in_parallel=clients_in_parallel,
    )
