"""Measures a round with very many clients: time, memory, bytes read and written.

  python -m experiments.benchmarks.client_stores
  python -m experiments.benchmarks.client_stores --populations=1000,10000 --folder=/var/tmp

Every client keeps 50 KB from round to round (LG-FedAvg with a local layer of 124 x 100), all of
them in the checkpoint file from the start, and has 50 KB of examples in a memory-mapped file (with
holes: all zero, nothing on disk). Cohorts of 100 train in the whole training loop, in process, with
a checkpoint after each round, as with --client_store=disk. The figures are medians over rounds; the
table ends with ratios to the smallest population. It needs some 55 KB of disk a client.
"""

import dataclasses
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import numpy as np

from experiments.run import command_line
from tff_het import methods
from tff_het.backend.names import tff
from tff_het.clients import Client, Population
from tff_het.learning.client_work import LocalTraining
from tff_het.learning.process import FederatedProcess
from tff_het.models import architectures, networks
from tff_het.numbers import INT32, Number
from tff_het.simulation import checkpoints, cohorts, loop, records, runtime

COHORT = 100
FEATURES, UNITS, EXAMPLES = 124, 100, 100  # 12,500 variables of 4 bytes are local.
_WARM_UP = 3  # Rounds before those timed: the first one traces and compiles.


@dataclasses.dataclass(frozen=True)
class Settings:
    """Settings of this program.

    Attributes:
      populations: Numbers of clients.
      rounds: Rounds timed of each.
      folder: Where the stores are made. Default: /tmp or so.
      json: A file for the figures.
    """

    populations: Sequence[str] = ("1000", "10000", "100000")
    rounds: Annotated[int, Number(2, INT32, is_whole=True)] = 20
    folder: str | None = None
    json: str | None = None


def main(argv: Sequence[str]) -> None:
    """Measures, prints a table, and writes the figures."""
    settings = command_line.settings(Settings, argv, __doc__)
    with command_line.errors_in_one_line():
        if not all(n.isdigit() and int(n) >= COHORT for n in settings.populations):
            raise ValueError(
                f"--populations needs numbers of at least {COHORT} clients, a cohort; found "
                f"{','.join(settings.populations)}."
            )
        figures = {}
        for number in map(int, settings.populations):
            with (
                tempfile.TemporaryDirectory(dir=settings.folder) as folder,
                runtime.use("in_process"),
            ):
                figures[number] = measure(number, settings.rounds, Path(folder))
            shown = ", ".join(f"{name} {value:.3f}" for name, value in figures[number].items())
            print(f"{number:,} clients: {shown}", flush=True)
    print(table(figures))
    if settings.json:
        records.write_json(Path(settings.json), figures)


def measure(num_clients: int, rounds: int, folder: Path) -> dict[str, float]:
    """Returns what the rounds of a population cost.

    Args:
      num_clients: 100 or more.
      rounds: Rounds timed, 2 or more.
      folder: An empty folder for the store and the examples.

    Returns:
      `seconds` a round; `cpu_seconds`, which hang less on what else the machine does; `mb_moved`
      (read and written in a round); `mb_resident` (the program's own memory, without mapped files,
      after the last round); `mb_grown` (how much more than before those timed); `gb_stored`.
    """
    process = _process()
    population = _population(num_clients, folder)
    run = folder / "run"
    _train(process, population, run, stop_after=1)
    _fill(process, num_clients, run)
    seconds, cpu = [], [time.process_time()]
    moved, resident = [_bytes_moved()], [_resident_bytes()]

    def after_round(round_seconds: float) -> None:
        seconds.append(round_seconds)
        cpu.append(time.process_time())
        moved.append(_bytes_moved())
        resident.append(_resident_bytes())

    _train(process, population, run, stop_after=1 + _WARM_UP + rounds, on_round=after_round)
    return {
        "seconds": statistics.median(seconds[_WARM_UP:]),
        "cpu_seconds": statistics.median(np.diff(cpu)[_WARM_UP:]),
        "mb_moved": statistics.median(np.diff(moved)[_WARM_UP:]) / 1e6,
        "mb_resident": resident[-1] / 1e6,
        "mb_grown": (resident[-1] - resident[_WARM_UP]) / 1e6,
        "gb_stored": checkpoints.path_in(run).stat().st_size / 1e9,
    }


