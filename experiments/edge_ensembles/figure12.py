"""Figure 12: activations of the last hidden layer on images of a class that one device has.

python -m experiments.edge_ensembles.figure12 --scale=quick --data_dir=DIR --output_dir=out

The run is one of Figures 5 to 7.
"""

import sys
from collections.abc import Iterator

import numpy as np
from matplotlib.figure import Figure as Drawing

from experiments.edge_ensembles import observed, settings, sizes
from experiments.edge_ensembles.settings import DEVICES, run_name
from experiments.edge_ensembles.sizes import Size
from experiments.study import program
from experiments.study.experiment import (
    Cell,
    Check,
    Claim,
    Experiment,
    Figure,
    Form,
    Grid,
    Position,
)
from experiments.study.measures import Measure, metric
from experiments.study.store import Results
from tff_het.evaluation import panels

_RUN = run_name()
_OWNER, _STRANGER = "D1", "D3"
_CORRELATION = Form(digits=3)


def _cells(size: Size) -> Iterator[Cell]:
    yield size.biased(_RUN)


def _alike(device: str) -> Measure:
    return metric(_RUN, f"{device}_activations")


def _draw(results: Results) -> Drawing | None:
    """Of the first seed that has them."""
    found = [runs for seed in results.seeds if (runs := results.ok([_RUN], seed))]
    if not found:
        return None
    arrays = np.load(found[0][_RUN].file(observed.ARRAYS))
    shown = {
        f"Model of {_OWNER}": _OWNER,
        "Ensemble": observed.ENSEMBLE,
        f"Model of {_STRANGER}": _STRANGER,
    }
    return panels.heat_maps(
        {title: arrays[f"{of}_activations"] for title, of in shown.items()},
        xlabel="unit of the last hidden layer",
        ylabel="test image of class 1",
        label="output",
    )


EXPERIMENT = Experiment(
    paper="edge_ensembles",
    name="figure12",
    title="Figure 12: activation patterns",
    settings=settings.SETTINGS,
    scales=sizes.scales(_cells),
    grids=(
        Grid(
            "Correlation of activations with the ensemble's, on ten test images of class 1",
            tuple(Position(d, "Correlation", _alike(d), _CORRELATION) for d in DEVICES),
        ),
    ),
    claims=(
        Claim(
            "The activations of D1, which has class 1, are more like the ensemble's than those of "
            "D3, which has no clue about it.",
            (
                Check(
                    f"correlation with the ensemble's, {_OWNER} - {_STRANGER}",
                    _alike(_OWNER) - _alike(_STRANGER),
                    form=_CORRELATION,
                ),
            ),
        ),
    ),
    figures=(
        Figure(
            "Activations of the last hidden layer, seed 0",
            "Three heat maps of 10 images by the nodes before the softmax layer: the model of D1, "
            "the ensemble, and the model of D3. The first is similar to the second and fairly "
            "different from the third.",
            _draw,
        ),
    ),
    notes=(
        *settings.NOTES,
        "The images are the first ten of class 1 in the test set. The paper prints no measure of "
        "similarity; ours is Pearson's correlation over all images and units.",
    ),
)


if __name__ == "__main__":
    sys.exit(program.main(EXPERIMENT, __doc__))
