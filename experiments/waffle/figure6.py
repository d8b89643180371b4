"""Figure 6 of WAFFLe: accuracy of both sub-populations over the rounds.

python -m experiments.waffle.figure6 --scale=quick --data_dir=DIR --output_dir=out

The runs are those of Table 2: what one has made, the other finds done.
"""

import sys

from experiments.study import program
from experiments.study.experiment import Check, Claim, Experiment, Figure, Grid, Position
from experiments.study.measures import Measure
from experiments.waffle import curves, settings
from experiments.waffle.settings import (
    CIFAR,
    FED_AVG,
    FMNIST,
    MAJORITY,
    MINORITY,
    MNIST,
    MULTIMODAL,
    WAFFLE,
    cell_name,
)

_METHODS = (FED_AVG, WAFFLE)
_GROUPS = {"majority": MAJORITY, "minority": MINORITY}
_DATA = (MNIST, FMNIST, CIFAR)


def _mean(data: str, method: str, group: str) -> Measure:
    return curves.mean_over_rounds(cell_name(data, MULTIMODAL, method), _GROUPS[group])


def _roughness(data: str, method: str, group: str) -> Measure:
    return curves.roughness(cell_name(data, MULTIMODAL, method), _GROUPS[group])


def _grid(data: str) -> Grid:
    columns = {"Mean over the rounds": _mean, "Roughness in points": _roughness}
    return Grid(
        data,
        tuple(
            Position(f"{data}, {method}, {group}", column, of(data, method, group))
            for method in _METHODS
            for group in _GROUPS
            for column, of in columns.items()
        ),
    )


def _claims(data: str) -> tuple[Claim, ...]:
    return (
        Claim(
            f"({data}) With FedAvg the minority lags behind the majority throughout training.",
            (
                Check(
                    "mean accuracy over all rounds, majority - minority",
                    _mean(data, FED_AVG, "majority") - _mean(data, FED_AVG, "minority"),
                ),
            ),
        ),
        Claim(
            f"({data}) FedAvg's curve of the minority is not as smooth as that of the majority, "
            "nor as WAFFLe's of the minority.",
            tuple(
                Check(
                    f"roughness of {FED_AVG}'s minority - {method}'s {group}",
                    _roughness(data, FED_AVG, "minority") - _roughness(data, method, group),
                )
                for method, group in ((FED_AVG, "majority"), (WAFFLE, "minority"))
            ),
        ),
    )


EXPERIMENT = Experiment(
    paper="waffle",
    name="figure6",
    title="Figure 6: training curves of both sub-populations",
    settings=settings.SETTINGS,
    scales=settings.scales((MULTIMODAL,), _METHODS),
    grids=tuple(map(_grid, _DATA)),
    claims=tuple(claim for data in _DATA for claim in _claims(data)),
    figures=(
        Figure(
            "Local test accuracy of both sub-populations over the rounds",
            "FedAvg and WAFFLe on MNIST, FMNIST and CIFAR-10, majority and minority apart. "
            "FedAvg's minority lags far behind its majority, with large dips and spikes; WAFFLe's "
            "has a much smoother curve.",
            lambda results: curves.draw(
                results,
                {
                    data: {
                        f"{method}, {group}": (cell_name(data, MULTIMODAL, method), column)
                        for method in _METHODS
                        for group, column in _GROUPS.items()
                    }
                    for data in _DATA
                },
            ),
        ),
    ),
    notes=(
        *settings.NOTES,
        "The paper prints no measure of smoothness. Ours, the roughness, is the mean change from "
        "one measurement to the next, two rounds later, up or down, over the second half of a run.",
    ),
)


if __name__ == "__main__":
    sys.exit(program.main(EXPERIMENT, __doc__))
