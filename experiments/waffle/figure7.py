"""Figure 7 of WAFFLe: CIFAR-10 with three and four classes at each client.

python -m experiments.waffle.figure7 --scale=quick --data_dir=DIR --output_dir=out
"""

import sys
from collections.abc import Iterator

from experiments.study import program
from experiments.study.experiment import (
    Cell,
    Check,
    Claim,
    Experiment,
    Figure,
    Grid,
    Position,
    Scale,
)
from experiments.study.measures import Measure, metric
from experiments.waffle import curves, settings
from experiments.waffle.settings import ACCURACY, CIFAR, FED_AVG, UNIMODAL, WAFFLE, Size

_METHODS = (FED_AVG, WAFFLE)
_CLASSES = ("3", "4")
_GAIN = f"{WAFFLE} - {FED_AVG}"


def _cell(classes: str, method: str) -> str:
    return f"{settings.cell_name(CIFAR, UNIMODAL, method)}/Z={classes}"


def _cells(size: Size) -> Iterator[Cell]:
    for classes in _CLASSES:
        for method in _METHODS:
            work = size.training(CIFAR, UNIMODAL, method, shards_per_client=classes)
            seconds = size.seconds * (2 if method == WAFFLE else 1)
            yield Cell(_cell(classes, method), work, seconds)


def _column(classes: str) -> str:
    return f"Z = {classes}"


def _gain(classes: str) -> Measure:
    ours, theirs = (metric(_cell(classes, m), ACCURACY) for m in (WAFFLE, FED_AVG))
    return ours - theirs


EXPERIMENT = Experiment(
    paper="waffle",
    name="figure7",
    title="Figure 7: less heterogeneity on CIFAR-10",
    settings=f"{settings.SETTINGS} Here CIFAR-10 without sub-populations, Z = 3 and 4.",
    scales={
        "smoke": Scale(tuple(_cells(settings.SMOKE)), num_seeds=1, note=settings.SMOKE_NOTE),
        "quick": Scale(
            tuple(_cells(settings.QUICK_CONVOLUTIONS)),
            num_seeds=2,
            note="Not the paper's settings: 30 rounds instead of 100, in which 5 % of the clients "
            "train instead of 10 %; 2 seeds.",
        ),
        "paper": Scale(
            tuple(_cells(settings.PAPER)), num_seeds=5, note="The paper's settings, 5 seeds."
        ),
    },
    grids=(
        Grid(
            "Local test accuracy after the last round",
            (
                *(
                    Position(method, _column(classes), metric(_cell(classes, method), ACCURACY))
                    for method in _METHODS
                    for classes in _CLASSES
                ),
                *(Position(_GAIN, _column(classes), _gain(classes)) for classes in _CLASSES),
            ),
        ),
    ),
    printed=tuple(
        settings.printed(
            _GAIN,
            tuple(map(_column, _CLASSES)),
            "outperforms FedAvg by 7.20% and 2.74%, respectively",
            "Appendix E",
        )
    ),
    claims=(
        Claim(
            "WAFFLe still outperforms FedAvg with three and four classes at each client.",
            tuple(
                Check(f"accuracy of {_GAIN}, {_column(classes)}", _gain(classes))
                for classes in _CLASSES
            ),
        ),
    ),
    figures=(
        Figure(
            "Local test accuracy over the rounds",
            "FedAvg and WAFFLe on CIFAR-10 for Z = 3 and Z = 4: WAFFLe takes longer to converge "
            "than for Z = 2, and ends above FedAvg.",
            lambda results: curves.draw(
                results,
                {
                    _column(classes): {
                        method: (_cell(classes, method), ACCURACY) for method in _METHODS
                    }
                    for classes in _CLASSES
                },
            ),
        ),
    ),
    notes=settings.NOTES,
)


if __name__ == "__main__":
    sys.exit(program.main(EXPERIMENT, __doc__))
