"""Times each method from its settings to its first round.

  python -m experiments.benchmarks.start_up
  python -m experiments.benchmarks.start_up --methods=hdafl,waffle --runtime=worker --json=FILE

Each method trains one round on its paper's network and a few random examples, in one program. The
first run builds and compiles its process. The second has another seed and shares what the first
has built. Times are from the flags to the first call of the process's `next`, in seconds; `round`
columns are the first round itself, in which TensorFlow compiles what is left.
"""

import dataclasses
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np

from experiments.run import command_line, one
from experiments.run.config import RunConfig
from tff_het.backend.names import tff
from tff_het.methods import METHODS
from tff_het.simulation import records, runtime

_CLIENTS = 5
_EDGE = {"model": "cnn_edge", "acquisition": "max_entropy", "acquisition_size": "10"}
_SELECTING = {**_EDGE, "selection_examples": "20"}
# By method: the shape and the classes of its paper's examples, and its flags.
_SETTINGS: dict[str, tuple[tuple[int, ...], int, dict[str, str]]] = {
    "fed_avg": ((28, 28, 1), 10, {"model": "mlp"}),
    "fed_prox": ((28, 28, 1), 10, {"model": "cnn_16_32", "bias": "false"}),
    "q_ffl": ((28, 28, 1), 10, {"model": "cnn_16_32", "bias": "false"}),
    "fed_recon": ((28, 28, 1), 62, {"model": "femnist_cnn"}),
    "hdafl": ((28, 28, 1), 62, {"model": "femnist_cnn"}),
    "lg_fedavg": ((28, 28, 1), 10, {"model": "mlp_lg"}),
    "cgau": ((1024,), 2, {"model": "mlp_two_layers"}),
    "waffle": ((28, 28, 1), 10, {"model": "cnn_16_32", "bias": "false"}),
    "ave_fl": ((28, 28, 1), 10, _EDGE),
    "opt_fl": ((28, 28, 1), 10, _SELECTING),
    "mix_fl": ((28, 28, 1), 10, _SELECTING),
    "local_only": ((28, 28, 1), 10, {"model": "mlp_lg"}),
    "centralized": ((28, 28, 1), 10, {"model": "mlp_lg"}),
}


class _Watched(tff.framework.SyncContext):
    """A runtime that notes when the first round begins and ends."""

    def __init__(self, context: Any):
        self._context = context
        self.began: float | None = None
        self.ended = 0.0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)

    def invoke(self, comp: Any, arg: Any) -> Any:
        is_first_round = self.began is None and "client_states" in str(comp.type_signature.result)
        if is_first_round:
            self.began = time.perf_counter()
        result = self._context.invoke(comp, arg)
        if is_first_round:
            self.ended = time.perf_counter()
        return result


@dataclasses.dataclass(frozen=True)
class Settings:
    """Settings of this program.

    Attributes:
      methods: Which methods.
      runtime: What executes the rounds.
      json: A file for the figures.
    """

    methods: Sequence[str] = tuple(METHODS)
    runtime: Literal["in_process", "worker"] = "in_process"
    json: str | None = None


def main(argv: Sequence[str]) -> None:
    """Measures, prints a table, and writes the figures."""
    settings = command_line.settings(Settings, argv, __doc__)
    figures = {}
    with tempfile.TemporaryDirectory() as folder, runtime.use(settings.runtime) as context:
        # What a program pays once, whatever it trains, is no method's.
        _seconds("fed_avg", 0, Path(folder) / "warm", context, {"model": "mlp_two_layers_128"})
        for method in settings.methods:
            place = Path(folder) / method
            first, second = (_seconds(method, seed, place, context) for seed in (0, 1))
            figures[method] = {
                "first": first[0],
                "second": second[0],
                "first round": first[1],
                "second's round": second[1],
            }
            print(f"{method}: {first[0]:.2f}, then {second[0]:.2f}", flush=True)
    print(table(figures))
    if settings.json:
        records.write_json(Path(settings.json), figures)


def _seconds(
    method: str, seed: int, folder: Path, context: Any, more: dict[str, str] | None = None
) -> tuple[float, float]:
    """Returns the seconds from the flags to the first round, and those of that round."""
    shape, classes, own = _SETTINGS[method]
    data = _write_data(folder, shape, classes)
    watched = _Watched(context)
    flag_values = {
        "dataset": "npz",
        "data_dir": str(data),
        "method": method,
        "partition": "iid",
        "num_clients": str(_CLIENTS),
        "rounds": "1",
        "batch_size": "10",
        "seed": str(seed),
        **own,
        **(more or {}),
    }
    with tff.framework.get_context_stack().install(watched):
        started = time.perf_counter()
        one.run(RunConfig.of(**flag_values), folder / f"seed{seed}").close()
    assert watched.began is not None
    return watched.began - started, watched.ended - watched.began


def _write_data(folder: Path, shape: tuple[int, ...], classes: int) -> Path:
    """Writes a data set of random examples; returns its `data_dir`."""
    (folder / "npz").mkdir(parents=True, exist_ok=True)
    draw = np.random.default_rng(0)
    columns: dict[str, np.ndarray] = {}
    for part, number in (("train", 400), ("test", 100)):
        if len(shape) == 1:
            columns[f"x_{part}"] = draw.standard_normal((number, *shape), np.float32)
        else:
            columns[f"x_{part}"] = draw.integers(0, 256, (number, *shape), np.uint8)
        columns[f"y_{part}"] = np.arange(number, dtype=np.int32) % classes
    np.savez(folder / "npz" / "data.npz", **columns)
    return folder


def table(figures: dict[str, dict[str, float]]) -> str:
    """Returns the figures as a table in Markdown."""
    columns = list(next(iter(figures.values())))
    lines = ["| method | " + " | ".join(columns) + " |", "|---" * (len(columns) + 1) + "|"]
    for name, row in figures.items():
        lines.append(f"| `{name}` | " + " | ".join(f"{row[c]:.2f}" for c in columns) + " |")
    return "\n".join(lines)


if __name__ == "__main__":
    main(sys.argv[1:])
