"""Table 2 of WAFFLe: sub-populations, the gap between them, and the variance over clients.

python -m experiments.waffle.table2 --scale=quick --data_dir=DIR --output_dir=out

The runs are Table 1's with sub-populations: what one has made, the other finds done.
"""

import sys
from collections.abc import Iterator

from experiments.study import program
from experiments.study.experiment import (
    PERCENT,
    Check,
    Claim,
    Experiment,
    Form,
    Grid,
    Position,
    Printed,
)
from experiments.study.measures import metric
from experiments.waffle import settings
from experiments.waffle.settings import (
    BASELINES,
    CIFAR,
    FED_AVG,
    FED_PROX,
    FMNIST,
    GAP,
    MAJORITY,
    METHODS,
    MINORITY,
    MNIST,
    MULTIMODAL,
    Q_FFL,
    VARIANCE,
    WAFFLE,
    cell_name,
)

_POINTS_SQUARED = Form(digits=0, factor=1e4)
# Column -> number of a run, and how it is printed.
_COLUMNS = {
    "Majority": (MAJORITY, PERCENT),
    "Minority": (MINORITY, PERCENT),
    "Gap": (GAP, PERCENT),
    "Variance": (VARIANCE, _POINTS_SQUARED),
}
_OF_LAST = (MAJORITY, MINORITY, GAP)

_PRINTED = {
    (MNIST, FED_AVG): r"FedAvg 96.63 \pm 0.70 67.40 \pm 11.26 29.23 \pm 11.79 199 \pm 106",
    (MNIST, FED_PROX): r"FedProx 96.43 \pm 0.67 68.60 \pm 9.44 27.83 \pm 10.03 186 \pm 92",
    (MNIST, Q_FFL): r"q-FFL 94.93 \pm 0.31 54.20 \pm 7.37 40.73 \pm 7.55 355 \pm 117",
    (MNIST, WAFFLE): r"WAFFLe 95.93 \pm 0.16 93.87 \pm 0.66 2.07 \pm 0.77 26 \pm 6",
    (FMNIST, FED_AVG): r"FedAvg 89.75 \pm 1.76 68.05 \pm 4.43 21.70 \pm 4.21 231 \pm 35",
    (FMNIST, FED_PROX): r"FedProx 89.95 \pm 1.73 67.50 \pm 4.50 22.45 \pm 4.38 233 \pm 42",
    (FMNIST, Q_FFL): r"q-FFL 88.73 \pm 0.17 69.40 \pm 1.48 19.33 \pm 1.43 212 \pm 19",
    (FMNIST, WAFFLE): r"WAFFLe 88.91 \pm 2.07 79.67 \pm 1.52 9.25 \pm 0.61 145 \pm 27",
    (CIFAR, FED_AVG): r"FedAvg 51.98 \pm 1.69 16.83 \pm 4.42 35.15 \pm 4.12 338 \pm 59",
    (CIFAR, FED_PROX): r"FedProx 51.26 \pm 1.44 16.56 \pm 3.32 32.70 \pm 6.99 318 \pm 36",
    (CIFAR, Q_FFL): r"q-FFL 42.00 \pm 0.29 18.14 \pm 3.05 23.87 \pm 3.00 220 \pm 17",
    (CIFAR, WAFFLE): r"WAFFLe 68.37 \pm 1.01 55.00 \pm 6.00 13.37 \pm 2.61 182 \pm 27",
}
_NOTES = {(CIFAR, FED_PROX): {"Gap": "51.26 - 16.56 is 34.70"}}


def _row(data: str, method: str) -> str:
    return f"{data}, {method}"


def _printed() -> Iterator[Printed]:
    for (data, method), quote in _PRINTED.items():
        notes = _NOTES.get((data, method))
        yield from settings.printed(_row(data, method), tuple(_COLUMNS), quote, "Table 2", notes)


def _grid(data: str) -> Grid:
    positions = []
    for method in METHODS:
        row, cell = _row(data, method), cell_name(data, MULTIMODAL, method)
        for column, (name, form) in _COLUMNS.items():
            positions.append(Position(row, column, metric(cell, name), form))
        for column, (name, form) in _COLUMNS.items():
            if name in _OF_LAST:
                mean = settings.last_rounds(cell, name)
                positions.append(Position(row, f"{column}, last ten rounds", mean, form))
    return Grid(data, tuple(positions))


def _claims() -> Iterator[Claim]:
    for data in (MNIST, FMNIST, CIFAR):

        def of(method: str, name: str, data: str = data):
            return metric(cell_name(data, MULTIMODAL, method), name)

        yield Claim(
            f"({data}) The gap between the sub-populations is smaller with WAFFLe.",
            tuple(
                Check(f"gap of {method} - {WAFFLE}", of(method, GAP) - of(WAFFLE, GAP))
                for method in BASELINES
            ),
        )
        yield Claim(
            f"({data}) The minority's accuracy is higher with WAFFLe.",
            tuple(
                Check(
                    f"minority's accuracy of {WAFFLE} - {method}",
                    of(WAFFLE, MINORITY) - of(method, MINORITY),
                )
                for method in BASELINES
            ),
        )
        yield Claim(
            f"({data}) The variance over clients is smaller with WAFFLe.",
            tuple(
                Check(
                    f"variance of {method} - {WAFFLE}, points squared",
                    of(method, VARIANCE) - of(WAFFLE, VARIANCE),
                    form=_POINTS_SQUARED,
                )
                for method in BASELINES
            ),
        )


EXPERIMENT = Experiment(
    paper="waffle",
    name="table2",
    title="Table 2: sub-populations",
    settings=settings.SETTINGS,
    scales=settings.scales((MULTIMODAL,), tuple(METHODS)),
    grids=tuple(_grid(data) for data in (MNIST, FMNIST, CIFAR)),
    printed=tuple(_printed()),
    claims=tuple(_claims()),
    notes=(
        *settings.NOTES,
        "Gap: the majority's mean minus the minority's. Variance: over all clients, in points "
        "squared. Of the last ten rounds every fourth is measured, from the last one back.",
    ),
)


if __name__ == "__main__":
    sys.exit(program.main(EXPERIMENT, __doc__))
