"""Kept results: merged, read, shown, found outdated, and carried over a change of code."""

import base64
import dataclasses
import io
import json
import pathlib

import numpy as np
import pytest

from experiments import report
from experiments.study import experiment, files, results, runner, sections, statistics
from experiments.study.statistics import Verdict
from experiments.study.store import Status


@pytest.fixture
def kept(harness, make, monkeypatch, tmp_path):
    """The merged results of the small experiment, in a folder of their own."""
    monkeypatch.setattr(results, "FOLDER", tmp_path / "results")
    made = make()
    harness.run(made)
    found = runner.read(made, "smoke", harness.folder)
    assert results.merge([(made, found)]) == "hdafl_smoke.jsonl: 6 runs"
    return made, found


def shown(made, found):
    section = sections.section(made, found)
    entries = [e.ours for entries in section.tables.values() for e in entries]
    return entries, [check.texts for claim in section.claims for check in claim.checks]


def test_kept_results_show_what_the_runs_showed(kept):
    made, found = kept
    again = results.read(made, "smoke")
    assert results.is_complete(again) and shown(made, again) == shown(made, found)
    assert sections.section(made, again).pictures == sections.section(made, found).pictures


def test_a_claim_is_judged_again_without_a_run(kept, make):
    made, _ = kept
    (claim,) = made.claims
    (check,) = claim.checks
    harder = type(check)(check.name, check.measure, 0.9, check.form)
    object.__setattr__(claim, "checks", (harder,))
    (judged,) = sections.section(made, results.read(made, "smoke")).claims
    assert judged.verdict is Verdict.CONTRADICTED


def test_files_say_what_was_run_and_with_what(kept):
    first, *lines = map(json.loads, results.path_of("hdafl", "smoke").read_text().splitlines())
    assert set(first) == {"code", "commits", "hardware", "runtime", "versions"}
    assert len(lines) == 6 and all(line["made"] == 0 for line in lines)
    assert all(line["work"] and line["key"] and line["seconds"] > 0 for line in lines)


def test_merging_twice_changes_nothing_and_an_incomplete_table_is_not_shown(kept, make):
    made, found = kept
    before = results.path_of("hdafl", "smoke").read_bytes()
    results.merge([(made, found)])
    assert results.path_of("hdafl", "smoke").read_bytes() == before
    assert not results.is_complete(results.read(make(second=0.4), "smoke"))


def test_runs_that_diverged_are_results_and_are_not_made_again(harness, make, monkeypatch):
    monkeypatch.setattr(results, "FOLDER", harness.folder / "results")
    made = make()
    harness.order(diverge=0.5)
    runs = harness.run(made)
    assert [run.status.value for run in runs] == ["ok"] * 3 + ["diverged"] * 3
    harness.order()
    assert [run.status for run in harness.run(made)] == [run.status for run in runs]
    found = runner.read(made, "smoke", harness.folder)
    results.merge([(made, found)])
    again = results.read(made, "smoke")
    assert results.is_complete(again) and shown(made, again) == shown(made, found)
    (a, b), _ = shown(made, again)
    assert "0.7" in a and b == "diverged"
    assert sections.section(made, again).counts == "6 ok, 3 diverged"


def test_a_claim_does_not_hold_without_the_runs_that_diverged(kept):
    made, found = kept
    (before,) = sections.section(made, found).claims
    place = before.checks[0].check.measure.cells[0], 1
    lost = dataclasses.replace(found.runs[place], status=Status.DIVERGED)
    fewer = dataclasses.replace(found, runs=found.runs | {place: lost})
    (after,) = sections.section(made, fewer).claims
    assert before.verdict is Verdict.HOLDS and after.verdict is Verdict.UNDECIDED
    assert "2 of 3 seeds" in after.checks[0].texts[1]


def test_merging_keeps_what_other_figures_asked_of_the_same_runs(kept, harness):
    made, _ = kept
    path, runs = results.path_of("hdafl", "smoke"), results.kept("hdafl", "smoke")
    for run in runs.values():
        run.record["curves"]["of another figure"] = [[1], [0.5]]
    results.write(path, runs)
    results.merge([(made, runner.read(made, "smoke", harness.folder))])
    assert path.read_text().count("of another figure") == 6


def test_merging_replaces_what_was_made_with_other_code(kept, harness):
    made, _ = kept
    path, runs = results.path_of("hdafl", "smoke"), results.kept("hdafl", "smoke")
    for run in runs.values():
        run.record["curves"]["of another figure"] = [[1], [0.5]]
        run.record["files"] = {"half": "of earlier code"}
        run.record["metrics"]["value"] += 1.0
    results.write(path, runs)
    results.merge([(made, runner.read(made, "smoke", harness.folder))])
    values = [run.metrics["value"] for run in results.kept("hdafl", "smoke").values()]
    assert len(values) == 6 and max(values) < 1
    assert "of another figure" not in path.read_text()


def test_a_scale_shows_its_own_seeds_of_runs_that_others_have_more_of(kept):
    made, found = kept
    (scale,) = made.scales.values()
    fewer = dataclasses.replace(scale, num_seeds=scale.num_seeds - 1)
    again = results.read(dataclasses.replace(made, scales={"smoke": fewer}), "smoke")
    assert again.seeds == [*found.seeds[:-1]] and results.is_complete(again)


