"""Measures rounds with a million clients that each keep a state: time, memory, bytes moved.

  TMPDIR=/var/tmp python -m experiments.benchmarks.client_stores --only=1000,10000

Cohorts of 100 train in the whole training loop, in process, with --client_store=disk. Each client
keeps 10 KB (LG-FedAvg with a local layer of 24 x 100), random values of its own that are on disk
from the start; examples are zeros, in files with holes. Populations take turns in one program. A
block opens the run and goes on with it. Figures are medians over rounds, ratios medians over
blocks, to the smallest population; memory is the program's. It needs 12 KB of disk a client.
"""

import contextlib
import functools
import resource
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import tensorflow as tf

from experiments.benchmarks import measuring
from tff_het import seeding
from tff_het.clients import Population
from tff_het.learning.client_work import ClientState
from tff_het.models import networks
from tff_het.simulation import checkpoints, runtime

COHORT, EXAMPLES, FEATURES = 100, 20, 24
_WORKLOAD = measuring.Workload(networks.mlp([100]), (EXAMPLES, (FEATURES,), "float32", 2), 1, 20)
make_process = functools.partial(_WORKLOAD.process, "lg_fedavg", local_layers=("dense_1",))
_BLOCKS, _ROUNDS = 9, 6  # A block's first round opens the run; the first block is to warm up.


def _rows(populations: Iterable[str]) -> Iterator[tuple[str, dict[str, float]]]:
    with tempfile.TemporaryDirectory() as root, runtime.use("in_process"):
        runs = [(int(name), Path(root, name)) for name in populations]
        for run in runs:
            fill(*run)
        ends = range(1 + _ROUNDS, 2 + _BLOCKS * _ROUNDS, _ROUNDS)
        blocks = [[train(*run, last) for run in runs] for last in ends]
    smallest, *_ = of_each = [*zip(*blocks[1:], strict=True)]
    for (number, _), own in zip(runs, of_each, strict=True):
        figures = {key: float(np.median([block[key] for block in own])) for key in own[0]}
        for key in ("seconds", "cpu_seconds"):
            ratios = [one[key] / other[key] for one, other in zip(own, smallest, strict=True)]
            figures[f"{key}, ratio"] = float(np.median(ratios))
        yield f"{number:,}", figures


def train(num_clients: int, folder: Path, rounds: int) -> dict[str, float]:
    """Goes on with a run up to a number of rounds; its first round's further seconds open it."""
    readings: list[tuple[float, ...]] = []

    def read(*_: object) -> None:
        read_and_written = Path("/proc/self/io").read_text(encoding="utf-8").split()[1:4:2]
        moved = sum(map(int, read_and_written)) / 1e6
        readings.append((time.perf_counter(), time.process_time(), moved))

    population = _population(num_clients, folder)
    read()
    measuring.train(make_process(), population, folder, rounds, read, COHORT)
    (opening, *_), *others = np.diff(readings, axis=0)
    seconds, cpu_seconds, mb_moved = np.median(others, axis=0)
    return {
        "seconds": seconds,
        "cpu_seconds": cpu_seconds,
        "mb_moved": mb_moved,
        "seconds_to_open": opening - seconds,
        "mb_peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6,
        "gb_stored": checkpoints.path_in(folder).stat().st_size / 1e9,
    }


def _population(num_clients: int, folder: Path) -> Population:
    """Clients with `EXAMPLES` to train on each, and one to be tested on."""
    folder.mkdir(exist_ok=True)
    shape = (num_clients * EXAMPLES, FEATURES)
    x = np.lib.format.open_memmap(folder / "x.npy", "w+", np.float32, shape)
    y = np.zeros(len(x), np.int32)  # Until they are written to, zeros take no memory.
    sizes = {"train": EXAMPLES, "validation": 0, "test": 1}
    return Population.from_columns(
        [str(client) for client in range(num_clients)],
        {k: {"x": x[: n * num_clients], "y": y[: n * num_clients]} for k, n in sizes.items()},
        {split: np.full(num_clients, size) for split, size in sizes.items()},
    )


def fill(num_clients: int, folder: Path) -> None:
    """Begins a run: one round, and then each client has the state of one that has trained."""
    process, population = make_process(), _population(num_clients, folder)
    measuring.train(process, population, folder, 1, cohort=COHORT)
    with contextlib.closing(checkpoints.Checkpoints(checkpoints.path_in(folder), {})) as saved:
        server = saved.server_state(like=process.initialize())
        like = process.init_state(0, 0, server)
        states = ((c, checkpoints.encode(state_of(like, c))) for c in range(num_clients))
        saved.put_clients(1, states)
        saved.save(1, server)


def state_of(like: ClientState, client: int) -> ClientState:
    """Returns what a client begins with: values of its own."""
    rng = seeding.generator(0, seeding.CLIENT_STATE, client)
    own = tf.nest.map_structure(lambda v: rng.normal(0, 0.1, v.shape).astype(v.dtype), like.model)
    return like._replace(model=own, rounds=np.int32(1))


if __name__ == "__main__":
    measuring.main(__doc__, ("1000", "10000", "1000000"), _rows)
