"""Pictures of a board: mean ranks, accuracy against bytes, and wins of each over each.

Boards are given as setting -> method -> measure. Of the settings in which all methods have runs, a
picture shows those with the most methods.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy import stats

import experiments.study as s
from experiments.boards import differences
from experiments.study import statistics

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

Board = Mapping[str, Mapping[str, s.Measure]]
_TICKS = (0, 20, 40, 60, 70, 80, 85, 90, 92, 94, 95, 96, 97, 98, 99)  # Percent.


class Values(NamedTuple):
    """Numbers of the settings that are complete."""

    settings: Sequence[str]
    methods: Sequence[str]
    found: np.ndarray  # [settings, methods, seeds]


def values(board: Board, results: s.Results) -> Values | None:
    """Returns a board's numbers, None where no setting is complete."""
    complete = {}
    for setting, of in board.items():
        rows = {method: measure.values(results) for method, measure in of.items()}
        if all(len(row) == len(results.seeds) for row in rows.values()):
            complete[setting] = rows
    if not complete:
        return None
    most = max(complete.values(), key=len)
    shown = {x: [*rows.values()] for x, rows in complete.items() if rows.keys() == most.keys()}
    return Values([*shown], [*most], np.array([*shown.values()]))


def mean_ranks(of: Values) -> np.ndarray:
    """Returns the methods' mean ranks over settings; 1 is the highest mean over seeds.

    A diverged run, which is NaN, counts as 0.
    """
    return stats.rankdata(-np.nan_to_num(of.found).mean(axis=2), axis=1).mean(axis=0)


def critical_difference(num_methods: int, num_settings: int, level: float = 0.05) -> float:
    """Returns by how much mean ranks differ significantly (Nemenyi's test; Demsar 2006, eq. 5)."""
    quantile = stats.studentized_range.ppf(1 - level, num_methods, np.inf) / np.sqrt(2)
    return float(quantile * np.sqrt(num_methods * (num_methods + 1) / (6 * num_settings)))


def wins(of: Values) -> np.ndarray:
    """Returns [methods, methods]: settings in which the row is above the column.

    It is where the p-value of their differences, paired by seed and corrected for the number of a
    row's pairs in a setting, is below 0.05. Seeds with which one of the two diverged do not count.
    """
    above = np.zeros([len(of.methods)] * 2, int)
    for found in of.found:
        for one, own in enumerate(found):
            others = [k for k in range(len(found)) if k != one]
            gaps = [(own - found[k])[np.isfinite(own - found[k])] for k in others]
            tests = [statistics.paired_t_test(gap) for gap in gaps]
            corrected = differences.holm([1.0 if p is None else p for p in tests])
            for other, gap, p in zip(others, gaps, corrected, strict=True):
                above[one, other] += p < 0.05 and np.mean(gap) > 0
    return above


def mean_gaps(of: Values) -> np.ndarray:
    """Returns [methods, methods]: by how much the row is above the column, over all settings.

    A diverged run, which is NaN, counts as 0.
    """
    mean = np.nan_to_num(of.found).mean(axis=(0, 2))
    return mean[:, np.newaxis] - mean


def ranks(title: str, board: Board) -> s.Figure:
    """Returns mean ranks, with what is not told from the best one by the critical difference."""

    def draw(results: s.Results) -> "Drawing | None":
        if (of := values(board, results)) is None:
            return None
        mean, (num_settings, count, _) = mean_ranks(of), of.found.shape
        order = np.argsort(-mean, kind="stable")
        figure, ax = _figure(7, 0.25 * count + 1.2)
        end = mean.min() + critical_difference(count, num_settings)
        label = "within the critical difference of the best (Nemenyi, 5 %)"
        ax.axvspan(mean.min(), min(end, count), alpha=0.15, label=label)
        ax.plot(mean[order], np.arange(count), "o")
        ax.set_yticks(np.arange(count), [of.methods[k] for k in order])
        ax.set(xlabel=f"mean rank, 1 is best (settings: {num_settings})", xlim=(0.5, count + 0.5))
        ax.grid(alpha=0.3)
        figure.legend(loc="outside lower center")
        return figure

    return s.Figure(title, "", draw)


