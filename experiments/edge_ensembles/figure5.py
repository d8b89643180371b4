"""Figure 5: accuracy of devices and ensemble for more and more passes over an acquired batch.

python -m experiments.edge_ensembles.figure5 --scale=quick --data_dir=DIR --output_dir=out
"""

import itertools
import sys
from collections.abc import Iterator

from experiments.edge_ensembles import bars, settings, sizes
from experiments.edge_ensembles.settings import (
    DEVICES,
    ENSEMBLE,
    EPOCHS,
    INITIAL,
    MOST_EPOCHS,
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
    Figure,
    Grid,
    Position,
    Printed,
)
from experiments.study.measures import Measure, metric

_PLACE = "§IV-B"
_REACHED = "three local models reach the highest accuracy they can, 20%, 20%, 30%"
# How far from the paper's 15 % the initial model may be.
_NEAR = 0.05


def _cells(size: Size) -> Iterator[Cell]:
    yield size.initial_cell()
    for epochs in EPOCHS:
        yield size.biased(run_name(epochs), epochs=epochs)


def _rises(of: str) -> Claim:
    whose = "ensemble's" if of == ENSEMBLE else f"local model's ({of})"
    return Claim(
        f"The {whose} accuracy rises with the number of epochs.",
        tuple(
            Check(
                f"accuracy at E = {many} - E = {few}",
                accuracy(run_name(many), of) - accuracy(run_name(few), of),
            )
            for few, many in (("1", "15"), ("15", MOST_EPOCHS))
        ),
    )


def _steps() -> tuple[Check, ...]:
    return tuple(
        Check(
            f"accuracy of the ensemble at E = {more} - E = {fewer}",
            accuracy(run_name(more)) - accuracy(run_name(fewer)),
        )
        for fewer, more in itertools.pairwise(EPOCHS)
    )


def _distance_to(cell: str, value: float, near: float) -> Measure:
    return Measure((cell,), lambda runs: near - abs(runs[cell].metrics[TRAINED_ACCURACY] - value))


_POSITIONS = tuple(
    Position(run_name(epochs), of, accuracy(run_name(epochs), of))
    for epochs in EPOCHS
    for of in (*DEVICES, ENSEMBLE)
)

EXPERIMENT = Experiment(
    paper="edge_ensembles",
    name="figure5",
    title="Figure 5: local epochs",
    settings=settings.SETTINGS,
    scales=sizes.scales(_cells),
    grids=(
        Grid(
            "Accuracy on the whole test set, Type I",
            (Position(INITIAL, ENSEMBLE, metric(INITIAL, TRAINED_ACCURACY)), *_POSITIONS),
        ),
    ),
    printed=(
        Printed(INITIAL, ENSEMBLE, 15, "Note the initial accuracy is 15%", _PLACE),
        *(
            Printed(run_name(MOST_EPOCHS), device, 100 * own_share(device), _REACHED, _PLACE)
            for device in DEVICES[:3]
        ),
    ),
    claims=(
        Claim(
            "The initial training stops near 15 %.",
            (Check("5 points - distance", _distance_to(INITIAL, 0.15, _NEAR)),),
        ),
        _rises(ENSEMBLE),
        *map(_rises, DEVICES),
        Claim("The ensemble's accuracy almost monotonically increases with E.", _steps()),
    ),
    figures=(
        Figure(
            "Accuracy of four devices and of their ensemble",
            "Six panels of five bars each, one for each number of epochs: the devices' models and "
            "the ensemble. All rise with the number of epochs, and the ensemble ends above the "
            "devices.",
            lambda results: bars.draw(
                results,
                {
                    run_name(epochs): {
                        "accuracy": {
                            of: accuracy(run_name(epochs), of) for of in (*DEVICES, ENSEMBLE)
                        }
                    }
                    for epochs in EPOCHS
                },
                xlabel="model",
                ylabel="test accuracy (%)",
            ),
        ),
    ),
    notes=settings.NOTES,
)


if __name__ == "__main__":
    sys.exit(program.main(EXPERIMENT, __doc__))
