"""Tests of the figures: what is drawn, and how it is written."""

import io
import warnings

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.image import imread

from tff_het.evaluation import figures
from tff_het.evaluation.figures import (
    accuracy_by_client,
    accuracy_over_rounds,
    histograms_by_group,
    save,
)


def test_a_line_for_each_method():
    rounds = [0, 5, 10]
    figure = accuracy_over_rounds(
        {"fed_avg": (rounds, [0.1, 0.5, 0.6]), "hdafl": (rounds, [0.1, 0.7, 0.8])}
    )
    (ax,) = figure.axes
    assert [line.get_label() for line in ax.lines] == ["fed_avg", "hdafl"]
    np.testing.assert_array_equal(ax.lines[1].get_ydata(), [0.1, 0.7, 0.8])
    assert ax.get_xlabel() == "communication round"
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["fed_avg", "hdafl"]


def test_neighbouring_methods_differ_in_colour_and_in_line():
    curves = {str(i): ([0, 1], [0, 1]) for i in range(12)}
    lines = accuracy_over_rounds(curves).axes[0].lines
    assert len({(line.get_color(), line.get_linestyle()) for line in lines}) == 12


def test_few_clients_are_drawn_one_by_one():
    results = {"fed_avg": [0.5, np.nan, 1.0], "hdafl": [0.75, 0.25, 1.0]}
    figure = accuracy_by_client(results, ["a", "b", "c"])
    boxes, clients = figure.axes
    assert [t.get_text() for t in boxes.get_xticklabels()] == ["fed_avg", "hdafl"]
    assert [t.get_text() for t in clients.get_xticklabels()] == ["a", "b", "c"]
    medians = [tuple(line.get_ydata()) for line in boxes.lines]
    assert medians.count((0.75, 0.75)) == 2  # Of 0.5 and 1, and of 0.25, 0.75 and 1.
    dots = {line.get_label(): line for line in clients.lines if line.get_marker() != "None"}
    for name, values in results.items():
        np.testing.assert_array_equal(dots[name].get_ydata(), values)
        np.testing.assert_array_equal(np.rint(dots[name].get_xdata()), [0, 1, 2])


def test_many_clients_are_boxes_alone():
    names = [str(i) for i in range(21)]
    assert len(accuracy_by_client({"a": np.linspace(0, 1, 21)}, names).axes) == 1
    assert len(accuracy_by_client({"a": np.linspace(0, 1, 20)}, names[:20]).axes) == 2


def test_what_cannot_be_drawn_is_refused():
    with pytest.raises(ValueError, match="no curves"):
        accuracy_over_rounds({})
    with pytest.raises(ValueError, match="'a' must have as many values as rounds"):
        accuracy_over_rounds({"a": ([0, 1], [0.5])})
    with pytest.raises(ValueError, match=r"each of the 2 clients; found \{'a': \(1,\)\}"):
        accuracy_by_client({"a": [0.5]}, ["x", "y"])
    with pytest.raises(ValueError, match="0 methods"):
        accuracy_by_client({}, ["x"])


def test_histograms_show_the_share_of_each_groups_clients():
    figure = histograms_by_group(
        {
            "fed_avg": {"majority": [0.91, 0.92, 0.93, 0.52], "minority": [0.11, 1.0, np.nan]},
            "waffle": {"majority": [0.97] * 4, "minority": [0.97, 0.97]},
        },
        columns=1,
    )
    panels = figure.get_axes()
    assert all(ax.xaxis.get_tick_params()["labelbottom"] for ax in panels)
    assert [ax.get_title() for ax in panels] == ["fed_avg", "waffle"]
    for ax, wanted in zip(
        panels,
        [{0.9: [0.75], 0.5: [0.25], 0.1: [0.5], 0.95: [0.5]}, {0.95: [1.0, 1.0]}],
        strict=True,
    ):
        found: dict = {}
        for bar in ax.patches:
            if bar.get_height():
                found.setdefault(round(bar.get_x(), 6), []).append(round(bar.get_height(), 6))
        assert found == wanted
    labels = [text.get_text() for text in panels[0].get_legend().get_texts()]
    assert labels == ["majority (4)", "minority (2)"]
    with pytest.raises(ValueError, match="no histograms"):
        histograms_by_group({})
    with pytest.raises(ValueError, match="'a' has no client that was tested"):
        histograms_by_group({"a": {"majority": [np.nan], "minority": []}})


def test_pictures_are_the_same_bytes_every_time(tmp_path):
    for name in ("one", "two"):
        figure = accuracy_by_client({"a": [0.5, 0.6], "b": [0.1, np.nan]}, ["x", "y"])
        save(figure, tmp_path / "figures" / f"{name}.png")
    files = sorted((tmp_path / "figures").iterdir())
    assert [file.name for file in files] == ["one.png", "two.png"]  # Nothing temporary is left.
    first, second = (file.read_bytes() for file in files)
    assert first == second
    assert b"Software" not in first
    picture = imread(io.BytesIO(first), format="png")
    assert picture.std() > 0.05  # Not blank.


@pytest.mark.parametrize("name", ["$x_{$", "$", "a$b$c", "\\frac", "\u732b"])
def test_names_are_no_formulas(tmp_path, name):
    figure = figures.sheet(4, 3)
    axes = figure.subplots()
    axes.set_xticks([0, 1], [name, "b"])
    axes.set(title=name)
    axes.plot([0, 1], label=name)
    figure.legend()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # No font has all letters.
        save(figure, tmp_path / "a.png")
    assert (tmp_path / "a.png").stat().st_size > 1000


def test_only_png_is_written(tmp_path):
    with pytest.raises(ValueError, match=r"written as \.png, found 'a\.pdf'"):
        save(Figure(), tmp_path / "a.pdf")
