"""Figure 9: active learning and random choice, with an ensemble and without.

python -m experiments.edge_ensembles.figure9 --scale=quick --data_dir=DIR --output_dir=out

The runs with an ensemble are those of Figure 8.
"""

import sys
from collections.abc import Iterator

from experiments.edge_ensembles import bars, settings, sizes
from experiments.edge_ensembles.settings import (
    DEVICES,
    ENSEMBLE,
    ENTROPY,
    INITIAL,
    ONCE,
    RANDOM,
    TRAINED_ACCURACY,
    accuracy,
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
)
from experiments.study.measures import Measure, metric

_FUNCTIONS = (RANDOM, ENTROPY)
_TITLES = {RANDOM: "Random choice", ENTROPY: "Active learning (max entropy)"}


def _alone(function: str) -> str:
    return f"{function}, without ensembling"


def _cells(size: Size) -> Iterator[Cell]:
    yield size.initial_cell(type_2=True)
    for function in _FUNCTIONS:
        yield size.active(function, function)
        yield size.active(_alone(function), function, frequency=ONCE)


def _bars(function: str) -> dict[str, Measure]:
    """In the order of the paper's figure."""
    return {
        INITIAL: metric(INITIAL, TRAINED_ACCURACY),
        ENSEMBLE: metric(function, TRAINED_ACCURACY),
        **{device: accuracy(_alone(function), device) for device in DEVICES},
    }


EXPERIMENT = Experiment(
    paper="edge_ensembles",
    name="figure9",
    title="Figure 9: active learning with an ensemble and without",
    settings=settings.SETTINGS,
    scales=sizes.scales(_cells),
    grids=(
        Grid(
            "Accuracy on the whole test set, Type II; devices without ensembling",
            tuple(
                Position(_TITLES[function], column, measure)
                for function in _FUNCTIONS
                for column, measure in _bars(function).items()
            ),
        ),
    ),
    claims=(
        Claim(
            "No matter whether random or active, the ensemble has a higher accuracy than any "
            "device without ensembling.",
            tuple(
                Check(
                    f"accuracy of the ensemble - {device}, {function}",
                    _bars(function)[ENSEMBLE] - _bars(function)[device],
                )
                for function in _FUNCTIONS
                for device in DEVICES
            ),
        ),
        Claim(
            "Active learning performs better than random choice, from the second bar to the last.",
            tuple(
                Check(
                    f"accuracy of active learning - random choice, {bar}",
                    _bars(ENTROPY)[bar] - _bars(RANDOM)[bar],
                )
                for bar in (ENSEMBLE, *DEVICES)
            ),
        ),
    ),
    figures=(
        Figure(
            "Initial accuracy, ensemble, and four devices without ensembling",
            "Six bars from left to right, for random choice and for active learning: initial "
            "accuracy, ensemble, and four models without an ensembling step. The ensemble is "
            "above the four, and active learning above random choice.",
            lambda results: bars.draw(
                results,
                {"": {_TITLES[function]: _bars(function) for function in _FUNCTIONS}},
                xlabel="model",
                ylabel="test accuracy (%)",
            ),
        ),
    ),
    notes=settings.NOTES,
)


if __name__ == "__main__":
    sys.exit(program.main(EXPERIMENT, __doc__))
