"""Figures of runs: over the rounds, and client by client.

Functions return a `Figure` that belongs to no window and no global state; `save` writes it.
"""

import io
import itertools
import os
import pathlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from tff_het import writing

if TYPE_CHECKING:  # A program that draws nothing starts sooner without it.
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito (2008), told apart by colour-blind readers too; without yellow and black, of which
# the first is hard to see on white. Line styles and markers differ as well, for print in grey.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00")
_LINES = ("-", "--", "-.", ":")
_MARKERS = ("o", "s", "^", "D", "v", "P", "X")
_MAX_SINGLE_CLIENTS = 20
_ACCURACY = "test accuracy (fraction of examples)"
_TURNED: dict[str, Any] = {"rotation": 45, "ha": "right", "rotation_mode": "anchor"}
_BINS = np.linspace(0.0, 1.0, 21)


def sheet(width: float, height: float) -> "Figure":
    """Returns an empty figure of this size in inches."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def grid(
    count: int,
    columns: int | None,
    size: tuple[float, float],
    *,
    share_y: bool | Literal["row"] = False,
    aside: float = 0.0,
) -> "tuple[Figure, list[Axes]]":
    """Returns a figure with panels in rows.

    Args:
      count: How many panels.
      columns: How many stand in a row at most; None: all.
      size: Width and height of a panel in inches.
      share_y: As of `Figure.subplots`.
      aside: Inches beside the panels.

    Raises:
      ValueError: If there are no panels.
    """
    if not count:
        raise ValueError("There are no panels to draw.")
    columns = min(columns or count, count)
    rows = -(-count // columns)
    figure = sheet(size[0] * columns + aside, size[1] * rows)
    axes = list(figure.subplots(rows, columns, sharey=share_y, squeeze=False).flat)
    for ax in axes[count:]:
        ax.remove()
    return figure, axes[:count]


def accuracy_over_rounds(curves: Mapping[str, tuple[npt.ArrayLike, npt.ArrayLike]]) -> "Figure":
    """Draws a line for each method over the rounds.

    Args:
      curves: By the method's name, [n] rounds done and [n] accuracies.

    Raises:
      ValueError: If there are no curves, or one has not as many accuracies as rounds.
    """
    if not curves:
        raise ValueError("There are no curves to draw.")
    for name, (x, y) in curves.items():
        if (a := np.size(x)) != (b := np.size(y)):
            raise ValueError(f"{name!r} must have as many values as rounds; found {b} and {a}.")
    from matplotlib.ticker import MaxNLocator

    figure = sheet(7.5, 4.2)
    ax = figure.add_subplot()
    for index, (name, curve) in enumerate(curves.items()):
        colour, line = COLOURS[index % len(COLOURS)], _LINES[index % len(_LINES)]
        # A single point makes no line.
        marker = _MARKERS[index % len(_MARKERS)] if np.size(curve[0]) == 1 else None
        ax.plot(*curve, color=colour, linestyle=line, marker=marker, label=name)
    # Beside the axes it hides no curve.
    figure.legend(loc="outside right center", frameon=False)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10]))
    ax.set(xlabel="communication round", ylabel=_ACCURACY)
    tidy(ax)
    return figure


def accuracy_by_client(
    results: Mapping[str, npt.ArrayLike], client_labels: Sequence[str]
) -> "Figure":
    """Draws how accuracies are distributed over the clients, a box for each method.

    Boxes reach from the lower to the upper quartile with the median inside, whiskers to the last
    client within 1.5 times that length. Up to 20 clients are drawn one by one as well, a client's
    methods joined by a line.

    Args:
      results: By the method's name, [K]; nan where a client was not tested.
      client_labels: [K], the clients' names.

    Raises:
      ValueError: If there are no results, or not one value for each client.
    """
    values = {name: np.asarray(result, np.float64) for name, result in results.items()}
    wrong = {n: v.shape for n, v in values.items() if v.shape != (len(client_labels),)}
    if not values or not client_labels or wrong:
        raise ValueError(
            f"Each method needs a value for each of the {len(client_labels)} clients; found "
            f"{wrong or f'{len(values)} methods'}."
        )
    one_by_one = len(client_labels) <= _MAX_SINGLE_CLIENTS
    widths = [1.2 + 0.8 * len(values)]
    if one_by_one:
        widths.append(1.0 + min(0.5, 0.2 + 0.1 * len(values)) * len(client_labels))
    figure = sheet(sum(widths) + (1.5 if one_by_one else 0.0), 4.2)  # The legend.
    axes = figure.subplots(1, len(widths), sharey=True, width_ratios=widths, squeeze=False)[0]
    _draw_boxes(axes[0], values)
    axes[0].set(ylabel=_ACCURACY, xlabel="method")
    if one_by_one:
        _draw_clients(axes[1], values, client_labels)
        figure.legend(loc="outside right center", frameon=False)
    for ax in axes:
        tidy(ax)
    return figure


def histograms_by_group(
    panels: Mapping[str, Mapping[str, npt.ArrayLike]], *, columns: int = 3
) -> "Figure":
    """Draws how accuracies are distributed over the clients of each sub-population.

    A group's bars add up to 1, so that small groups are seen as well as large ones.

    Args:
      panels: By the panel's title (a method), values in [0, 1] by group; nan where a client was not
        tested.
      columns: Panels in a row.

    Raises:
      ValueError: If there are no panels, or one has no value.
    """
    if not panels:
        raise ValueError("There are no histograms to draw.")
    columns = min(len(panels), columns)
    rows = -(-len(panels) // columns)
    figure = sheet(4.2 * columns, 3.0 * rows)
    axes = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False).flat
    for ax in axes[len(panels) :]:
        ax.set_visible(False)
    for (title, groups), ax in zip(panels.items(), axes, strict=False):
        tested = {name: np.asarray(values, np.float64) for name, values in groups.items()}
        tested = {name: values[~np.isnan(values)] for name, values in tested.items()}
        if not any(map(len, tested.values())):
            raise ValueError(f"Panel {title!r} has no client that was tested.")
        for index, (name, values) in enumerate(tested.items()):
            ax.hist(
                values,
                bins=_BINS,
                weights=np.full(len(values), 1 / max(len(values), 1)),
                color=COLOURS[index % len(COLOURS)],
                alpha=0.6,
                label=f"{name} ({len(values)})",
            )
        ax.set(title=title, xlabel=f"client's {_ACCURACY}", ylabel="share of the group's clients")
        # A shared axis leaves them out of all rows but the last.
        ax.tick_params(labelbottom=True, labelleft=True)
        ax.legend(frameon=False)
        tidy(ax)
    return figure


def tidy(ax: "Axes") -> None:
    """Takes away what a plot of these needs no lines for."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(axis="y", alpha=0.3)
    ax.set_axisbelow(True)


