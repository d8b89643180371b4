"""Bars of measures, as mean over seeds and with a line from the lowest to the highest."""

from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure as Drawing

from experiments.study.measures import Measure
from experiments.study.sections import values
from experiments.study.store import Results
from tff_het.evaluation import panels


def draw(
    results: Results,
    measures: Mapping[str, Mapping[str, Mapping[str, Measure]]],
    *,
    xlabel: str,
    ylabel: str,
    factor: float = 100.0,
    columns: int = 3,
    share_y: bool = True,
) -> Drawing | None:
    """Draws the panels of which there is any bar, or None.

    Args:
      results: The runs.
      measures: Panel -> bar -> group -> measure.
      xlabel: What the groups are.
      ylabel: The measure, in the unit that `factor` makes of it.
      factor: What numbers are multiplied with.
      columns: Panels in a row.
      share_y: Whether all panels have one scale.
    """
    groups = list(dict.fromkeys(g for p in measures.values() for b in p.values() for g in b))
    found = {
        title: {name: _bars(bar, groups, results, factor) for name, bar in panel.items()}
        for title, panel in measures.items()
    }
    found = {
        title: panel
        for title, panel in found.items()
        if not all(np.isnan(bar.height).all() for bar in panel.values())
    }
    if not found:
        return None
    return panels.bars(
        found, groups, xlabel=xlabel, ylabel=ylabel, columns=columns, share_y=share_y
    )


def _bars(
    bar: Mapping[str, Measure], groups: list[str], results: Results, factor: float
) -> panels.Bars:
    of_groups = [values(bar[group], results) if group in bar else [] for group in groups]
    height, low, high = (
        np.array([factor * summary(found) if found else np.nan for found in of_groups])
        for summary in (np.mean, np.min, np.max)
    )
    return panels.Bars(height, low, high)
