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
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from tff_het.simulation import records

_FILE = "claim.json"
_BEAT_SECONDS, _LOST_SECONDS = 5.0, 60.0


@contextlib.contextmanager
def claimed(folder: Path) -> Iterator[Callable[[int], None] | None]:
    """Claims a run until the block ends.

    Gives a function that is told after how many rounds the run is; None if another program has it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path, ended = folder / _FILE, threading.Event()
    mine = {"host": socket.gethostname(), "pid": os.getpid(), "token": uuid.uuid4().hex, "round": 0}

    def is_mine() -> bool:
        return (read(folder) or {}).get("token") == mine["token"]

    def beat() -> None:
        while not ended.wait(_BEAT_SECONDS) and is_mine():
            with contextlib.suppress(OSError):  # A full disk is told by the run itself.
                records.write_json(path, mine)

    beats = threading.Thread(target=beat, daemon=True)
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        if _take(descriptor, path, mine) and is_mine():
            beats.start()
            yield lambda round_num: mine.update(round=round_num)
        else:
            yield None
    finally:
        ended.set()
        if beats.ident is not None:
            beats.join()
        if is_mine():
            path.unlink(missing_ok=True)
        os.close(descriptor)


def _take(descriptor: int, path: Path, about: Mapping[str, Any]) -> bool:
    """Locks a folder and writes the claim, unless another program has a living one."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    with contextlib.suppress(FileExistsError), path.open("x", encoding="utf-8") as file:
        json.dump(about, file)  # Of programs on several machines, one alone comes to this.
        return True
    found = read(path.parent)
    is_elsewhere = found is None or found["host"] != about["host"]
    if is_elsewhere:
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=".clock-") as now:  # The disk's.
            age = 0.0
            with contextlib.suppress(FileNotFoundError):  # The other has just ended.
                age = os.stat(now.name).st_mtime - path.stat().st_mtime
            if age < _LOST_SECONDS:
                return False
    records.write_json(path, about)
    if is_elsewhere:
        # Of programs that found the same lost claim at the same time, the last one has it.
        time.sleep(1.0)
    return True


def read(folder: Path) -> Mapping[str, Any] | None:
    """Returns who makes a run (host, pid, round), or None where nobody does."""
    try:
        found = json.loads((folder / _FILE).read_text())
    except (FileNotFoundError, ValueError):
        return None
    return found if isinstance(found, dict) and "host" in found else None
