"""Opens a checkpoint file, saves a round and says so, then waits or is killed.

python saving_program.py PATH CONFIG_AS_JSON "wait" | "be killed" | "be killed during a save"
"""

import json
import os
import pathlib
import signal
import sys

from tff_het.simulation.checkpoints import Checkpoints


def main() -> None:
    path, config, then = sys.argv[1:]
    saved = Checkpoints(pathlib.Path(path), json.loads(config))
    saved.save(1, {})
    print("saved", flush=True)
    if then == "wait":
        signal.pause()
    if then == "be killed during a save":
        # Enough that SQLite writes a part of it to the file before the end of the transaction.
        for client in range(150):
            saved.put_clients(2, [(client, bytes(200_000))])
        saved._put("servers", 2, 0, b"", 0, b"")
    os.kill(os.getpid(), signal.SIGKILL)


main()
