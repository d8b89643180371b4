"""Table 1 of WAFFLe: local test accuracy and numbers of parameters.

python -m experiments.waffle.table1 --scale=quick --data_dir=DIR --output_dir=out

The runs with sub-populations are those of Table 2: what one has made, the other finds done.
"""

import sys
from collections.abc import Iterator

from experiments.study import program
from experiments.study.experiment import (
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
    ACCURACY,
    BASELINES,
    CIFAR,
    FED_AVG,
    FED_PROX,
    FMNIST,
    METHODS,
    MNIST,
    MULTIMODAL,
    Q_FFL,
    UNIMODAL,
    WAFFLE,
    cell_name,
)

_SENT, _KEPT = "# of parameters", "Further ones at each client"
_COLUMNS = {UNIMODAL: "Unimodal", MULTIMODAL: "Multimodal"}
_COUNT = Form(digits=0)

_PRINTED = {
    (MNIST, FED_AVG): "FedAvg 155,800 94.46±0.84 91.57±1.42",
    (MNIST, FED_PROX): "FedProx 155,800 94.44±1.15 91.53±1.05",
    (MNIST, Q_FFL): "q-FFL 155,800 91.46±1.07 88.42±1.24",
    (MNIST, WAFFLE): "WAFFLe 120,200 96.23±0.31 95.41±0.36",
    (FMNIST, FED_AVG): "FedAvg 28,880 83.96±0.91 83.43±2.27",
    (FMNIST, FED_PROX): "FedProx 28,800 84.19±0.99 83.59±2.30",
    (FMNIST, Q_FFL): "q-FFL 28,800 83.10±0.36 85.73±0.21",
    (FMNIST, WAFFLE): "WAFFLe 18,155 87.12±0.89 86.09±0.92",
    (CIFAR, FED_AVG): "FedAvg 61,770 52.54±0.14 45.46±1.69",
    (CIFAR, FED_PROX): "FedProx 61,770 52.36±0.11 44.95±1.17",
    (CIFAR, Q_FFL): "q-FFL 61,770 43.82±0.52 38.25±1.12",
    (CIFAR, WAFFLE): "WAFFLe 42,780 71.30±0.92 66.35±0.72",
}
_MNIST_COUNT = "784 x 200 + 200 x 10 is 158,800, without biases"
_FMNIST_COUNT = "FedAvg's count for the same network is 28,880, which fits it without biases"
_UNEXPLAINED = "Appendix C's network has another number, with or without biases"
_CIFAR_COUNT = f"{_UNEXPLAINED}; it is that of a LeNet-5 without biases"


def _of_groups(mean: str, arithmetic: str) -> dict[str, str]:
    return {"Multimodal": f"Table 2's two groups give {mean} = {arithmetic}"}


_NOTES: dict[tuple[str, str], dict[str, str]] = {
    **{(MNIST, method): {_SENT: _MNIST_COUNT} for method in BASELINES},
    (FMNIST, FED_AVG): _of_groups("85.80", "(90 x 89.75 + 20 x 68.05) / 110"),
    (FMNIST, FED_PROX): {
        _SENT: _FMNIST_COUNT,
        **_of_groups("85.87", "(90 x 89.95 + 20 x 67.50) / 110"),
    },
    (FMNIST, Q_FFL): {_SENT: _FMNIST_COUNT},
    (FMNIST, WAFFLE): {
        _SENT: _UNEXPLAINED,
        **_of_groups("87.23", "(90 x 88.91 + 20 x 79.67) / 110"),
    },
    **{(CIFAR, method): {_SENT: _CIFAR_COUNT} for method in BASELINES},
    (CIFAR, WAFFLE): {_SENT: _UNEXPLAINED},
}


def _row(data: str, method: str) -> str:
    return f"{data}, {method}"


def _printed() -> Iterator[Printed]:
    columns = (_SENT, *_COLUMNS.values())
    for (data, method), quote in _PRINTED.items():
        notes = _NOTES.get((data, method))
        yield from settings.printed(_row(data, method), columns, quote, "Table 1", notes)


def _grid(data: str) -> Grid:
    positions = []
    for method in METHODS:
        row, cell = _row(data, method), cell_name(data, UNIMODAL, method)
        total, sent = metric(cell, "parameters_total"), metric(cell, "parameters_sent")
        positions.append(Position(row, _SENT, sent, _COUNT))
        for setting, column in _COLUMNS.items():
            of_setting = cell_name(data, setting, method)
            positions.append(Position(row, column, metric(of_setting, ACCURACY)))
        for setting, column in _COLUMNS.items():
            mean = settings.last_rounds(cell_name(data, setting, method))
            positions.append(Position(row, f"{column}, mean of the last ten rounds", mean))
        positions.append(Position(row, _KEPT, total - sent, _COUNT))
    return Grid(data, tuple(positions))


def _claims() -> Iterator[Claim]:
    for data in (MNIST, FMNIST, CIFAR):
        for setting in (UNIMODAL, MULTIMODAL):
            ours = metric(cell_name(data, setting, WAFFLE), ACCURACY)
            yield Claim(
                f"({data}, {setting}) WAFFLe's local test accuracy is higher than the baselines'.",
                tuple(
                    Check(
                        f"accuracy of {WAFFLE} - {method}",
                        ours - metric(cell_name(data, setting, method), ACCURACY),
                    )
                    for method in BASELINES
                ),
            )


EXPERIMENT = Experiment(
    paper="waffle",
    name="table1",
    title="Table 1: local test accuracy for Z = 2",
    settings=settings.SETTINGS,
    scales=settings.scales((UNIMODAL, MULTIMODAL), tuple(METHODS)),
    grids=tuple(_grid(data) for data in (MNIST, FMNIST, CIFAR)),
    printed=tuple(_printed()),
    claims=tuple(_claims()),
    notes=(
        *settings.NOTES,
        "The number of parameters is that of those that travel, the server's; each client of "
        "WAFFLe keeps three more for each factor, which the paper does not count. Of the last ten "
        "rounds every fourth is measured, from the last one back.",
        settings.CONTRADICTION,
    ),
)


if __name__ == "__main__":
    sys.exit(program.main(EXPERIMENT, __doc__))
