"""Measures a round with very many clients: time, memory, bytes read and written.

  python -m experiments.benchmarks.client_stores
  TMPDIR=/var/tmp python -m experiments.benchmarks.client_stores --only=1000,10000

Every client keeps 50 KB from round to round (LG-FedAvg with a local layer of 124 x 100), all of
them in the checkpoint file from the start, and has 50 KB of examples in a memory-mapped file (with
holes: all zero, nothing on disk). Cohorts of 100 train in the whole training loop, in process, with
a checkpoint after each round, as with --client_store=disk. The figures are medians over rounds, and
ratios to the smallest population. It needs some 55 KB of disk a client.
"""

import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from experiments.benchmarks import measuring
from tff_het.learning.process import FederatedProcess
from tff_het.models import networks
from tff_het.simulation import checkpoints, runtime

COHORT = 100
FEATURES, UNITS, EXAMPLES = 124, 100, 100  # 12,500 variables of 4 bytes are local.
_WARM_UP, _ROUNDS = 3, 20  # Before those timed, behind the one that traces and compiles.


def _rows(populations: Iterable[str]) -> Iterator[tuple[str, dict[str, float]]]:
    first: dict[str, float] = {}
    for number in map(int, populations):
        with tempfile.TemporaryDirectory() as folder, runtime.use("in_process"):
            found = measure(number, Path(folder))
        first = first or found
        compared = ("seconds", "cpu_seconds", "mb_moved")
        yield f"{number:,}", found | {f"{k}, ratio": found[k] / first[k] for k in compared}


def measure(num_clients: int, folder: Path) -> dict[str, float]:
    """Returns what the rounds of a population cost: medians, and memory after the last one.

    `mb_moved` are read and written in a round, `mb_resident` is memory without mapped files, of
    which `mb_grown` came in the rounds timed.
    """
    workload = measuring.Workload(networks.mlp([UNITS]), (FEATURES,), "float32", 2, EXAMPLES, 1, 20)
    process = workload.process("lg_fedavg", local_layers=("dense_1",))
    shape = (num_clients, EXAMPLES, FEATURES)
    x = np.lib.format.open_memmap(folder / "x.npy", mode="w+", dtype=np.float32, shape=shape)
    y = np.arange(EXAMPLES, dtype=np.int32) % 2
    examples = [{"x": own, "y": y} for own in x]
    readings = []

    def read(*_: Any) -> None:
        moved, resident = _of_process("io", "rchar", "wchar"), _of_process("status", "RssAnon")
        now = time.perf_counter(), time.process_time()
        readings.append((*now, moved / 1e6, resident * 1024 / 1e6))

    measuring.train(process, examples, folder / "run", 1, cohort=COHORT)
    store = checkpoints.path_in(folder / "run")
    _fill(process, num_clients, store)
    last = 1 + _WARM_UP + _ROUNDS
    measuring.train(process, examples, folder / "run", last, read, COHORT)
    timed = np.array(readings[-1 - _ROUNDS :])
    seconds, cpu_seconds, mb_moved, _ = np.median(np.diff(timed, axis=0), axis=0)
    return {
        "seconds": seconds,
        "cpu_seconds": cpu_seconds,
        "mb_moved": mb_moved,
        "mb_resident": timed[-1, -1],
        "mb_grown": timed[-1, -1] - timed[0, -1],
        "gb_stored": store.stat().st_size / 1e9,
    }


def _fill(process: FederatedProcess, num_clients: int, store: Path) -> None:
    """Gives each client the state of one that has trained."""
    saved = checkpoints.Checkpoints(store, {})
    server = saved.server_state(like=process.initialize())
    state = process.init_state(0, 0, server)._replace(rounds=np.int32(1))
    blob = checkpoints.encode(state)
    saved.put_clients(1, ((client, blob) for client in range(num_clients)))
    saved.save(1, server)
    saved.close()


def _of_process(file: str, *names: str) -> int:
    """The sum of what the system counts of this process; RssAnon is without mapped files."""
    lines = (line.split() for line in Path("/proc/self", file).read_text().splitlines())
    return sum(int(words[1]) for words in lines if words[0].removesuffix(":") in names)


if __name__ == "__main__":
    measuring.main(__doc__, "clients", ("1000", "10000", "100000"), _rows)
