"""Figure 7: three ways of making one model of four, and the devices without any.

python -m experiments.edge_ensembles.figure7 --scale=quick --data_dir=DIR --output_dir=out
"""

import sys
from collections.abc import Iterator

from experiments.edge_ensembles import bars, settings, sizes
from experiments.edge_ensembles.settings import (
    AVE,
    BUDGET,
    DEVICES,
    INITIAL,
    LARGE_BUDGET,
    METHODS,
    MIX,
    ONCE,
    OPT,
    TRAINED_ACCURACY,
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
    Grid,
    Position,
)
from experiments.study.measures import Measure, metric

_BUDGETS = (BUDGET, LARGE_BUDGET)
# What counts as no big difference.
_BIG = 0.05


def _run(method: str, budget: int) -> str:
    return run_name(method=method, budget=budget)


def _alone(budget: int) -> str:
    return run_name(frequency=ONCE, budget=budget)


def _cells(size: Size) -> Iterator[Cell]:
    yield size.initial_cell()
    for budget in _BUDGETS:
        for method in METHODS:
            yield size.biased(_run(method, budget), method=method, budget=budget)
        yield size.biased(_alone(budget), frequency=ONCE, budget=budget)


def _by_test_data(method: str) -> str:
    return f"{_run(method, BUDGET)}, judged by the test set"


def _more_cells(size: Size) -> Iterator[Cell]:
    """With the paper's way of judging models."""
    yield from _cells(size)
    for method in (OPT, MIX):
        yield size.judged_by_test_set(_by_test_data(method), method)


def _bars(budget: int) -> dict[str, Measure]:
    """What stands beside one another, by the paper's names."""
    return {
        "ACC_0": metric(INITIAL, TRAINED_ACCURACY),
        **{method: accuracy(_run(method, budget)) for method in METHODS},
        **{device: accuracy(_alone(budget), device) for device in DEVICES},
    }


def _row(budget: int) -> str:
    return f"{budget} acquisitions"


def _gap(method: str, budget: int) -> Measure:
    """Margin left of 5 points."""
    return _BIG - abs(accuracy(_run(method, budget)) - accuracy(_run(MIX, budget)))


def _no_big_difference(text: str, method: str) -> Claim:
    return Claim(
        text,
        tuple(
            Check(f"5 points - distance, {_row(budget)}", _gap(method, budget))
            for budget in _BUDGETS
        ),
    )


EXPERIMENT = Experiment(
    paper="edge_ensembles",
    name="figure7",
    title="Figure 7: ensemble strategies",
    settings=settings.SETTINGS,
    scales=sizes.scales(_cells) | sizes.scales(_more_cells, ("smoke", "paper")),
    grids=(
        Grid(
            "Accuracy on the whole test set, Type I; devices without ensembling",
            tuple(
                Position(_row(budget), column, measure)
                for budget in _BUDGETS
                for column, measure in _bars(budget).items()
            ),
        ),
        Grid(
            "Models judged by the test set, as in the paper",
            tuple(
                Position(_row(BUDGET), method, metric(_by_test_data(method), TRAINED_ACCURACY))
                for method in (OPT, MIX)
            ),
        ),
    ),
    claims=(
        _no_big_difference(
            "There is no big difference (5 points) between OptFL and MixFL, with 10 acquisitions "
            "and with 20.",
            OPT,
        ),
        _no_big_difference(
            "The overall accuracy of MixFL and AveFL is similar (within 5 points; §IV-F).", AVE
        ),
    ),
    figures=(
        Figure(
            "Initial accuracy, three strategies, and devices without ensembling",
            "Two panels, 10 and 20 acquisitions: the initial accuracy (ACC_0), AveFL, OptFL and "
            "MixFL, and the four local models without considering the ensemble, which are below "
            "the three.",
            lambda results: bars.draw(
                results,
                {_row(budget): {"accuracy": _bars(budget)} for budget in _BUDGETS},
                xlabel="model",
                ylabel="test accuracy (%)",
                columns=1,
            ),
        ),
    ),
    notes=(
        *settings.NOTES,
        f"{AVE} with 10 acquisitions is a run of Figures 5 and 6, and so are its devices.",
    ),
)


if __name__ == "__main__":
    sys.exit(program.main(EXPERIMENT, __doc__))
