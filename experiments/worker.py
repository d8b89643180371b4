"""Runs a worker, which trains clients for `experiments.train --workers` on another machine.

  python -m experiments.worker --port=8000

Stays in the foreground until SIGINT or SIGTERM. It listens on all network interfaces, neither
encrypted nor authenticated, and executes whatever it is sent: trusted networks only, see
docs/several_machines.md.
"""

import signal
import sys
from collections.abc import Sequence

from experiments.flags import command_line, numbers
from tff_het.simulation.worker_process import WorkerProcess

_PORT = numbers.whole("port", None, "Where it serves.", high=2**16 - 1, required=True)
_CLIENTS_IN_PARALLEL = numbers.whole(
    "clients_in_parallel",
    None,
    "Clients that train at the same time. Default: one a core. Results do not depend on it.",
)


def main(argv: Sequence[str]) -> None:
    """Serves until a signal comes; exit code 1 where the worker ends by itself."""
    del argv
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: sys.exit(0))
    with command_line.errors_in_one_line():
        worker = WorkerProcess(_CLIENTS_IN_PARALLEL.value, port=_PORT.value)
    try:
        with command_line.errors_in_one_line(exit_code=1):
            worker.wait_until_serving()
            print(f"Serving on port {worker.port}.", flush=True)
            worker.has_ended(within_seconds=None)
            raise worker.end_error()
    finally:
        worker.stop()


if __name__ == "__main__":
    command_line.run(main)
