"""Curves over rounds, as mean over seeds and in a band from the lowest to the highest."""

from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure as Drawing

from experiments.study.measures import Measure
from experiments.study.store import Results, Run

Lines = Mapping[str, tuple[str, str]]
"""Line -> the cell, and the column of its `metrics.csv`."""


def draw(results: Results, panels: Mapping[str, Lines]) -> Drawing | None:
    """Draws a panel for each title whose runs there are."""
    found: dict[str, dict[str, tuple[list[int], np.ndarray]]] = {}
    for title, lines in panels.items():
        for line, (cell, column) in lines.items():
            runs = [ok[cell] for seed in results.seeds if (ok := results.ok([cell], seed))]
            if runs:
                measured = [run.curve(column) for run in runs]
                values = np.array([curve[1] for curve in measured])
                found.setdefault(title, {})[line] = (measured[0][0], values)
    if not found:
        return None
    figure = Drawing(figsize=(5.5 * len(found), 4.2), layout="constrained")
    axes = figure.subplots(1, len(found), squeeze=False).flat
    for ax, (title, curves) in zip(axes, found.items(), strict=True):
        for line, (rounds, values) in curves.items():
            (drawn,) = ax.plot(rounds, 100 * values.mean(axis=0), label=line)
            low, high = 100 * values.min(axis=0), 100 * values.max(axis=0)
            ax.fill_between(rounds, low, high, alpha=0.15, color=drawn.get_color())
        ax.set(title=title, xlabel="round", ylabel="local test accuracy (%), mean and range")
        ax.grid(alpha=0.3)
        ax.legend()
    return figure


def mean_over_rounds(cell: str, column: str) -> Measure:
    """The mean of a curve over all rounds that were measured."""
    return Measure((cell,), lambda runs: float(np.mean(runs[cell].curve(column)[1])))


def roughness(cell: str, column: str) -> Measure:
    """Mean change of a curve between two measurements, over the run's second half."""

    def compute(runs: Mapping[str, Run]) -> float | None:
        moves = np.abs(np.diff(runs[cell].curve(column)[1]))
        return float(np.mean(moves[len(moves) // 2 :])) if len(moves) else None

    return Measure((cell,), compute)
