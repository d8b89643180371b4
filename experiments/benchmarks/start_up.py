"""Times methods from their settings to the first round.

  python -m experiments.benchmarks.start_up --only=hdafl,waffle

Each method trains one round on its paper's network and a few random examples, in one program. The
first run builds and compiles its process. The second has another seed and shares what the first
has built. Times are from the flags to the first round, in seconds.
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
from tff_het.simulation import loop, runtime

_IMAGE, _SIZES = (28, 28, 1), {"train": 400, "test": 100}
_EDGE = {"model": "cnn_edge", "acquisition": "max_entropy", "acquisition_size": "10"}
_UNBIASED = {"model": "cnn_16_32", "bias": "false"}
# By method: the shape and the classes of its paper's examples, and its flags.
_SETTINGS: dict[str, tuple[tuple[int, ...], int, dict[str, str]]] = {
    "fed_avg": (_IMAGE, 10, {"model": "mlp"}),
    **dict.fromkeys(("fed_recon", "hdafl"), (_IMAGE, 62, {"model": "femnist_cnn"})),
    **dict.fromkeys(("lg_fedavg", "local_only", "centralized"), (_IMAGE, 10, {"model": "mlp_lg"})),
    **dict.fromkeys(("fed_prox", "q_ffl", "waffle"), (_IMAGE, 10, _UNBIASED)),
    "cgau": ((1024,), 2, {"model": "mlp_two_layers"}),
    "ave_fl": (_IMAGE, 10, _EDGE),
    **dict.fromkeys(("opt_fl", "mix_fl"), (_IMAGE, 10, {**_EDGE, "selection_examples": "20"})),
}


def _rows(names: Sequence[str]) -> Iterator[tuple[str, dict[str, float]]]:
    with tempfile.TemporaryDirectory() as folder, runtime.use("in_process"):
        # What a program pays once, whatever it trains, is no method's.
        _seconds("fed_avg", 0, Path(folder, "warm"), model="mlp_two_layers_128")
        for name in names:
            runs = {"first": 0, "second": 1}
            yield f"`{name}`", {k: _seconds(name, s, Path(folder, name)) for k, s in runs.items()}


def _seconds(method: str, seed: int, folder: Path, **more: str) -> float:
    """Returns the seconds from the flags to the first round."""
    shape, classes, own = _SETTINGS[method]
    found = measuring.examples(0, 400, shape, "float32" if len(shape) == 1 else "uint8", classes)
    (folder / "npz").mkdir(parents=True, exist_ok=True)
    columns = {f"{name}_{k}": found[name][:n] for k, n in _SIZES.items() for name in found}
    np.savez(folder / "npz" / "data.npz", **columns)
    flags: dict[str, Any] = {"dataset": "npz", "data_dir": str(folder), "partition": "iid"}
    flags |= {"num_clients": 5, "rounds": 1, "batch_size": 10, **own, **more}
    times, run_round = [], loop.run_round

    def watched(*args: Any) -> Any:
        times.append(time.perf_counter())
        return run_round(*args)

    with mock.patch.object(loop, "run_round", watched):
        started = time.perf_counter()
        one.run(RunConfig.of(method=method, seed=seed, **flags), folder / f"seed{seed}").close()
    return times[0] - started


if __name__ == "__main__":
    measuring.main(__doc__, tuple(_SETTINGS), _rows)
