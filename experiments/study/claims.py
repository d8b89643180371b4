"""Claims: which program makes a run, so that any number of equal programs share a folder.

A claim is the file `claim.json` in the run's folder. Its maker touches it while it is at work. On
one machine a lock says at once that the maker is gone; elsewhere a claim is lost when it has not
been touched for a minute, by the clock of the disk. Who finds a lost one takes the run over.
"""

import contextlib
import fcntl
import json
import os
import socket
import tempfile
import threading
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tff_het.simulation import records

_FILE = "claim.json"
_BEAT_SECONDS, _LOST_SECONDS = 5.0, 60.0


class Claim:
    """A run that this program makes."""

    def __init__(self, folder: Path):
        self._round = 0
        self._path = folder / _FILE
        self._about = {"host": socket.gethostname(), "pid": os.getpid(), "token": uuid.uuid4().hex}
        self._ended = threading.Event()
        self._beats = threading.Thread(target=self._beat, daemon=True)

    def take(self) -> bool:
        """Writes the claim, unless another machine's program has a living one."""
        found = read(self._path.parent)
        if found and found["host"] != self._about["host"] and _age(self._path) < _LOST_SECONDS:
            return False
        self._write()
        # Of programs that found the same lost claim at the same time, the last one has it.
        self._ended.wait(0.0 if not found or found["host"] == self._about["host"] else 1.0)
        if not self._is_mine():
            return False
        self._beats.start()
        return True

    def note(self, round_num: int) -> None:
        """Notes how many rounds the run has."""
        self._round = round_num

    def end(self) -> None:
        """Gives the run back."""
        self._ended.set()
        if self._beats.ident is not None:
            self._beats.join()
        if self._is_mine():
            self._path.unlink(missing_ok=True)

    def _write(self) -> None:
        records.write_json(self._path, self._about | {"round": self._round})

    def _is_mine(self) -> bool:
        return (read(self._path.parent) or {}).get("token") == self._about["token"]

    def _beat(self) -> None:
        while not self._ended.wait(_BEAT_SECONDS) and self._is_mine():
            with contextlib.suppress(OSError):  # A full disk is told by the run itself.
                self._write()


@contextlib.contextmanager
def claimed(folder: Path) -> Iterator[Claim | None]:
    """Claims a run until the block ends; gives None where another program is making it."""
    folder.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(folder, os.O_RDONLY)
    claim = Claim(folder)
    try:
        with contextlib.suppress(BlockingIOError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if claim.take():
                yield claim
                return
        yield None
    finally:
        claim.end()
        os.close(descriptor)


def read(folder: Path) -> Mapping[str, Any] | None:
    """Returns who makes a run (host, pid, round), or None where nobody does."""
    try:
        found = json.loads((folder / _FILE).read_text())
    except (FileNotFoundError, ValueError):
        return None
    return found if isinstance(found, dict) and "host" in found else None


def _age(path: Path) -> float:
    """Seconds since a file was written, by the clock of its disk."""
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=".clock-") as now:
        return os.stat(now.name).st_mtime - path.stat().st_mtime
