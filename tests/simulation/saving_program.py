"""Opens checkpoint files, saves a round and says so, then waits or is killed; each in a fork.

A line of JSON for each: the file, the config, and "wait" | "be killed" | "be killed during a save".
Prints "saved" and the fork's process id, and "ended" when it has ended.
"""

import json
import os
import pathlib
import signal
import sys

from tff_het.simulation.checkpoints import Checkpoints


def main() -> None:
    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            save(*json.loads(line))
        os.waitpid(pid, 0)
        print("ended", flush=True)


def save(path: str, config: dict, then: str) -> None:
    saved = Checkpoints(pathlib.Path(path), config)
    saved.save(1, {})
    print("saved", os.getpid(), flush=True)
    if then == "wait":
        signal.pause()
    if then == "be killed during a save":
        # Enough that SQLite writes a part of it to the file before the end of the transaction.
        for client in range(150):
            saved.put_clients(2, [(client, bytes(200_000))])
        saved._put("servers", 2, 0, b"", 0, b"")
    os.kill(os.getpid(), signal.SIGKILL)


main()