def table(figures: dict[int, dict[str, float]]) -> str:
    """Returns the figures as a table in Markdown, with ratios to the first row."""
    columns = list(next(iter(figures.values())))
    first = next(iter(figures.values()))
    lines = [
        "| clients | " + " | ".join(columns) + " | time, ratio | CPU, ratio | moved, ratio |",
        "|---" * (len(columns) + 4) + "|",
    ]
    for number, row in figures.items():
        ratios = [row[name] / first[name] for name in ("seconds", "cpu_seconds", "mb_moved")]
        values = [*(f"{row[c]:.3f}" for c in columns), *(f"{ratio:.2f}" for ratio in ratios)]
        lines.append(f"| {number:,} | " + " | ".join(values) + " |")
    return "\n".join(lines)


def _process() -> FederatedProcess:
    spec = {"x": (np.dtype(np.float32), (FEATURES,)), "y": (np.dtype(np.int32), ())}
    return methods.build(
        "lg_fedavg",
        architectures.make("benchmark", spec, 2, networks.mlp([UNITS])),
        LocalTraining(tff.learning.optimizers.build_sgdm(0.1), batch_size=20, epochs=1),
        seed=0,
        local_layers=("dense_1",),
    )


def _population(num_clients: int, folder: Path) -> Population:
    """Clients whose examples are slices of one memory-mapped file."""
    shape = (num_clients, EXAMPLES, FEATURES)
    x = np.lib.format.open_memmap(folder / "x.npy", mode="w+", dtype=np.float32, shape=shape)
    y = np.arange(EXAMPLES, dtype=np.int32) % 2
    test = {"x": x[0, :2], "y": y[:2]}
    nothing = {"x": x[0, :0], "y": y[:0]}
    return Population(
        Client(str(k), train={"x": x[k], "y": y}, validation=nothing, test=test)
        for k in range(num_clients)
    )


def _train(process, population: Population, folder: Path, *, stop_after: int, on_round=None):
    """Trains this many rounds, and the one at whose end the signal is seen; evaluates nobody."""

    def after_round(row, seconds: float) -> None:
        if on_round is not None:
            on_round(seconds)
        if row["round"] == stop_after:
            signal.raise_signal(signal.SIGTERM)

    never = 10**9
    result = loop.train(
        process,
        population,
        cohorts.uniform(len(population), COHORT, seed=0),
        loop.Settings(rounds=never, seed=0, eval_every=never, states_in_memory=False),
        evaluated=population[:1],
        folder=folder,
        on_round=after_round,
    )
    result.client_states.close()


def _fill(process, num_clients: int, run: Path) -> None:
    """Gives each client the state of one that has trained."""
    saved = checkpoints.Checkpoints(checkpoints.path_in(run), {})
    server = saved.server_state(like=process.initialize())
    state = process.init_state(0, 0, server)._replace(rounds=np.int32(1))
    blob = checkpoints.encode(state)
    saved.put_clients(1, ((client, blob) for client in range(num_clients)))
    saved.save(1, server)
    saved.close()


def _resident_bytes() -> int:
    """The program's own memory: pages of mapped files are the system's to take back."""
    (line,) = [one for one in _lines("/proc/self/status") if one.startswith("RssAnon")]
    return int(line.split()[1]) * 1024


def _bytes_moved() -> int:
    found = dict(line.split(": ") for line in _lines("/proc/self/io"))
    return int(found["rchar"]) + int(found["wchar"])


def _lines(path: str) -> list[str]:
    return Path(path).read_text().splitlines()


if __name__ == "__main__":
    main(sys.argv[1:])
