"""Figure 3 of HDAFL: test accuracy over the rounds, in the non-i.i.d and the disjoint setting.

python -m experiments.hdafl.figure3 --scale=quick --data_dir=DIR --output_dir=out

The runs are those of Table 3: what one of the two has made, the other finds done.
"""

import sys
from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure as Drawing

from experiments.hdafl import settings
from experiments.hdafl.settings import (
    DISJOINT,
    FEMNIST,
    FEMNIST_SMALL,
    METHODS,
    NON_IID,
    OMNIGLOT,
    SELECTED,
    STAND_IN,
)
from experiments.study import program
from experiments.study.experiment import Check, Claim, Experiment, Figure, Grid, Position
from experiments.study.measures import Measure
from experiments.study.store import Results, Run

_METRIC = "local_test_accuracy_mean"
_SHOWN = (NON_IID, DISJOINT)


def _cell(data: str, setting: str, selected: int, method: str) -> str:
    return settings.cell_name(data, setting, selected, METHODS[method])


def roughness(data: str, setting: str, selected: int, method: str) -> Measure:
    """Mean change of accuracy between two measurements, over the run's second half."""
    cell = _cell(data, setting, selected, method)

    def compute(runs: Mapping[str, Run]) -> float | None:
        _, values = runs[cell].curve(_METRIC)
        moves = np.abs(np.diff(values))
        return float(np.mean(moves[len(moves) // 2 :])) if len(moves) else None

    return Measure((cell,), compute)


def _grid(data: str, title: str, of: tuple[str, ...]) -> Grid:
    positions = tuple(
        Position(
            f"{setting}, {method}",
            {50: "C = 50 (31)", 31: "C = 50 (31)"}.get(selected, f"C = {selected}"),
            roughness(data, setting, selected, method),
        )
        for setting in of
        for method in METHODS
        for selected in SELECTED[setting]
    )
    return Grid(title, positions)


def _claims(data: str) -> tuple[Claim, ...]:
    few, _, many = SELECTED[NON_IID]

    def of(selected: int, method: str) -> Measure:
        return roughness(data, NON_IID, selected, method)

    return (
        Claim(
            f"non-i.i.d ({data}): curves are smoother when more clients participate.",
            tuple(
                Check(
                    f"roughness of {method}, C = {few} - C = {many}",
                    of(few, method) - of(many, method),
                )
                for method in METHODS
            ),
        ),
        Claim(
            f"non-i.i.d ({data}): with few clients, HDAFL's curve is smoother than FedAvg's.",
            (
                Check(
                    f"roughness of FedAvg - HDAFL, C = {few}",
                    of(few, "FedAvg") - of(few, "HDAFL"),
                ),
            ),
        ),
    )


def _draw(results: Results) -> Drawing | None:
    """The curves' means over seeds, and between the seeds' extremes a shade; one row a setting."""
    panels = [
        (data, setting)
        for data in (FEMNIST, FEMNIST_SMALL, STAND_IN, OMNIGLOT)
        for setting in _SHOWN
        if any(
            results.ok([_cell(data, setting, selected, method)], seed)
            for selected in SELECTED[setting]
            for method in METHODS
            for seed in results.seeds
        )
    ]
    if not panels:
        return None
    figure = Drawing(figsize=(9, 3.2 * len(panels)), layout="constrained")
    rows = figure.subplots(len(panels), len(METHODS), sharex="row", sharey="row", squeeze=False)
    for (data, setting), row in zip(panels, rows, strict=True):
        for method, ax in zip(METHODS, row, strict=True):
            for selected in SELECTED[setting]:
                cell = _cell(data, setting, selected, method)
                found = [results.ok([cell], seed) for seed in results.seeds]
                curves = [runs[cell].curve(_METRIC) for runs in found if runs is not None]
                if curves:
                    rounds, values = curves[0][0], np.array([c[1] for c in curves])
                    ax.plot(rounds, values.mean(axis=0), label=f"C = {selected}")
                    ax.fill_between(rounds, values.min(axis=0), values.max(axis=0), alpha=0.2)
            ax.set(title=f"{data}, {setting}, {method}", xlabel="round", ylabel="accuracy")
            ax.grid(alpha=0.3)
            if ax.has_data():
                ax.legend()
    return figure


EXPERIMENT = Experiment(
    paper="hdafl",
    name="figure3",
    title="Figure 3: test accuracy over the rounds",
    settings=settings.SETTINGS,
    scales=settings.scales(_SHOWN),
    grids=(
        _grid(FEMNIST, "Roughness in points, FEMNIST", _SHOWN),
        _grid(FEMNIST_SMALL, f"Roughness in points, {FEMNIST_SMALL}", _SHOWN),
        _grid(STAND_IN, "Roughness in points, stand-in for FEMNIST", _SHOWN),
        _grid(OMNIGLOT, "Roughness in points, Omniglot, without a claim", (NON_IID,)),
    ),
    claims=(*_claims(FEMNIST), *_claims(FEMNIST_SMALL), *_claims(STAND_IN)),
    figures=(
        Figure(
            "Clients' average test accuracy over the rounds",
            "The same over 400 rounds of FEMNIST: panels a and b non-i.i.d, c and d disjoint. The "
            "text says of non-i.i.d: HDAFL converges more quickly than FedAvg and to a higher "
            "accuracy; curves are smoother when more clients participate, and HDAFL's are so with "
            "fewer clients.",
            _draw,
        ),
    ),
    notes=(
        "C is the paper's; ours is in the scale's note. Lines are means over seeds, shades go from "
        "the lowest seed to the highest. The paper prints no measure of smoothness. Ours, the "
        "roughness, is the mean change of a run's accuracy from one measurement to the next, up or "
        "down, over the second half of its rounds.",
        *settings.NOTES,
    ),
)


if __name__ == "__main__":
    sys.exit(program.main(EXPERIMENT, __doc__))
