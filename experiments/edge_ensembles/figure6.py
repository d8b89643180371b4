"""Figure 6: accuracy of devices and ensemble for fewer and fewer ensembling steps.

python -m experiments.edge_ensembles.figure6 --scale=quick --data_dir=DIR --output_dir=out
"""

import itertools
import sys
from collections.abc import Iterator

from experiments.edge_ensembles import bars, settings, sizes
from experiments.edge_ensembles.settings import (
    DEVICES,
    ENSEMBLE,
    FREQUENCIES,
    OFTEN,
    ONCE,
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
)
from experiments.study.measures import Measure

# By how much a local model may exceed the share of its classes.
_MARGIN = 0.03


def _cells(size: Size) -> Iterator[Cell]:
    for frequency in FREQUENCIES:
        yield size.biased(run_name(frequency=frequency), frequency=frequency)


def _run(frequency: str) -> str:
    return run_name(frequency=frequency)


def _below_share(device: str) -> Measure:
    return own_share(device) + _MARGIN - accuracy(_run(ONCE), device)


EXPERIMENT = Experiment(
    paper="edge_ensembles",
    name="figure6",
    title="Figure 6: ensembling frequency",
    settings=settings.SETTINGS,
    scales=sizes.scales(_cells),
    grids=(
        Grid(
            "Accuracy on the whole test set, Type I",
            tuple(
                Position(_run(frequency), of, accuracy(_run(frequency), of))
                for frequency in FREQUENCIES
                for of in (*DEVICES, ENSEMBLE)
            ),
        ),
    ),
    claims=(
        Claim(
            "The ensemble's accuracy decreases with the ensembling frequency, from 10 to 1.",
            (
                Check(
                    "accuracy at F = 10 - F = 1",
                    accuracy(_run(OFTEN)) - accuracy(_run(ONCE)),
                ),
            ),
        ),
        Claim(
            "It does so from each frequency to the next.",
            tuple(
                Check(
                    f"accuracy at F = {more} - F = {fewer}",
                    accuracy(_run(more)) - accuracy(_run(fewer)),
                )
                for more, fewer in itertools.pairwise(FREQUENCIES)
            ),
        ),
        Claim(
            "Local models that were never part of an ensemble reach at most their classes' share "
            "of the test set and 3 points (20, 20, 30 and 30 %).",
            tuple(
                Check(f"share + 3 points - accuracy of {device}", _below_share(device))
                for device in DEVICES
            ),
        ),
    ),
    figures=(
        Figure(
            "Accuracy of four devices and of their ensemble",
            "Four panels of five bars each, for F = 10, 5, 2 and 1 at E = 45: the lower the "
            "frequency, the lower the ensemble.",
            lambda results: bars.draw(
                results,
                {
                    _run(frequency): {
                        "accuracy": {
                            of: accuracy(_run(frequency), of) for of in (*DEVICES, ENSEMBLE)
                        }
                    }
                    for frequency in FREQUENCIES
                },
                xlabel="model",
                ylabel="test accuracy (%)",
                columns=4,
            ),
        ),
    ),
    notes=(*settings.NOTES, "E45F10 is a run of Figure 5 as well."),
)


if __name__ == "__main__":
    sys.exit(program.main(EXPERIMENT, __doc__))
