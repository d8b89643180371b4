"""Section III-D: batch normalisation and ensembles of devices with different classes.

python -m experiments.edge_ensembles.batch_normalization --scale=quick --data_dir=DIR \
    --output_dir=out
"""

import sys
from collections.abc import Iterator

from experiments.edge_ensembles import bars, settings, sizes
from experiments.edge_ensembles.settings import DEVICES, ENSEMBLE, accuracy
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

_WITHOUT = "Without batch normalisation"
_AVERAGED = "With, statistics averaged"
_KEPT = "With, statistics kept at the device"
_RUNS = (_WITHOUT, _AVERAGED, _KEPT)
_QUOTE = (
    "the ensemble model performs very poorly (e.g. 20% accuracy whereas without batch "
    "normalization 47%)"
)


def _cells(size: Size) -> Iterator[Cell]:
    normalised = {"model": size.normalised}
    yield size.biased(_WITHOUT)
    yield size.biased(_AVERAGED, network=normalised)
    yield size.biased(_KEPT, network=normalised, local_statistics="true")


EXPERIMENT = Experiment(
    paper="edge_ensembles",
    name="batch_normalization",
    title="Section III-D: batch normalisation",
    settings=settings.SETTINGS,
    scales=sizes.scales(_cells),
    grids=(
        Grid(
            "Accuracy on the whole test set, Type I, E45F10",
            tuple(
                Position(run, of, accuracy(run, of)) for run in _RUNS for of in (*DEVICES, ENSEMBLE)
            ),
        ),
    ),
    printed=(
        Printed(_WITHOUT, ENSEMBLE, 47, _QUOTE, "§III-D"),
        Printed(_AVERAGED, ENSEMBLE, 20, _QUOTE, "§III-D"),
    ),
    claims=(
        Claim(
            "With batch normalisation the ensemble performs worse, its moving statistics being "
            "averaged like weights.",
            (
                Check(
                    f"accuracy of the ensemble, {_WITHOUT.lower()} - with",
                    accuracy(_WITHOUT) - accuracy(_AVERAGED),
                ),
            ),
        ),
        Claim(
            "So it does where each device keeps its moving statistics.",
            (
                Check(
                    f"accuracy of the ensemble, {_WITHOUT.lower()} - with, statistics kept",
                    accuracy(_WITHOUT) - accuracy(_KEPT),
                ),
            ),
        ),
    ),
    figures=(
        Figure(
            "Accuracy of four devices and of their ensemble",
            "There is no figure in the paper, only the two numbers.",
            lambda results: bars.draw(
                results,
                {
                    run: {"accuracy": {of: accuracy(run, of) for of in (*DEVICES, ENSEMBLE)}}
                    for run in _RUNS
                },
                xlabel="model",
                ylabel="test accuracy (%)",
            ),
        ),
    ),
    notes=(
        *settings.NOTES,
        "Where devices keep their moving statistics, there is no single ensemble: the number is "
        "the mean over devices of what each predicts with, the averaged weights and its own "
        "statistics. Batch normalisation has its own initial training, to the same accuracy.",
    ),
)


if __name__ == "__main__":
    sys.exit(program.main(EXPERIMENT, __doc__))
