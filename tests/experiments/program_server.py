"""Runs the training program many times for one import of TensorFlow: forks itself for each run.

Reads a line of JSON for each request and answers with one:
  {"argv": [...], "output": FOLDER, "temporary": FOLDER, "kill": [class or "", function, n, when],
   "round_seconds": s} -> process id
  {"wait": process id} -> exit status, negative for a signal

A child is the program from its first line on, with a worker of its own. `kill` makes it kill
itself before or after the n-th call of a function of `checkpoints` or `records`.
"""

import json
import os
import signal
import sys
import time

from experiments import train
from tff_het.simulation import checkpoints, loop, records


def main() -> None:
    print("ready", flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        if "wait" in request:
            _, status = os.waitpid(request["wait"], 0)
            print(os.waitstatus_to_exitcode(status), flush=True)
            continue
        pid = os.fork()
        if pid == 0:
            become(request)
            sys.exit(train.main(request["argv"]))
        print(pid, flush=True)


def become(request: dict) -> None:
    os.setsid()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for descriptor, name in ((1, "stdout"), (2, "stderr")):
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        os.dup2(os.open(os.path.join(request["output"], name), flags), descriptor)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.environ["TMPDIR"] = request["temporary"]
    if request["kill"]:
        kill_at(*request["kill"])
    if request["round_seconds"]:
        slow_down(request["round_seconds"])


def kill_at(owner: str, function: str, n: int, when: str) -> None:
    module = checkpoints if owner == "Checkpoints" else records
    holder = getattr(module, owner) if owner else module
    original, calls = getattr(holder, function), [0]

    def replacement(*args, **kwargs):
        calls[0] += 1
        if calls[0] == n and when == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        result = original(*args, **kwargs)
        if calls[0] == n:
            os.kill(os.getpid(), signal.SIGKILL)
        return result

    setattr(holder, function, replacement)


def slow_down(seconds: float) -> None:
    original = loop.run_round

    def replacement(*args):
        time.sleep(seconds)
        return original(*args)

    loop.run_round = replacement


if __name__ == "__main__":
    main()
