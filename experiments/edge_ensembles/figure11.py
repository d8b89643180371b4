"""Figure 11: how many images of each class devices and ensembles classify correctly.

python -m experiments.edge_ensembles.figure11 --scale=quick --data_dir=DIR --output_dir=out

The runs are those of Figure 7.
"""

import sys
from collections.abc import Collection, Iterator, Mapping

from matplotlib.figure import Figure as Drawing

from experiments.edge_ensembles import bars, observed, settings, sizes
from experiments.edge_ensembles.settings import (
    AVE,
    CLASSES,
    DEVICES,
    ENSEMBLE,
    MIX,
    NUM_CLASSES,
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

_METHODS = (AVE, MIX)
# Coat and shirt.
_DIFFICULT = (4, 6)
# Of what a device classifies correctly, what may be of classes that it has not.
_STRAY = 0.01
_COUNT = Form(digits=0)


def _run(method: str) -> str:
    return run_name(method=method)


def _cells(size: Size) -> Iterator[Cell]:
    for method in _METHODS:
        yield size.biased(_run(method), method=method)


def _name(of: str, label: int) -> str:
    return f"{observed.ENSEMBLE if of == ENSEMBLE else of}_correct_{label}"


def _correct(method: str, of: str, label: int) -> Measure:
    return metric(_run(method), _name(of, label))


def _sum(run: Run, of: str, labels: Collection[int]) -> float:
    return sum(run.metrics[_name(of, label)] for label in labels)


def _own_only(device: str) -> Measure:
    def compute(runs: Mapping[str, Run]) -> float | None:
        everything = _sum(runs[_run(AVE)], device, range(NUM_CLASSES))
        own = _sum(runs[_run(AVE)], device, CLASSES[device])
        return _STRAY - (everything - own) / everything if everything else None

    return Measure((_run(AVE),), compute)


def _advantage(runs: Mapping[str, Run]) -> float:
    """In images a class."""
    run = runs[_run(AVE)]
    easy = [label for label in range(NUM_CLASSES) if label not in _DIFFICULT]
    return _sum(run, ENSEMBLE, easy) / len(easy) - _sum(run, ENSEMBLE, _DIFFICULT) / len(_DIFFICULT)


def _known(runs: Mapping[str, Run]) -> float:
    """Counts the classes with at least a tenth of the best class's correct answers."""
    counts = [_sum(runs[_run(AVE)], ENSEMBLE, [label]) for label in range(NUM_CLASSES)]
    return float(sum(count >= max(counts) / 10 for count in counts))


def _draw(results: Results, method: str) -> Drawing | None:
    panels = {"Devices, before ensembling": DEVICES, "Ensemble": (ENSEMBLE,)}
    return bars.draw(
        results,
        {
            title: {
                of: {str(label): _correct(method, of, label) for label in range(NUM_CLASSES)}
                for of in shown
            }
            for title, shown in panels.items()
        },
        xlabel="class",
        ylabel="correctly classified test images",
        factor=1.0,
    )


EXPERIMENT = Experiment(
    paper="edge_ensembles",
    name="figure11",
    title="Figure 11: what devices and ensembles know",
    settings=settings.SETTINGS,
    scales=sizes.scales(_cells),
    grids=tuple(
        Grid(
            f"Correctly classified test images of each class, {method}",
            tuple(
                Position(of, f"class {label}", _correct(method, of, label), _COUNT)
                for of in (*DEVICES, ENSEMBLE)
                for label in range(NUM_CLASSES)
            ),
        )
        for method in _METHODS
    ),
    claims=(
        Claim(
            "Local models can only predict the classes generated at their own device: at most 1 % "
            "of what they classify correctly is of another.",
            tuple(Check(f"1 % - share of other classes, {d}", _own_only(d)) for d in DEVICES),
        ),
        Claim(
            "The average model can predict most of the classes: more than five, each at least a "
            "tenth as often as the best one.",
            (Check("classes", Measure((_run(AVE),), _known), margin=5.0, form=_COUNT),),
        ),
        Claim(
            "It has difficulty with classes 4 (coat) and 6 (shirt).",
            (
                Check(
                    "correct images a class, others - classes 4 and 6",
                    Measure((_run(AVE),), _advantage),
                    form=_COUNT,
                ),
            ),
        ),
    ),
    figures=(
        Figure(
            "AveFL",
            "Two histograms of correctly classified images by class (11a): the four devices, each "
            "of which knows its own classes alone, and the average model, which knows most "
            "classes but 4 and 6.",
            lambda results: _draw(results, AVE),
        ),
        Figure(
            "MixFL",
            "The same for the mixed ensemble (11b), which has learnt another distribution of "
            "classes at a similar accuracy.",
            lambda results: _draw(results, MIX),
        ),
    ),
    notes=settings.NOTES,
)


if __name__ == "__main__":
    sys.exit(program.main(EXPERIMENT, __doc__))
