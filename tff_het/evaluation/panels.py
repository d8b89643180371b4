"""Figures of several panels side by side: bars in groups, and heat maps."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tff_het.evaluation.figures import COLOURS, grid, tidy

_GROUP_INCHES, _ASIDE = 0.45, 1.5  # The second one is for a legend or a colour bar.
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
    size = (1.2 + _GROUP_INCHES * len(groups), 3.2)
    figure, axes = grid(len(panels), columns, size, share_y=share_y, aside=_ASIDE)
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
    panels: Mapping[str, npt.ArrayLike],
    *,
    xlabel: str,
    ylabel: str,
    label: str,
    columns: int = 3,
    size: tuple[float, float] = (4.2, 2.6),
    imshow: Mapping[str, Any] | None = None,
) -> Figure:
    """Draws tables of numbers as colours.

    Args:
      panels: By the panel's title, [rows, columns].
      xlabel: What the columns are.
      ylabel: What the rows are.
      label: The measure and its unit.
      columns: Panels in a row.
      size: Width and height of a panel in inches.
      imshow: Options of `Axes.imshow`, with which each panel has a scale of its own. Default: all
        have one.

    Raises:
      ValueError: If there are no panels, or one is no table.
    """
    tables = {title: np.asarray(table) for title, table in panels.items()}
    if wrong := {
        t: table.shape for t, table in tables.items() if table.ndim != 2 or not table.size
    }:
        raise ValueError(f"A heat map needs a table [rows, columns]; found the shapes {wrong}.")
    one_scale = imshow is None
    aside = _ASIDE if one_scale else 0.0
    figure, axes = grid(len(tables), columns, size, share_y=one_scale, aside=aside)
    if imshow is None:
        ends = [(table.min(), table.max()) for table in tables.values()]
        imshow = {"vmin": min(low for low, _ in ends), "vmax": max(high for _, high in ends)}
    for (title, table), ax in zip(tables.items(), axes, strict=True):
        image = ax.imshow(table, aspect="auto", interpolation="nearest", **imshow)
        ax.set(title=title, xlabel=xlabel, ylabel=ylabel)
        if not one_scale:
            ax.locator_params(integer=True)
            figure.colorbar(image, ax=ax, location="bottom", label=label)
    if one_scale:
        figure.colorbar(image, ax=axes, label=label)
    return figure


def _draw_bars(ax: Axes, named: Mapping[str, Bars], names: Sequence[str]) -> None:
    width = 0.8 / len(named)
    for index, (name, (height, low, high)) in enumerate(named.items()):
        height = np.asarray(height, np.float64)
        x = np.arange(len(height)) + (index - (len(named) - 1) / 2) * width
        colour = COLOURS[names.index(name) % len(COLOURS)]
        ax.bar(x, height, width, color=colour, label=name)
        if low is not None and high is not None:
            ax.vlines(x, low, high, color="black", linewidth=1)
