"""Which q is best: WAFFLe's search over q-FFL's exponent, on validation examples.

python -m experiments.waffle.q_search --scale=quick --data_dir=DIR --output_dir=out
"""

import sys
from collections.abc import Iterator, Sequence

from experiments.harness import program
from experiments.harness.experiment import Cell, Check, Claim, Experiment, Grid, Position, Scale
from experiments.harness.measures import Measure, difference, metric
from experiments.waffle import settings
from experiments.waffle.settings import (
    CIFAR,
    FMNIST,
    MNIST,
    MULTIMODAL,
    Q_FFL,
    UNIMODAL,
    Size,
    cell_name,
)

# Of the paper; the first is its choice.
_SEARCHED = ("0.001", "0.005", "0.01", "0.1", "1", "3", "5")
_COARSE = ("0.001", "0.1", "1", "5")
_VALIDATION = "local_validation_accuracy_mean"
_DATA = (MNIST, FMNIST, CIFAR)


def _cell(data: str, setting: str, q: str) -> str:
    return f"{cell_name(data, setting, Q_FFL)}/q={q}"


def _cells(
    size: Size, data: Sequence[str], of: Sequence[str], searched: Sequence[str] = _SEARCHED
) -> Iterator[Cell]:
    for name in data:
        for setting in of:
            for q in searched:
                work = size.training(name, setting, Q_FFL, q=q, validation_fraction="0.1")
                yield Cell(_cell(name, setting, q), work, size.seconds)


def _accuracy(data: str, setting: str, q: str) -> Measure:
    return metric(_cell(data, setting, q), _VALIDATION)


EXPERIMENT = Experiment(
    paper="waffle",
    name="q_search",
    title="Section 4.1: the search for q",
    settings=f"{settings.SETTINGS} q was searched in 0.001, 0.005, 0.01, 0.1, 1, 3 and 5.",
    scales={
        "smoke": Scale(
            tuple(_cells(settings.SMOKE, (MNIST,), (UNIMODAL,))),
            num_seeds=1,
            note=settings.SMOKE_NOTE,
        ),
        "quick": Scale(
            tuple(
                _cells(settings.PAPER.changed(20.0, rounds="30"), (MNIST,), (UNIMODAL,), _COARSE)
            ),
            num_seeds=2,
            note="MNIST without sub-populations alone, four of the seven values, 30 rounds instead "
            "of 100, 2 seeds.",
        ),
        "paper": Scale(
            tuple(_cells(settings.PAPER, _DATA, (UNIMODAL, MULTIMODAL))),
            num_seeds=5,
            note="The paper's settings and values, 5 seeds.",
        ),
    },
    grids=tuple(
        Grid(
            f"{data}, {setting}: accuracy on validation examples",
            tuple(
                Position(f"q = {q}", "Validation accuracy", _accuracy(data, setting, q))
                for q in _SEARCHED
            ),
        )
        for data in _DATA
        for setting in (UNIMODAL, MULTIMODAL)
    ),
    claims=(
        Claim(
            "(MNIST, unimodal) q = 0.001 is better than the largest q.",
            (
                Check(
                    "validation accuracy of q = 0.001 - q = 5",
                    difference(
                        _accuracy(MNIST, UNIMODAL, "0.001"), _accuracy(MNIST, UNIMODAL, "5")
                    ),
                ),
            ),
        ),
    ),
    notes=(
        *settings.NOTES,
        "The paper does not say on which examples it searched. Here on a tenth of each client's "
        "training examples, set apart; test examples choose nothing, and Tables 1 and 2 have the "
        "printed 0.001.",
    ),
)


if __name__ == "__main__":
    sys.exit(program.main(EXPERIMENT, __doc__))
