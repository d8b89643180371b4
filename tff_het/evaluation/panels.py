"""Figures of several panels side by side: bars in groups, and heat maps."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tff_het.evaluation.figures import COLOURS, tidy

_GROUP_INCHES = 0.45
_LONG_GROUP = 6  # Characters that fit under a group.


class Bars(NamedTuple):
    """One bar in each group.

    Attributes:
      height: [groups]; nan where there is none.
      low: [groups], lower end of a line over each bar; None without one.
      high: [groups], upper end of the line; None without one.
    """

    height: npt.ArrayLike
    low: npt.ArrayLike | None = None
    high: npt.ArrayLike | None = None


def bars(
    panels: Mapping[str, Mapping[str, Bars]],
    groups: Sequence[str],
    *,
    xlabel: str,
    ylabel: str,
    columns: int = 3,
    share_y: bool = True,
) -> Figure:
    """Draws grouped bars, one colour per name.

    Args:
      panels: By the panel's title, bars by name.
      groups: What stands under each group, the same in all panels.
      xlabel: What the groups are.
      ylabel: The measure and its unit.
      columns: Panels in a row.
      share_y: Whether all panels have one scale.

    Raises:
      ValueError: If there are no panels, one is empty, or a bar is not there for every group.
    """
    for title, named in panels.items():
        sizes = {name: [np.size(p) for p in one if p is not None] for name, one in named.items()}
        if not named or any(set(size) != {len(groups)} for size in sizes.values()):
            raise ValueError(
                f"Panel {title!r} needs bars for each of {len(groups)} groups, found {sizes}."
            )
    figure, axes = _axes(
        panels, columns, inches=(1.2 + _GROUP_INCHES * len(groups), 3.2), share_y=share_y
    )
    names = list(dict.fromkeys(name for named in panels.values() for name in named))
    turned = max(map(len, groups)) > _LONG_GROUP
    for (title, named), ax in zip(panels.items(), axes, strict=True):
        _draw_bars(ax, named, names)
        ax.set_xticks(range(len(groups)), list(groups), rotation=90 if turned else 0)
        ax.set(title=title, xlabel=xlabel, ylabel=ylabel)
        tidy(ax)
    if len(names) > 1:
        drawn = {patch.get_label(): patch for ax in axes for patch in ax.containers}
        handles = [drawn[name] for name in names]
        figure.legend(handles=handles, loc="outside right center", frameon=False)
    return figure


def heat_maps(
    panels: Mapping[str, npt.ArrayLike], *, xlabel: str, ylabel: str, label: str, columns: int = 3
) -> Figure:
    """Draws tables of numbers as colours, all on one scale.

    Args:
      panels: By the panel's title, [rows, columns].
      xlabel: What the columns are.
      ylabel: What the rows are.
      label: The measure and its unit.
      columns: Panels in a row.

    Raises:
      ValueError: If there are no panels, or one is no table.
    """
    tables = {title: np.asarray(table, np.float64) for title, table in panels.items()}
    if wrong := {
        t: table.shape for t, table in tables.items() if table.ndim != 2 or not table.size
    }:
        raise ValueError(f"A heat map needs a table [rows, columns]; found the shapes {wrong}.")
    figure, axes = _axes(tables, columns, inches=(4.2, 2.6), share_y=True)
    low = min(table.min() for table in tables.values())
    high = max(table.max() for table in tables.values())
    for (title, table), ax in zip(tables.items(), axes, strict=True):
        image = ax.imshow(table, aspect="auto", vmin=low, vmax=high, interpolation="nearest")
        ax.set(title=title, xlabel=xlabel, ylabel=ylabel)
    figure.colorbar(image, ax=axes, label=label)
    return figure


def _axes(
    panels: Mapping[str, object], columns: int, *, inches: tuple[float, float], share_y: bool
) -> tuple[Figure, list[Axes]]:
    if not panels:
        raise ValueError("There are no panels to draw.")
    columns = min(len(panels), columns)
    rows = -(-len(panels) // columns)
    width, height = inches
    figure = Figure(figsize=(width * columns + 1.5, height * rows), layout="constrained")
    axes = list(figure.subplots(rows, columns, sharey=share_y, squeeze=False).flat)
    for ax in axes[len(panels) :]:
        ax.remove()
    return figure, axes[: len(panels)]


def _draw_bars(ax: Axes, named: Mapping[str, Bars], names: Sequence[str]) -> None:
    width = 0.8 / len(named)
    for index, (name, (height, low, high)) in enumerate(named.items()):
        height = np.asarray(height, np.float64)
        x = np.arange(len(height)) + (index - (len(named) - 1) / 2) * width
        colour = COLOURS[names.index(name) % len(COLOURS)]
        ax.bar(x, height, width, color=colour, label=name)
        if low is not None and high is not None:
            ax.vlines(x, low, high, color="black", linewidth=1)
