"""Runs a worker, which trains clients for `experiments.train --workers` on another machine.

  python -m experiments.worker --port=8000

Stays in the foreground until SIGINT or SIGTERM. It listens on all network interfaces, neither
encrypted nor authenticated, and executes whatever it is sent: trusted networks only, see
docs/several_machines.md.
"""

import dataclasses
import signal
import sys
from collections.abc import Sequence
from typing import Annotated

from experiments.run import command_line
from tff_het.kinds import Whole
from tff_het.numbers import Number


@dataclasses.dataclass(frozen=True)
class Settings:
    """Settings of this program.

    Attributes:
      port: Where it serves; required.
      clients_in_parallel: Clients that train at the same time. Default: one a core. Results do not
        depend on it.
    """

    port: Annotated[int, Number(1, 2**16 - 1, is_whole=True)] | None = None
    clients_in_parallel: Whole | None = None


def main(argv: Sequence[str]) -> int:
    """Serves until a signal comes; exit code 1 where the worker ends by itself."""
    settings = command_line.settings(Settings, argv, __doc__)
    if settings.port is None:
        command_line.refuse("--port is missing: give one, such as --port=8000.")
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: sys.exit(0))
    with command_line.errors_in_one_line():
        from tff_het.simulation.worker_process import WorkerProcess

        worker = WorkerProcess(settings.clients_in_parallel, port=settings.port)
    try:
        with command_line.errors_in_one_line(exit_code=1):
            worker.wait_until_serving()
            print(f"Serving on port {worker.port}.", flush=True)
            worker.has_ended(within_seconds=None)
            raise worker.end_error()
    finally:
        worker.stop()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
