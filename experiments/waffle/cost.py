"""Times a round of WAFFLe against one of FedAvg on the same network.

python -m experiments.waffle.cost --scale=quick --data_dir=DIR --output_dir=out
"""

import sys
from collections.abc import Iterator, Sequence

from experiments.study import program, timing
from experiments.study.experiment import (
    Call,
    Cell,
    Check,
    Claim,
    Experiment,
    Form,
    Grid,
    Position,
    Scale,
)
from experiments.study.measures import Measure, metric
from experiments.waffle import settings
from experiments.waffle.settings import CIFAR, DATA, FMNIST, MNIST, UNIMODAL, WAFFLE, Size

_RATIO = Form(digits=2)


def _cells(
    size: Size, data: Sequence[str], rounds: int, seconds: float, num_seeds: int | None = None
) -> Iterator[Cell]:
    for name in data:
        flags = dict(size.training(name, UNIMODAL, WAFFLE).flags)
        del flags["method"]
        options = {"flags": flags, "methods": ("waffle", "fed_avg"), "rounds": rounds}
        call = Call(timing.round_times, options, (flags["dataset"],), alone=True)
        yield Cell(name, call, seconds, num_seeds=num_seeds)


def _times(data: str) -> Measure:
    """By how much a round of WAFFLe takes longer, as a factor."""
    return Measure((data,), lambda runs: 1 + runs[data].metrics["waffle_more"])


def _below_twice(data: str) -> Measure:
    return Measure((data,), lambda runs: 1 - runs[data].metrics["waffle_more"])


EXPERIMENT = Experiment(
    paper="waffle",
    name="cost",
    title="What a round costs",
    settings=f"{settings.SETTINGS} The paper says nothing about time.",
    scales={
        "smoke": Scale(
            tuple(_cells(settings.SMOKE, tuple(DATA), 1, 5.0)),
            num_seeds=1,
            note=settings.SMOKE_NOTE,
        ),
        "quick": Scale(
            (
                *_cells(settings.PAPER, (MNIST,), 20, 20.0),
                *_cells(settings.QUICK_CONVOLUTIONS, (FMNIST, CIFAR), 6, 60.0, 3),
            ),
            num_seeds=5,
            note="Rounds as in the paper, for FMNIST and CIFAR-10 with half as many clients; six "
            "of either method, 3 seeds (MNIST, whose rounds are short: 20, 5 seeds).",
        ),
        "paper": Scale(
            tuple(_cells(settings.PAPER, tuple(DATA), 20, 300.0)),
            num_seeds=5,
            note="The paper's rounds, 20 of either method, 5 seeds.",
        ),
    },
    grids=(
        Grid(
            "Rounds in turn, medians",
            tuple(
                position
                for data in DATA
                for position in (
                    Position(data, "FedAvg, s", metric(data, "fed_avg_seconds"), _RATIO),
                    Position(data, "WAFFLe, s", metric(data, "waffle_seconds"), _RATIO),
                    Position(data, "WAFFLe / FedAvg", _times(data), _RATIO),
                )
            ),
        ),
    ),
    claims=tuple(
        Claim(
            f"Ours: ({data}) a round of WAFFLe takes at most twice as long as one of FedAvg.",
            (Check("2 - WAFFLe / FedAvg", _below_twice(data), form=_RATIO),),
        )
        for data in DATA
    ),
    notes=(
        *settings.NOTES,
        "Training and aggregation alone, both methods in turn in one program. Times depend on the "
        "machine and what else it does; the factors much less.",
    ),
)


if __name__ == "__main__":
    sys.exit(program.main(EXPERIMENT, __doc__))
