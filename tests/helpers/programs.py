"""Programs as forks of one process, which has imported TensorFlow."""

import json
import os
import pathlib
import subprocess
import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

ROOT = pathlib.Path(__file__).parents[2]


class Ended(NamedTuple):
    """How a program ended.

    Attributes:
      code: Its exit code; negative for a signal.
      printed: What it printed.
      seconds: What it computed, on all cores together; how long that takes is the machine's.
      megabytes: The most memory that it had, what it shares with the process it was forked from
        included.
    """

    code: int
    printed: str
    seconds: float
    megabytes: float


class Programs:
    """Runs programs."""

    def __init__(self) -> None:
        self._server = subprocess.Popen(
            [sys.executable, "-W", "ignore", pathlib.Path(__file__).with_name("forking.py")],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, argv: Sequence[str], folder: pathlib.Path, **request: Any) -> Ended:
        """Runs a program in a folder to its end.

        Args:
          argv: What would follow `python` on a command line.
          folder: The folder.
          **request: See `forking.py`.
        """
        printed = folder / "printed"
        assert self._server.stdin is not None and self._server.stdout is not None
        request |= {"argv": [*argv], "folder": str(folder)}
        self._server.stdin.write(json.dumps(request) + "\n")
        self._server.stdin.flush()
        code, kilobytes, seconds = self._server.stdout.readline().split()
        text = printed.read_text()
        printed.unlink()
        return Ended(int(code), text, float(seconds), int(kilobytes) / 1000)

    def close(self) -> None:
        """Ends the process that they are forks of."""
        self._server.kill()
        self._server.communicate()
