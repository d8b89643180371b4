"""Figure 3: which classes active learning acquires, acquisition by acquisition.

python -m experiments.edge_ensembles.figure3 --scale=quick --data_dir=DIR --output_dir=out

The runs are those of Figure 9 without ensembling.
"""

import sys
from collections.abc import Iterator

import numpy as np
from matplotlib.figure import Figure as Drawing

from experiments.edge_ensembles import observed, settings, sizes
from experiments.edge_ensembles.settings import DEVICES, ENTROPY, ONCE, RANDOM
from experiments.edge_ensembles.sizes import Size
from experiments.study import program
from experiments.study.experiment import (
    Cell,
    Check,
    Claim,
    Experiment,
    Figure,
    Grid,
    Position,
)
from experiments.study.measures import Measure, metric
from experiments.study.store import Results
from tff_het.evaluation import panels

_FUNCTIONS = (RANDOM, ENTROPY)
_SHOWN = DEVICES[0]


def _cells(size: Size) -> Iterator[Cell]:
    for function in _FUNCTIONS:
        yield size.active(function, function, frequency=ONCE)


def _imbalance(function: str, device: str) -> Measure:
    return metric(function, f"{device}_imbalance")


def _draw(results: Results) -> Drawing | None:
    """What one device acquired, with the first seed that has it."""
    shown = {}
    for function in _FUNCTIONS:
        found = [runs for seed in results.seeds if (runs := results.ok([function], seed))]
        if found:
            arrays = np.load(found[0][function].file(observed.ARRAYS))
            shown[function] = arrays[f"{_SHOWN}_acquired"].T
    if not shown:
        return None
    return panels.heat_maps(
        shown, xlabel="acquisition, from 0", ylabel="class", label="acquired images"
    )


EXPERIMENT = Experiment(
    paper="edge_ensembles",
    name="figure3",
    title="Figure 3: biased acquisition by active learning",
    settings=settings.SETTINGS,
    scales=sizes.scales(_cells),
    grids=(
        Grid(
            "Imbalance of classes in an acquisition (total variation from even ones, %)",
            tuple(
                Position(function, device, _imbalance(function, device))
                for function in _FUNCTIONS
                for device in DEVICES
            ),
        ),
    ),
    claims=(
        Claim(
            "What active learning acquires is unbalanced, even when the pools are balanced: more "
            "so than a random choice from the same pools.",
            tuple(
                Check(
                    f"imbalance at {device}, {ENTROPY} - {RANDOM}",
                    _imbalance(ENTROPY, device) - _imbalance(RANDOM, device),
                )
                for device in DEVICES
            ),
        ),
    ),
    figures=(
        Figure(
            f"Acquired images by class and acquisition at {_SHOWN}, seed 0",
            "The classes of the data acquired in 10 acquisitions of one device: unbalanced in "
            "different ways from acquisition to acquisition.",
            _draw,
        ),
    ),
    notes=(
        *settings.NOTES,
        "Even a random choice of few images is not quite balanced, so that it is the yardstick. "
        "The device is not part of an ensemble between acquisitions.",
    ),
)


if __name__ == "__main__":
    sys.exit(program.main(EXPERIMENT, __doc__))
