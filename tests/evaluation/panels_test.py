"""Figures of several panels: what is drawn where, and what is refused."""

import numpy as np
import pytest

from tff_het.evaluation.panels import Bars, bars, heat_maps


def heights(ax, name: str) -> list[float]:
    (found,) = [c for c in ax.containers if c.get_label() == name]
    return [bar.get_height() for bar in found]


def test_bars_stand_in_their_groups():
    figure = bars(
        {
            "E1": {"D1": Bars([0.1, 0.2], [0.05, 0.1], [0.15, 0.3]), "D2": Bars([0.3, 0.4])},
            "E5": {"D2": Bars([0.5, 0.6])},
        },
        ["a", "b"],
        xlabel="layer",
        ylabel="accuracy",
    )
    first, second = figure.axes
    assert (first.get_title(), second.get_title()) == ("E1", "E5")
    assert heights(first, "D1") == [0.1, 0.2] and heights(first, "D2") == [0.3, 0.4]
    assert heights(second, "D2") == [0.5, 0.6]
    assert [t.get_text() for t in first.get_xticklabels()] == ["a", "b"]
    assert first.get_ylabel() == "accuracy" and first.get_xlabel() == "layer"
    (line,) = first.collections  # Of the only bars with a range.
    middles = [bar.get_x() + bar.get_width() / 2 for bar in first.containers[0]]
    ranges = [[(x, 0.05 + 0.05 * k), (x, 0.15 + 0.15 * k)] for k, x in enumerate(middles)]
    np.testing.assert_allclose(line.get_segments(), ranges)
    for place in (0, 1):  # Side by side, around the group's place.
        left, right = (container[place] for container in first.containers)
        assert left.get_x() + left.get_width() == pytest.approx(right.get_x())
        assert right.get_x() == pytest.approx(place)
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["D1", "D2"]
    one, two, again = (
        container[0].get_facecolor() for ax in figure.axes for container in ax.containers
    )
    assert two == again != one  # A name has one colour in all panels.


def test_panels_may_have_scales_of_their_own():
    panels = {"small": {"D": Bars([0.01])}, "large": {"D": Bars([100.0])}}
    for share_y in (True, False):
        figure = bars(panels, ["a"], xlabel="x", ylabel="y", share_y=share_y)
        small, large = (ax.get_ylim() for ax in figure.axes)
        assert (small == large) == share_y
        assert not figure.legends  # Of one name there is nothing to tell apart.


def test_heat_maps_have_one_scale():
    figure = heat_maps(
        {"one": [[0.0, 1.0]], "two": [[2.0, 5.0]]}, xlabel="unit", ylabel="image", label="output"
    )
    one, two, scale = figure.axes
    for ax, values in ((one, [[0.0, 1.0]]), (two, [[2.0, 5.0]])):
        (image,) = ax.images
        np.testing.assert_array_equal(image.get_array(), values)
        assert image.get_clim() == (0.0, 5.0)
    assert scale.get_ylabel() == "output"


def test_heat_maps_may_have_scales_of_their_own():
    maps = {"one": [[0.0, 1.0]], "two": [[2.0, 5.0]], "three": [[7.0, 7.0]]}
    labels = {"xlabel": "unit", "ylabel": "image", "label": "output"}
    figure = heat_maps(maps, **labels, columns=2, size=(2.0, 3.0), imshow={"vmin": 0})
    panels, scales = figure.axes[:3], figure.axes[3:]
    assert [ax.get_title() for ax in panels] == [*maps]
    assert [ax.images[0].get_clim() for ax in panels] == [(0, 1), (0, 5), (0, 7)]
    assert [scale.get_xlabel() for scale in scales] == ["output"] * 3
    assert tuple(figure.get_size_inches()) == (4.0, 6.0)  # Two panels in a row, two rows.


def test_what_cannot_be_drawn_is_refused():
    labels = {"xlabel": "x", "ylabel": "y"}
    with pytest.raises(ValueError, match="no panels"):
        bars({}, ["a"], **labels)
    with pytest.raises(ValueError, match=r"'E1' needs bars for each of 2 groups.*'D1': \[1\]"):
        bars({"E1": {"D1": Bars([0.1])}}, ["a", "b"], **labels)
    with pytest.raises(ValueError, match="'E1' needs bars"):
        bars({"E1": {}}, ["a"], **labels)
    with pytest.raises(ValueError, match="no panels"):
        heat_maps({}, **labels, label="z")
    with pytest.raises(ValueError, match=r"found the shapes \{'one': \(3,\)\}"):
        heat_maps({"one": [1.0, 2.0, 3.0]}, **labels, label="z")
