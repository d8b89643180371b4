"""Figure 2 of WAFFLe: how accuracy is distributed over the clients of either sub-population.

python -m experiments.waffle.figure2 --scale=quick --data_dir=DIR --output_dir=out

The runs are those of Table 2: what one has made, the other finds done.
"""

import csv
import sys

import numpy as np
from matplotlib.figure import Figure as Drawing

from experiments.study import program
from experiments.study.experiment import PERCENT, Experiment, Figure, Grid, Position
from experiments.study.measures import metric
from experiments.study.store import Results, Run
from experiments.waffle import settings
from experiments.waffle.settings import (
    CIFAR,
    FED_AVG,
    FMNIST,
    MNIST,
    MULTIMODAL,
    WAFFLE,
    cell_name,
)
from tff_het.evaluation import figures

_METHODS = (FED_AVG, WAFFLE)
_COLUMNS = {
    "Lowest client": "local_test_accuracy_min",
    "Mean of the worst tenth": "local_test_accuracy_worst_decile",
    "Median": "local_test_accuracy_median",
}


def _by_group(run: Run) -> dict[str, list[float]]:
    """Every client's accuracy after the last round."""
    with run.file("clients.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if row["split"] == "test"]
    found: dict[str, list[float]] = {}
    for row in rows:
        if row["round"] == rows[-1]["round"]:
            found.setdefault(row["group"], []).append(float(row["accuracy"]))
    return found


def _draw(results: Results) -> Drawing | None:
    """A panel for each data set and method, with the clients of all seeds."""
    panels = {}
    for data in (MNIST, FMNIST, CIFAR):
        for method in _METHODS:
            cell = cell_name(data, MULTIMODAL, method)
            runs = [found[cell] for s in results.seeds if (found := results.ok([cell], s))]
            if runs:
                seeds = [_by_group(run) for run in runs]
                groups = {g: np.concatenate([own[g] for own in seeds]) for g in seeds[0]}
                panels[f"{data}, {method}"] = groups
    return figures.histograms_by_group(panels, columns=len(_METHODS)) if panels else None


EXPERIMENT = Experiment(
    paper="waffle",
    name="figure2",
    title="Figure 2: accuracy of the clients in both sub-populations",
    settings=settings.SETTINGS,
    scales=settings.scales((MULTIMODAL,), _METHODS),
    grids=tuple(
        Grid(
            data,
            tuple(
                Position(method, column, metric(cell_name(data, MULTIMODAL, method), name), PERCENT)
                for method in _METHODS
                for column, name in _COLUMNS.items()
            ),
        )
        for data in (MNIST, FMNIST, CIFAR)
    ),
    figures=(
        Figure(
            "Clients' local test accuracy after the last round",
            "The distribution over clients for FedAvg and WAFFLe on MNIST, FMNIST and CIFAR-10: "
            "with FedAvg the minority lies far below the majority, with WAFFLe close to it.",
            _draw,
        ),
    ),
    notes=(*settings.NOTES, "The picture shows the clients of all seeds together."),
)


if __name__ == "__main__":
    sys.exit(program.main(EXPERIMENT, __doc__))
