"""Measures a round with very many clients: time, memory, bytes read and written.

  python -m experiments.benchmarks.client_stores
  TMPDIR=/var/tmp python -m experiments.benchmarks.client_stores --populations=1000,10000

Every client keeps 50 KB from round to round (LG-FedAvg with a local layer of 124 x 100), all of
them in the checkpoint file from the start, and has 50 KB of examples in a memory-mapped file (with
holes: all zero, nothing on disk). Cohorts of 100 train in the whole training loop, in process, with
a checkpoint after each round, as with --client_store=disk. The figures are medians over rounds, and
ratios to the smallest population. It needs some 55 KB of disk a client.
"""

import dataclasses
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from experiments.benchmarks import measuring
from experiments.run import command_line
from tff_het.kinds import Whole
from tff_het.learning.process import FederatedProcess
from tff_het.models import networks
from tff_het.numbers import INT32, Number
from tff_het.simulation import checkpoints, runtime

COHORT = 100
FEATURES, UNITS, EXAMPLES = 124, 100, 100  # 12,500 variables of 4 bytes are local.
_Clients = Annotated[int, Number(COHORT, INT32, is_whole=True)]
_WARM_UP = 3  # Rounds before those timed, behind the one that traces and compiles.


@dataclasses.dataclass(frozen=True)
class Settings:
    """Settings of this program.

    Attributes:
      populations: Numbers of clients, each of a cohort at least.
      rounds: Rounds timed of each.
    """

    populations: Sequence[_Clients] = (1_000, 10_000, 100_000)
    rounds: Whole = 20


def main(argv: Sequence[str]) -> None:
    """Measures, and prints a table."""
    settings = command_line.settings(Settings, argv, __doc__)
    measuring.report("clients", _figures(settings))


def _figures(settings: Settings) -> Iterator[tuple[str, dict[str, float]]]:
    first: dict[str, float] = {}
    for number in settings.populations:
        with tempfile.TemporaryDirectory() as folder, runtime.use("in_process"):
            found = measure(number, settings.rounds, Path(folder))
        first = first or found
        ratios = {
            f"{k}, ratio": found[k] / first[k] for k in ("seconds", "cpu_seconds", "mb_moved")
        }
        yield f"{number:,}", found | ratios


def measure(num_clients: int, rounds: int, folder: Path) -> dict[str, float]:
    """Returns what the rounds of a population cost.

    `seconds` a round; `cpu_seconds`, which hang less on what else the machine does; `mb_moved`
    (read and written in a round); `mb_resident` (the program's own memory, without mapped files,
    after the last round); `mb_grown` (how much more than before those timed); `gb_stored`.
    """
    shape = (num_clients, EXAMPLES, FEATURES)
    x = np.lib.format.open_memmap(folder / "x.npy", mode="w+", dtype=np.float32, shape=shape)
    y = np.arange(EXAMPLES, dtype=np.int32) % 2
    examples = [{"x": own, "y": y} for own in x]
    model = measuring.architecture(networks.mlp([UNITS]), (FEATURES,), "float32", 2)
    training = {"batch_size": 20, "epochs": 1}
    process = measuring.process("lg_fedavg", model, training, local_layers=("dense_1",))
    readings = []

    def read(*_: Any) -> None:
        moved, resident = _of_process("io", "rchar", "wchar"), _of_process("status", "RssAnon")
        now = time.perf_counter(), time.process_time()
        readings.append((*now, moved / 1e6, resident * 1024 / 1e6))

    measuring.train(process, examples, folder / "run", 1, cohort=COHORT)
    store = checkpoints.path_in(folder / "run")
    _fill(process, num_clients, store)
    last = 1 + _WARM_UP + rounds
    measuring.train(process, examples, folder / "run", last, read, COHORT)
    timed = np.array(readings[-1 - rounds :])
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
    main(sys.argv[1:])
