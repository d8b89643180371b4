"""Figure 10: how far the devices' models are from the ensemble, layer by layer.

python -m experiments.edge_ensembles.figure10 --scale=quick --data_dir=DIR --output_dir=out

The runs are those of Figure 6.
"""

import itertools
import sys
from collections.abc import Iterator, Mapping

from matplotlib.figure import Figure as Drawing

from experiments.edge_ensembles import bars, settings, sizes
from experiments.edge_ensembles.settings import (
    DEVICES,
    ENSEMBLE,
    FREQUENCIES,
    accuracy,
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
    Form,
    Grid,
    Position,
)
from experiments.study.measures import Measure, metric
from experiments.study.store import Results, Run

# Of the least to the highest frequency, as the paper's panels go from the largest divergence on.
_PANELS = tuple(reversed(FREQUENCIES))
_BEST = _PANELS[2]  # Figure 10c.
_DIVERGENCE = Form(digits=3)
_LAYERS = {
    "fashion_mnist": ("conv_1", "conv_2", "conv_3", "conv_4", "dense_1", "output"),
    "digits": ("conv_1", "conv_2", "dense_1", "output"),
}


def _run(data: str, frequency: str) -> str:
    return f"{data}/{run_name(frequency=frequency)}"


def _cells(size: Size) -> Iterator[Cell]:
    for frequency in FREQUENCIES:
        yield size.biased(_run(size.flags["dataset"], frequency), frequency=frequency)


def _divergence(data: str, frequency: str, layer: str, device: str) -> Measure:
    return metric(_run(data, frequency), f"divergence_{layer}_{device}")


def _mean(data: str, frequency: str, layer: str) -> Measure:
    """Over devices."""
    cell = _run(data, frequency)

    def compute(runs: Mapping[str, Run]) -> float:
        found = runs[cell].metrics
        return sum(found[f"divergence_{layer}_{device}"] for device in DEVICES) / len(DEVICES)

    return Measure((cell,), compute)


def _grids(data: str) -> tuple[Grid, Grid]:
    return (
        Grid(
            f"Divergence, E = 45 ({data})",
            tuple(
                Position(
                    f"F = {frequency}, {layer}",
                    device,
                    _divergence(data, frequency, layer, device),
                    _DIVERGENCE,
                )
                for frequency in _PANELS
                for layer in _LAYERS[data]
                for device in DEVICES
            ),
        ),
        Grid(
            f"Accuracy on the whole test set ({data})",
            tuple(
                Position(f"F = {frequency}", of, accuracy(_run(data, frequency), of))
                for frequency in _PANELS
                for of in (*DEVICES, ENSEMBLE)
            ),
        ),
    )


def _claims(data: str) -> tuple[Claim, ...]:
    return (
        Claim(
            f"({data}) From Figure 10a to 10d, here from F = 1 to F = 10, the divergence of every "
            "layer decreases.",
            tuple(
                Check(
                    f"mean divergence of {layer}, F = {fewer} - F = {more}",
                    _mean(data, fewer, layer) - _mean(data, more, layer),
                    form=_DIVERGENCE,
                )
                for fewer, more in itertools.pairwise(_PANELS)
                for layer in _LAYERS[data]
            ),
        ),
        Claim(
            f"({data}) The ensemble is best at the third of the four levels, and worse where "
            "models differ more and where they differ less.",
            tuple(
                Check(
                    f"accuracy of the ensemble at F = {_BEST} - F = {other}",
                    accuracy(_run(data, _BEST)) - accuracy(_run(data, other)),
                )
                for other in _PANELS
                if other != _BEST
            ),
        ),
    )


def _draw_divergence(results: Results) -> Drawing | None:
    drawings = (
        bars.draw(
            results,
            {
                f"F = {frequency}": {
                    device: {
                        layer: _divergence(data, frequency, layer, device)
                        for layer in _LAYERS[data]
                    }
                    for device in DEVICES
                }
                for frequency in _PANELS
            },
            xlabel="layer",
            ylabel="divergence",
            factor=1.0,
            columns=2,
            share_y=False,
        )
        for data in _LAYERS
    )
    return next(filter(None, drawings), None)


def _draw_accuracy(results: Results) -> Drawing | None:
    drawings = (
        bars.draw(
            results,
            {
                f"F = {frequency}": {
                    "accuracy": {
                        of: accuracy(_run(data, frequency), of) for of in (*DEVICES, ENSEMBLE)
                    }
                }
                for frequency in _PANELS
            },
            xlabel="model",
            ylabel="test accuracy (%)",
            columns=4,
        )
        for data in _LAYERS
    )
    return next(filter(None, drawings), None)


EXPERIMENT = Experiment(
    paper="edge_ensembles",
    name="figure10",
    title="Figure 10: weight divergence and the ensemble",
    settings=f"{settings.SETTINGS} Divergence of a layer at a device: ||W_i - W|| / ||W_i||.",
    scales=sizes.scales(_cells),
    grids=tuple(grid for data in _LAYERS for grid in _grids(data)),
    claims=tuple(claim for data in _LAYERS for claim in _claims(data)),
    figures=(
        Figure(
            "Divergence of each layer and device",
            "Four panels, from the largest divergence (10a) to the smallest (10d), each with a "
            "scale of its own: bars of four devices for every layer of the network.",
            _draw_divergence,
        ),
        Figure(
            "Accuracy of four devices and of their ensemble",
            "Below each panel of divergence: the accuracy of the four devices and of the ensemble, "
            "which rises from 10a to 10c, the best, and not from there to 10d.",
            _draw_accuracy,
        ),
    ),
    notes=(
        *settings.NOTES,
        "The paper does not print which settings its four panels are of. Fixed before any run: "
        "E = 45 and F = 1, 2, 5, 10, with 10 acquisitions. Figure 6 has the ensemble's accuracy "
        "rising to F = 10, and so contradicts 10c's being the best if the panels are of these "
        "frequencies. A layer's W is its kernel and bias together.",
    ),
)


if __name__ == "__main__":
    sys.exit(program.main(EXPERIMENT, __doc__))
