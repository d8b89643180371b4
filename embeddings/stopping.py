"""End the program at once, with one line, on SIGINT and SIGTERM."""

import contextlib
import os
import signal
from collections.abc import Callable

# Called before the program ends: removes what an unfinished job left.
clean_ups: list[Callable[[], None]] = []


def end_program_on_signals() -> None:
    """Installs the signal handlers; Python's exceptions get lost in some library callbacks."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _end)


def _end(number: int, frame: object) -> None:
    # Not `print`: the signal may have interrupted one.
    os.write(2, b"\nStopped: the same command begins anew.\n")
    for clean_up in clean_ups:
        with contextlib.suppress(Exception):  # The next job removes what is left.
            clean_up()
    os._exit(128 + number)
