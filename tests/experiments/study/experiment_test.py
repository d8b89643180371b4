"""The words in which papers' modules are written, and the numbers that they read."""

import numpy as np
import pytest

import experiments.study as s
from experiments.study.store import Results, Status


class Curves(s.Run):
    """A run whose curves are given."""

    def curve(self, column):
        values = self.record["curves"][column]
        return list(range(len(values))), values


def results(**runs) -> Results:
    """Cell -> one record a seed."""
    seeds = range(len(next(iter(runs.values()))))
    found = {
        (cell, seed): Curves(None, Status.OK, record)
        for cell, records in runs.items()
        for seed, record in enumerate(records)
    }
    return Results("quick", seeds, found)


def test_cells_are_all_combinations_and_later_flags_win():
    axes = {"level": {"0": {"rate": 1}, "1": {"rate": None}}, "method": {"A": {"method": "a"}}}
    flags = {"dataset": "digits", "rate": 2, "bias": True}
    first, second = s.cells("x/{level}/{method}", flags, num_seeds=2, **axes)
    assert (first.name, second.name) == ("x/0/A", "x/1/A") and first.num_seeds == 2
    common = {"dataset": "digits", "bias": "true", "method": "a"}
    assert first.work.flags == common | {"rate": "1"} and second.work.flags == common


def test_places_have_forms_and_leave_out_what_there_is_not():
    count = s.Form(digits=0)
    columns = {"accuracy": "acc", "bytes": ("bytes", count)}

    def measure(row, column):
        return None if (row, column) == ("b", "acc") else s.metric(row, column)

    table = s.table("t", ["a", "b"], columns, measure)
    shown = [(p.row, p.column, p.form) for p in table.places]
    assert shown == [("a", "accuracy", s.PERCENT), ("a", "bytes", count), ("b", "bytes", count)]


def test_claims_compare_in_the_direction_that_they_say():
    of = {"a": 0.5, "b": 0.7, "c": 0.9}
    found = results(**{cell: [{"metrics": {"x": value}}] for cell, value in of.items()})

    def measure(cell):
        return s.metric(cell, "x")

    better = s.better("text", measure, "c", ["a", "b"])
    assert [check.name for check in better.checks] == ["accuracy of c - a", "accuracy of c - b"]
    values = [check.measure.values(found)[0] for check in better.checks]
    assert values == pytest.approx([0.4, 0.2])
    rises = s.rises("text", {name: measure(name) for name in of})
    assert [c.measure.values(found)[0] for c in rises.checks] == pytest.approx([0.2, 0.2])


def test_printed_rows_are_read_with_their_intervals():
    quote = r"Method-2 155,800 94.46±0.84 -1.5 \pm 0.2"
    found = s.printed({"row": quote}, ["n", "a", "b"], "Table 1, {row}", {"row": {"n": "odd"}})
    assert found[0].place == "Table 1, row"
    assert [(p.value, p.interval) for p in found] == [(155800, None), (94.46, 0.84), (-1.5, 0.2)]
    assert found[0].quote == "Method-2 155,800" and found[0].note == "odd"


def test_measures_are_calculated_with_like_numbers():
    found = results(a=[{"metrics": {"x": 3.0}}], b=[{"metrics": {"x": -1.0, "z": 0.0}}])
    a, b, zero, none = (s.metric(*of) for of in ("ax", "bx", "bz", "by"))
    values = [m.values(found) for m in (a + b, 1 - a, abs(b), a / b, a / zero, a - none)]
    assert values == [[2.0], [-2.0], [1.0], [-3.0], [], []]
    assert s.total([a, b, a]).values(found) == [5.0]


def test_curves_give_numbers():
    curve = [0.0, 0.1, 0.5, 0.4, 0.9]
    found = results(a=[{"curves": {"y": curve, "one": [1.0]}}])
    assert s.last_rounds("a", "y", 2).values(found) == pytest.approx([0.65])
    assert s.in_round("a", "y", 2).values(found) == [0.5]
    assert s.over_rounds("a", "y").values(found) == pytest.approx([np.mean(curve)])
    assert s.roughness("a", "y").values(found) == pytest.approx([0.3])
    assert s.roughness("a", "one").values(found) == []
    for goal, rounds in ((0.45, [2]), (0.95, [])):
        reached = s.until("a", "y", s.of_run("a", lambda _, goal=goal: goal), lambda _, n: n)
        assert reached.values(found) == rounds


def test_figures_draw_what_there_is():
    found = results(a=[{"metrics": {"x": 0.5}, "curves": {"y": [0.1, 0.2]}}] * 2)
    a, missing = s.metric("a", "x"), s.metric("b", "x")
    panels = {"one": {"bar": {"g": a, "h": missing}}, "two": {"bar": {"g": missing}}}
    bars = s.bars("t", "shown", panels, xlabel="x", ylabel="y").draw(found)
    assert [ax.get_title() for ax in bars.axes] == ["one"]
    curves = s.curves("t", "shown", {"p": {"a": ("a", "y"), "b": ("b", "y")}}).draw(found)
    assert len(curves.axes[0].lines) == 1
    lines = s.lines("t", "shown", {"a": {0.0: a, 1.0: missing}}, xlabel="x", ylabel="y")
    assert lines.draw(found).axes[0].has_data()
    empty = results(c=[{"metrics": {}}])
    assert s.bars("t", "s", panels, xlabel="x", ylabel="y").draw(empty) is None


def test_a_point_of_one_seed_takes_no_interval_from_the_others():
    many = [{"metrics": {"x": x}} for x in (1.0, 2.0, 3.0)]
    found = results(a=many, b=many)
    alone = {k: run for k, run in found.runs.items() if k[0] == "a" or k[1] == 0}
    measures = {0.0: s.metric("a", "x"), 1.0: s.metric("b", "x")}
    figure = s.lines("t", "", {"line": measures}, xlabel="", ylabel="")
    (ax,) = figure.draw(Results("quick", found.seeds, alone)).axes
    (bars,) = ax.containers[0].lines[2]
    of_three, of_one = bars.get_segments()
    (_, low), (_, high) = of_three
    assert high - 2.0 == pytest.approx(2.0 - low) and high > 4.0 and not len(of_one)