def against_bytes(title: str, board: Board, sent: Board) -> s.Figure:
    """Returns accuracy in percent against MB, with a name beside each method."""

    def draw(results: s.Results) -> "Drawing | None":
        of, moved = values(board, results), values(sent, results)
        if of is None or moved is None:
            return None
        # Where most methods are, small differences count: the scale is logarithmic in the error.
        error = np.maximum(100 * (1 - np.nan_to_num(of.found).mean(axis=(0, 2))), 0.1)
        accuracy, megabytes = -np.log(error), moved.found.mean(axis=(0, 2)) / 1e6
        figure, ax = _figure(8, 8)
        ax.plot(megabytes, accuracy, "o", markersize=3)
        width, height = np.ptp(megabytes) or 1.0, np.ptp(accuracy) or 1.0
        # Names stand above each other, to the left of their points where others are on the right.
        lowest: dict[tuple[int, bool], float] = {}
        for k in np.argsort(-accuracy, kind="stable"):
            further = megabytes - megabytes[k]
            is_left = bool(np.any((further > 0.03 * width) & (further < 0.2 * width)))
            column = (round(megabytes[k] / width * 10), is_left)
            free = lowest.get(column, np.inf) - 0.024 * height
            lowest[column] = place = min(accuracy[k] + 0.06 * height, free)
            ax.annotate(
                of.methods[k],
                (megabytes[k], accuracy[k]),
                (megabytes[k] + (-0.05 if is_left else 0.05) * width, place),
                ha="right" if is_left else "left",
                va="center",
                fontsize="small",
                arrowprops={
                    **{"arrowstyle": "-", "linewidth": 0.4, "color": "grey", "shrinkA": 0},
                    "relpos": (float(is_left), 0.5),
                },
            )
        shown = [t for t in _TICKS if error.min() - 1 < 100 - t < error.max() + 5]
        ax.set_yticks([-np.log(100 - t) for t in shown], list(map(str, shown)))
        ax.set(xlabel="MB that a client receives and sends in a round", ylabel="mean accuracy (%)")
        ax.margins(0.15, 0.1)
        ax.grid(alpha=0.3)
        return figure

    return s.Figure(title, "", draw)


def above(title: str, board: Board) -> s.Figure:
    """Returns how far each method, a row, is above each other one, a column, and where it wins."""

    def draw(results: s.Results) -> "Drawing | None":
        if (of := values(board, results)) is None:
            return None
        order = np.argsort(mean_ranks(of), kind="stable")
        names, square = [of.methods[k] for k in order], np.ix_(order, order)
        figure, ax = _figure(0.3 * len(names) + 2.5, 0.3 * len(names) + 2)
        gaps, counts = 100 * mean_gaps(of)[square], wins(of)[square]
        largest = min(10.0, np.abs(gaps).max()) or 1.0
        image = ax.imshow(gaps, cmap="PuOr", vmin=-largest, vmax=largest)
        for row, column in zip(*np.nonzero(counts), strict=True):
            color = "white" if abs(gaps[row, column]) > 0.6 * largest else "black"
            style = {"ha": "center", "va": "center", "fontsize": "small", "color": color}
            ax.text(column, row, counts[row, column], **style)
        ax.set_xticks(range(len(names)), names, rotation=90)
        ax.set_yticks(range(len(names)), names)
        label = f"mean points of the row above the column (settings: {len(of.settings)})"
        figure.colorbar(image, ax=ax, label=label, extend="both")
        return figure

    return s.Figure(title, "", draw)


def _figure(width: float, height: float):
    from matplotlib.figure import Figure as Drawing

    figure = Drawing(figsize=(width, height), layout="constrained")
    return figure, figure.subplots()