def test_a_damaged_file_is_refused_by_line(kept):
    made, _ = kept
    path = results.path_of("hdafl", "smoke")
    path.write_text(path.read_text().replace('"metrics":{', '"metrics":', 1))
    with pytest.raises(ValueError, match="line 2 is damaged"):
        results.read(made, "smoke")


def _as_if_code_had_changed(made):
    """Writes another key into all kept results."""
    path = results.path_of("hdafl", "smoke")
    runs = results.kept("hdafl", "smoke")
    record = {"key": "of earlier code", "code": {"experiments.hdafl.old": "0"}}
    old = {
        place: results.Run(run.folder, run.status, {**run.record, **record})
        for place, run in runs.items()
    }
    results.write(path, old)
    return path


@pytest.mark.parametrize(("change", "said"), [(1e-15, "carried to"), (1e-9, "not carried")])
def test_carry_takes_numbers_as_equal_to_12_digits(kept, monkeypatch, change, said):
    made, _ = kept
    path = _as_if_code_had_changed(made)
    lines = [json.loads(one) for one in path.read_text().splitlines()]
    for one in lines[1:]:
        one["metrics"]["value"] *= 1 + change
    path.write_text("".join(json.dumps(one) + "\n" for one in lines))
    monkeypatch.setattr(runner, "commit", lambda: "new")
    (line,) = results.carry([(made, results.read(made, "smoke"))], data_dir=None)
    assert said in line


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        (np.array([0.5, 0.0]), np.array([0.5 + 1e-15, 0.0]), True),
        (np.array([0.5]), np.array([0.5 + 1e-9]), False),
        (np.array([1, 2]), np.array([1, 3]), False),
        ({"names": np.array(["a"])}, {"names": np.array(["b"])}, False),
        ({"names": np.array(["a"])}, {"names": np.array(["a"])}, True),
        ({"a": np.zeros(2)}, {"b": np.zeros(2)}, False),
    ],
)
def test_carry_compares_the_arrays_that_figures_show(one, other, is_same):
    assert results._same(one, other) == is_same
    runs = [_run_with(array) for array in (one, other)]
    assert results._unequal(*runs) == ("" if is_same else "shown")


def _run_with(arrays, **files):
    file = io.BytesIO()
    np.savez(file, **arrays) if isinstance(arrays, dict) else np.save(file, arrays)
    contents = {"shown": base64.b64encode(file.getvalue()).decode()}
    record = {"metrics": {"value": 0.5}, "files": files, "contents": contents}
    return results.Run(pathlib.Path(), Status.OK, record)


def test_carry_compares_tables_by_their_digests():
    one, other = (_run_with(np.zeros(1), **{"clients.csv": digest}) for digest in ("a", "b"))
    assert results._unequal(one, one) == "" and results._unequal(one, other) == "clients.csv"


@pytest.mark.parametrize(
    ("why", "alone", "hardware", "said"),
    [
        ("settings", False, None, "settings have changed"),
        ("code", True, None, "they measure time"),
        ("code", False, "another", "another CPU type"),
    ],
)
def test_what_cannot_be_compared_is_not_carried(why, alone, hardware, said):
    run = _run_with(np.zeros(1))
    run.record["hardware"] = hardware or runner.hardware()
    cell = experiment.Cell("a", experiment.Call(print, alone=alone))
    assert said in results._different([runner.Outdated(cell, 0, run, why)], None)


def test_carry_stamps_equal_results_and_no_others(kept, make, harness, monkeypatch):
    made, _ = kept
    path = _as_if_code_had_changed(made)
    assert "experiments.hdafl.old" in report.stale([made])
    monkeypatch.setattr(runner, "commit", lambda: "new")
    (line,) = results.carry([(made, results.read(made, "smoke"))], data_dir=None)
    assert line.endswith("6 results carried to commit new")
    assert report.stale([made]).startswith("All results are")
    first = json.loads(path.read_text().splitlines()[0])
    assert first["commits"][-1] == "new" and len(first["commits"]) == 2
    # Now of a run whose number is another one.
    _as_if_code_had_changed(made)
    text = path.read_text()
    lines = [json.loads(one) for one in text.splitlines()]
    for one in lines[1:]:
        one["metrics"]["value"] += 1.0
    path.write_text("".join(json.dumps(one) + "\n" for one in lines))
    before = path.read_bytes()
    (line,) = results.carry([(made, results.read(made, "smoke"))], data_dir=None)
    assert "not carried" in line and "gives other results now (value)" in line
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("value", "interval", "said"),
    [(0.75, None, "-0.050, agrees"), (0.9, None, "-0.200, differs"), (0.9, 0.1, "-0.200, agrees")],
)
def test_a_printed_value_agrees_within_our_interval_widened_by_its_own(value, interval, said):
    place = experiment.Place("A", "x", None, experiment.Form(3))
    number = sections.Number(statistics.Estimate(0.7, 0.6, 0.8, 2), "")
    printed = experiment.Printed("A", "x", value, "", "", interval)
    entry = sections._entry(place, number, printed, judged=True)
    assert entry.difference == said
    assert said.split(", ")[1] in files._filled("Values", [entry])
    assert sections._entry(place, number, printed, judged=False).difference == said.split(",")[0]