def save(figure: "Figure", path: str | os.PathLike[str]) -> None:
    """Writes a figure as PNG: wholly or not at all, the same bytes for the same figure.

    Args:
      figure: The figure.
      path: A file that ends in `.png`; replaced if it exists. Its folder is made if it is missing.

    Raises:
      ValueError: If the path does not end in `.png`.
      OSError: If it cannot be written.
    """
    path = pathlib.Path(path)
    if path.suffix != ".png":
        raise ValueError(f"Figures are written as .png, found {path.name!r}.")
    picture = io.BytesIO()
    import matplotlib
    from matplotlib.text import Text

    # Names of users' classes and clients may have dollar signs, which are no formulas.
    for text in figure.findobj(Text):
        text.set_parse_math(False)
    # Without `Software` the bytes do not name Matplotlib's version; PNG has no other metadata here.
    with matplotlib.rc_context({"text.parse_math": False}):  # Labels of ticks are made here.
        figure.savefig(picture, format="png", dpi=150, metadata={"Software": None})
    path.parent.mkdir(parents=True, exist_ok=True)
    with writing.complete(path) as file:
        file.write(picture.getvalue())


def _draw_boxes(ax: "Axes", values: Mapping[str, np.ndarray]) -> None:
    boxes = ax.boxplot(
        [v[~np.isnan(v)] for v in values.values()],
        widths=0.55,
        patch_artist=True,
        medianprops={"color": "black"},
        flierprops={"marker": ".", "markersize": 4},
    )
    for box, colour in zip(boxes["boxes"], itertools.cycle(COLOURS), strict=False):
        box.set(facecolor=colour, alpha=0.6)
    long = max(map(len, values)) > 10  # Characters that fit under a box.
    ax.set_xticks(range(1, len(values) + 1), list(values), **(_TURNED if long else {}))


def _draw_clients(ax: "Axes", values: Mapping[str, np.ndarray], labels: Sequence[str]) -> None:
    places = np.arange(len(labels))
    # Side by side within a client's place, so that equal values hide none of each other.
    offsets = (np.arange(len(values)) + 0.5) / len(values) - 0.5
    x = places + 0.6 * offsets[:, np.newaxis]  # [methods, K]
    table = np.stack(list(values.values()))
    ax.plot(x, table, color="lightgrey", linewidth=1.5, zorder=1)
    for index, name in enumerate(values):
        ax.plot(
            x[index],
            table[index],
            linestyle="none",
            marker=_MARKERS[index % len(_MARKERS)],
            color=COLOURS[index % len(COLOURS)],
            label=name,
            zorder=2,
        )
    long = max(map(len, labels)) > 4  # Characters that fit under a client.
    ax.set_xticks(places, list(labels), **(_TURNED if long else {}))
    ax.set(xlabel="client", xlim=(-0.6, len(labels) - 0.4))
