"""Times each method from its settings to its first round.

  python -m experiments.benchmarks.start_up
  python -m experiments.benchmarks.start_up --only=hdafl,waffle

Each method trains one round on its paper's network and a few random examples, in one program. The
first run builds and compiles its process. The second has another seed and shares what the first
has built. Times are from the flags to the first call of the process's `next`, in seconds; `round`
columns are the first round itself, in which TensorFlow compiles what is left.
"""

import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from experiments.benchmarks import measuring
from experiments.run import one
from experiments.run.config import RunConfig
from tff_het.backend.in_process.context import InProcessContext
from tff_het.methods import METHODS
from tff_het.simulation import runtime

_IMAGE = (28, 28, 1)
_EDGE = {"model": "cnn_edge", "acquisition": "max_entropy", "acquisition_size": "10"}
_SELECTING = {**_EDGE, "selection_examples": "20"}
# By method: the shape and the classes of its paper's examples, and its flags.
_SETTINGS: dict[str, tuple[tuple[int, ...], int, dict[str, str]]] = {
    "fed_avg": (_IMAGE, 10, {"model": "mlp"}),
    "fed_prox": (_IMAGE, 10, {"model": "cnn_16_32", "bias": "false"}),
    "q_ffl": (_IMAGE, 10, {"model": "cnn_16_32", "bias": "false"}),
    "fed_recon": (_IMAGE, 62, {"model": "femnist_cnn"}),
    "hdafl": (_IMAGE, 62, {"model": "femnist_cnn"}),
    "lg_fedavg": (_IMAGE, 10, {"model": "mlp_lg"}),
    "cgau": ((1024,), 2, {"model": "mlp_two_layers"}),
    "waffle": (_IMAGE, 10, {"model": "cnn_16_32", "bias": "false"}),
    "ave_fl": (_IMAGE, 10, _EDGE),
    "opt_fl": (_IMAGE, 10, _SELECTING),
    "mix_fl": (_IMAGE, 10, _SELECTING),
    "local_only": (_IMAGE, 10, {"model": "mlp_lg"}),
    "centralized": (_IMAGE, 10, {"model": "mlp_lg"}),
}


def _rows(names: Sequence[str]) -> Iterator[tuple[str, dict[str, float]]]:
    with tempfile.TemporaryDirectory() as folder, runtime.use("in_process"):
        # What a program pays once, whatever it trains, is no method's.
        _seconds("fed_avg", 0, Path(folder, "warm"), model="mlp_two_layers_128")
        for name in names:
            first, first_round = _seconds(name, 0, Path(folder, name))
            second, second_round = _seconds(name, 1, Path(folder, name))
            rounds = {"first round": first_round, "second's round": second_round}
            yield f"`{name}`", {"first": first, "second": second, **rounds}


def _seconds(method: str, seed: int, folder: Path, **more: str) -> tuple[float, float]:
    """Returns the seconds from the flags to the first round, and those of that round."""
    shape, classes, own = _SETTINGS[method]
    dtype, columns = "float32" if len(shape) == 1 else "uint8", dict[str, np.ndarray]()
    for part, count in {"train": 400, "test": 100}.items():
        found = measuring.examples(0, count, shape, dtype, classes)
        columns |= {f"{name}_{part}": column for name, column in found.items()}
    (folder / "npz").mkdir(parents=True, exist_ok=True)
    np.savez(folder / "npz" / "data.npz", **columns)
    flags: dict[str, Any] = {"dataset": "npz", "data_dir": str(folder), "partition": "iid"}
    flags |= {"num_clients": 5, "rounds": 1, "batch_size": 10, **own, **more}
    times: list[float] = []
    invoke = InProcessContext.invoke

    def watched(self: InProcessContext, comp: Any, arg: Any) -> Any:
        if times or "client_states" not in str(comp.type_signature.result):
            return invoke(self, comp, arg)
        times.append(time.perf_counter())
        result = invoke(self, comp, arg)
        times.append(time.perf_counter())
        return result

    with mock.patch.object(InProcessContext, "invoke", watched):
        started = time.perf_counter()
        one.run(RunConfig.of(method=method, seed=seed, **flags), folder / f"seed{seed}").close()
    began, ended = times
    return began - started, ended - began


if __name__ == "__main__":
    measuring.main(__doc__, "method", tuple(METHODS), _rows)
