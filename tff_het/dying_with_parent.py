"""Runs a program that is killed when its parent ends, however that ends; Linux.

    python -I -S dying_with_parent.py PARENT_PID PROGRAM ARGUMENT ...

A script of its own, since it has to run in the child, and the child of a program of many threads
may run nothing of its parent's before it becomes another program.
"""

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1  # It stays when the process becomes another program.


def main(argv: list[str]) -> None:
    """Replaces this process by the program."""
    ask(int(argv[1]))
    os.execv(argv[2], argv[2:])


def ask(parent: int) -> None:
    """Has this process killed when its parent, whose process id is given, ends."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # It died before the line above.
        sys.exit(1)


if __name__ == "__main__":
    main(sys.argv)
