"""SIGINT and SIGTERM end the program at once, with one line."""

import contextlib
import os
import signal
from collections.abc import Callable

# What removes that which a job would leave.
clean_ups: list[Callable[[], None]] = []


def end_program_on_signals() -> None:
    """Replaces Python's own way, an exception: some callbacks of libraries swallow those."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _end)


def _end(number: int, frame: object) -> None:
    # Not `print`, which may be what the signal has come upon.
    os.write(2, b"\nStopped: the same command begins anew.\n")
    for clean_up in clean_ups:
        with contextlib.suppress(Exception):  # What is left, the next job removes.
            clean_up()
    os._exit(128 + number)
