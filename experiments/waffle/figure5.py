"""Figure 5 of WAFFLe: local test accuracy over the rounds, without sub-populations.

python -m experiments.waffle.figure5 --scale=quick --data_dir=DIR --output_dir=out

The runs are those of Table 1: what one has made, the other finds done.
"""

import sys

from experiments.study import program
from experiments.study.experiment import Check, Claim, Experiment, Figure, Grid, Position
from experiments.study.measures import Measure
from experiments.waffle import curves, settings
from experiments.waffle.settings import (
    ACCURACY,
    CIFAR,
    FED_AVG,
    FED_PROX,
    FMNIST,
    MNIST,
    UNIMODAL,
    WAFFLE,
    cell_name,
)

_METHODS = (FED_AVG, FED_PROX, WAFFLE)
_DATA = (MNIST, FMNIST, CIFAR)


def _mean(data: str, method: str) -> Measure:
    return curves.mean_over_rounds(cell_name(data, UNIMODAL, method), ACCURACY)


EXPERIMENT = Experiment(
    paper="waffle",
    name="figure5",
    title="Figure 5: training curves, unimodal",
    settings=settings.SETTINGS,
    scales=settings.scales((UNIMODAL,), _METHODS),
    grids=tuple(
        Grid(
            f"{data}, mean over the rounds",
            tuple(
                Position(f"{data}, {method}", "Local test accuracy", _mean(data, method))
                for method in _METHODS
            ),
        )
        for data in _DATA
    ),
    claims=tuple(
        Claim(
            f"({data}) WAFFLe achieves better performance throughout training.",
            tuple(
                Check(
                    f"mean accuracy over all rounds of {WAFFLE} - {method}",
                    _mean(data, WAFFLE) - _mean(data, method),
                )
                for method in (FED_AVG, FED_PROX)
            ),
        )
        for data in _DATA
    ),
    figures=(
        Figure(
            "Local test accuracy over the rounds",
            "FedAvg, FedProx and WAFFLe on MNIST, FMNIST and CIFAR-10: a clear gap between "
            "WAFFLe's curve and the others throughout training, and a similar rate of convergence.",
            lambda results: curves.draw(
                results,
                {
                    data: {
                        method: (cell_name(data, UNIMODAL, method), ACCURACY) for method in _METHODS
                    }
                    for data in _DATA
                },
            ),
        ),
    ),
    notes=settings.NOTES,
)


if __name__ == "__main__":
    sys.exit(program.main(EXPERIMENT, __doc__))
