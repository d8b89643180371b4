"""Pictures of results: bars, curves over rounds, lines over a setting.

Each function returns a `Figure` that draws what was run: panels and lines without runs are left
out, and where nothing was run there is no picture. Panels are given by title, `columns` of them
stand in a row, and `xlabel` and `ylabel` say what the axes are.
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from experiments.study import statistics
from experiments.study.experiment import Figure
from experiments.study.measures import Measure
from experiments.study.store import Results
from tff_het.evaluation import figures

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing
_BLUES = {"cmap": "Blues", "vmin": 0}


def bars(
    title: str,
    paper_shows: str,
    panels: Mapping[str, Mapping[str, Mapping[str, Measure]]],
    *,
    factor: float = 100.0,
    **options: Any,
) -> Figure:
    """Returns bars of means, each with a line from the lowest seed to the highest.

    Panels are bar -> group -> measure, times `factor`. Options: `tff_het.evaluation.panels.bars`.
    """

    def draw(results: Results) -> "Drawing | None":
        from tff_het.evaluation import panels as drawing

        found = {
            panel: named
            for panel, named in panels.items()
            if any(m.values(results) for one in named.values() for m in one.values())
        }
        if not found:
            return None
        bars_of = [of for named in found.values() for of in named.values()]
        groups = list(dict.fromkeys(group for of in bars_of for group in of))

        def bar(of: Mapping[str, Measure]) -> drawing.Bars:
            values = [of[group].values(results) if group in of else [] for group in groups]
            mean, low, high = (
                np.array([factor * part(found) if found else np.nan for found in values])
                for part in (np.mean, np.min, np.max)
            )
            return drawing.Bars(mean, low, high)

        shown = {panel: {n: bar(of) for n, of in named.items()} for panel, named in found.items()}
        return drawing.bars(shown, groups, **options)

    return Figure(title, paper_shows, draw)


def curves(
    title: str,
    paper_shows: str,
    panels: Mapping[str, Mapping[str, tuple[str, str]]],
    *,
    ylabel: str = "local test accuracy (%)",
    columns: int | None = None,
    share_y: bool | Literal["row"] = False,
) -> Figure:
    """Returns curves over rounds: the mean over seeds, and a band from the lowest to the highest.

    Panels are line -> the cell, and the column of its `metrics.csv`, in percent; by default in one
    row. `share_y` is as of `figures.grid`.
    """

    def draw(results: Results) -> "Drawing | None":
        found: dict[str, dict[str, tuple[list[int], np.ndarray]]] = {}
        for panel, lines in panels.items():
            for line, (cell, column) in lines.items():
                if measured := [run.curve(column) for run in results.of(cell)]:
                    values = 100.0 * np.array([curve[1] for curve in measured])
                    found.setdefault(panel, {})[line] = (measured[0][0], values)
        if not found:
            return None
        figure, axes = figures.grid(len(found), columns, (5.5, 4.2), share_y=share_y)
        for ax, (panel, measured_lines) in zip(axes, found.items(), strict=True):
            for line, (rounds, values) in measured_lines.items():
                (drawn,) = ax.plot(rounds, values.mean(axis=0), label=line)
                low, high = values.min(axis=0), values.max(axis=0)
                ax.fill_between(rounds, low, high, alpha=0.15, color=drawn.get_color())
            shown = ", mean and range" * (len(results.seeds) > 1)
            ax.set(title=panel, xlabel="round", ylabel=ylabel + shown)
            ax.grid(alpha=0.3)
            ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.12), ncols=2, frameon=False)
        return figure

    return Figure(title, paper_shows, draw)


def lines(
    title: str,
    paper_shows: str,
    of: Mapping[str, Mapping[float, Measure]],
    *,
    xlabel: str,
    ylabel: str,
    dodge: float = 0.0,
) -> Figure:
    """Returns lines, value of a setting -> measure, with 95 % intervals over seeds.

    They stand by `dodge` beside one another, so that no interval hides another.
    """

    def draw(results: Results) -> "Drawing | None":
        figure, (ax,) = figures.grid(1, 1, (7, 4.5))
        for number, (name, measures) in enumerate(of.items()):
            found = {x: v for x, m in measures.items() if (v := m.values(results))}
            if not found:
                continue
            estimates = list(map(statistics.estimate, found.values()))
            mean = np.array([estimate.mean for estimate in estimates])
            ends = np.array([(e.low, e.high) for e in estimates], float)
            # One seed has no interval.
            error = None if np.isnan(ends).all() else np.abs(ends.T - mean)
            x = np.array(list(found)) + (number - (len(of) - 1) / 2) * dodge
            ax.errorbar(x, mean, yerr=error, capsize=3, marker="o", color=f"C{number}", label=name)
        if not ax.has_data():
            return None
        ax.set(xlabel=xlabel, ylabel=f"{ylabel}, mean and 95 % interval")
        ax.grid(alpha=0.3)
        ax.legend()
        return figure

    return Figure(title, paper_shows, draw)


def heat_maps(
    title: str,
    paper_shows: str,
    panels: Callable[[Results], Mapping[str, np.ndarray]],
    *,
    size: tuple[float, float] = (3.6, 4.2),
    imshow: Mapping[str, Any] = _BLUES,
    **options: Any,
) -> Figure:
    """Returns tables of counts as colours, each on a scale of its own.

    `panels` gives arrays [rows, columns] of runs. Options: `tff_het.evaluation.panels.heat_maps`.
    """

    def draw(results: Results) -> "Drawing | None":
        from tff_het.evaluation import panels as drawing

        found = panels(results)
        return drawing.heat_maps(found, size=size, imshow=imshow, **options) if found else None

    return Figure(title, paper_shows, draw)
