"""Section IV-B: one model that is trained on one device after another forgets what it learnt.

python -m experiments.edge_ensembles.sequential --scale=quick --data_dir=DIR --output_dir=out
"""

import sys
from collections.abc import Iterator, Mapping

from experiments.edge_ensembles import settings, sizes
from experiments.edge_ensembles.settings import (
    DEVICES,
    TRAINED_ACCURACY,
    accuracy,
    own_share,
    run_name,
)
from experiments.edge_ensembles.sizes import Size
from experiments.study import program
from experiments.study.experiment import (
    Cell,
    Check,
    Claim,
    Experiment,
    Grid,
    Position,
    Printed,
)
from experiments.study.measures import Measure, metric
from experiments.study.store import Run

_SEQUENTIAL, _ENSEMBLE = "Sequential training", "AveFL, E45F10"
_LAST = DEVICES[-1]


def _cells(size: Size) -> Iterator[Cell]:
    yield size.sequential(_SEQUENTIAL)
    yield size.biased(_ENSEMBLE)


def _after(round_num: int) -> Measure:
    def compute(runs: Mapping[str, Run]) -> float:
        return runs[_SEQUENTIAL].curve(TRAINED_ACCURACY)[1][round_num]

    return Measure((_SEQUENTIAL,), compute)


_RESULT = metric(_SEQUENTIAL, TRAINED_ACCURACY)

EXPERIMENT = Experiment(
    paper="edge_ensembles",
    name="sequential",
    title="Section IV-B: sequential training forgets",
    settings=f"{settings.SETTINGS} Here one model visits D1, D2, D3 and D4, for 10 acquisitions "
    f"each; beside it {run_name()} of Figures 5 to 7.",
    scales=sizes.scales(_cells),
    grids=(
        Grid(
            "Accuracy on the whole test set",
            (
                *(
                    Position(_SEQUENTIAL, f"After {device}", _after(place))
                    for place, device in enumerate(DEVICES[:-1])
                ),
                Position(_SEQUENTIAL, f"After {_LAST}", _RESULT),
                Position(_ENSEMBLE, f"After {_LAST}", accuracy(_ENSEMBLE)),
            ),
        ),
    ),
    printed=(
        Printed(
            _SEQUENTIAL,
            f"After {_LAST}",
            28,
            "capable of classifying the class corresponding to the last subset (around 28%)",
            "§IV-B",
        ),
    ),
    claims=(
        Claim(
            "The model forgets most of what it learnt before: it ends at most 3 points above the "
            "share of the last device's classes.",
            (
                Check(
                    "33 % - accuracy",
                    Measure(
                        (_SEQUENTIAL,),
                        lambda runs: (
                            own_share(_LAST) + 0.03 - runs[_SEQUENTIAL].metrics[TRAINED_ACCURACY]
                        ),
                    ),
                ),
            ),
        ),
        Claim(
            "An ensemble of the devices does better.",
            (
                Check(
                    f"accuracy of {_ENSEMBLE} - {_SEQUENTIAL.lower()}",
                    accuracy(_ENSEMBLE) - _RESULT,
                ),
            ),
        ),
    ),
    notes=settings.NOTES,
)


if __name__ == "__main__":
    sys.exit(program.main(EXPERIMENT, __doc__))
