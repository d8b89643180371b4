"""HDAFL's Table 3 in its smallest form, through runner and report."""

import csv
import math
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

import pytest

from experiments import report, reproduce
from experiments.hdafl import settings
from experiments.hdafl.table3 import EXPERIMENT
from experiments.study import runner

ROOT = pathlib.Path(__file__).parents[3]
COMMAND = ("hdafl.table3", "--scale=smoke")
ROWS = [f"{s}, {m}" for s in ("i.i.d", "non-i.i.d", "Disjoint") for m in ("HDAFL", "FedAvg")]


def main(folder: pathlib.Path, *options: str) -> int:
    return reproduce.main([*COMMAND, f"--output_dir={folder}", *options])


def page(folder: pathlib.Path) -> str:
    return report.write([EXPERIMENT], folder).read_text()


@pytest.fixture(scope="module")
def smoke(tmp_path_factory) -> pathlib.Path:
    folder = tmp_path_factory.mktemp("smoke")
    assert main(folder) == 0
    return folder


@pytest.mark.slow
def test_smoke_fills_every_place_of_the_printed_table(smoke):
    page(smoke)
    rows = list(csv.DictReader((smoke / "report" / "hdafl-table3-smoke.csv").open()))
    assert list(dict.fromkeys(row["row"] for row in rows)) == ROWS
    assert len(rows) == len(EXPERIMENT.printed) == 18
    assert all(math.isfinite(float(row["ours"])) and row["paper"] for row in rows)
    assert all(row["low"] == "" for row in rows)  # One seed has no interval.


@pytest.mark.slow
def test_methods_of_a_setting_have_the_same_cohorts(smoke):
    results = runner.read(EXPERIMENT, "smoke", smoke)
    for setting, selected in (("i.i.d", 20), ("Disjoint", 31)):
        found = []
        for method in ("HDAFL", "FedAvg"):
            run = results.runs[settings.run("stand-in", setting, selected, method), 0]
            with (run.files / "clients.csv").open() as file:
                found.append([(r["client"], r["rounds_trained"]) for r in csv.DictReader(file)])
        assert found[0] == found[1]


@pytest.mark.slow
def test_again_it_runs_nothing(smoke, capsys):
    before, files = page(smoke), sorted(smoke.rglob("result.json"))
    made = [path.stat().st_mtime_ns for path in files]
    assert main(smoke) == 0
    assert [path.stat().st_mtime_ns for path in files] == made
    capsys.readouterr()
    assert main(smoke, "--dry_run") == 0
    plan = capsys.readouterr().out
    assert plan.count(": done") == 18 and "Runs: 18, about 0 s" in plan
    assert page(smoke) == before


@pytest.mark.slow
def test_killed_twice_the_page_is_the_same(smoke, tmp_path):
    command = [sys.executable, "-m", "experiments.reproduce", *COMMAND]
    command += [f"--output_dir={tmp_path}"]
    runs = tmp_path / "hdafl" / "runs"

    def done(name: str) -> int:
        return len(list(runs.glob(f"*/seed0/{name}")))

    for further in (2, 5):
        program_ = subprocess.Popen(command, cwd=tmp_path, env={**os.environ, "PYTHONPATH": ROOT})
        deadline = time.monotonic() + 300
        while done("files/times.csv") < further:
            assert program_.poll() is None and time.monotonic() < deadline
            time.sleep(0.01)
        program_.send_signal(signal.SIGKILL)
        program_.wait()
    assert main(tmp_path) == 0
    assert page(tmp_path) == page(smoke)


def test_plan_of_the_papers_scale_needs_no_data(tmp_path, capsys):
    assert reproduce.main(["hdafl.table3", "--scale=paper", "--dry_run"]) == 0
    printed = capsys.readouterr()
    assert "Runs: 360, unknown" in printed.out and "Probe" not in printed.err


def test_help_has_the_harness_flags(capsys):
    with pytest.raises(SystemExit, match="0"):
        reproduce.main(["hdafl.table3", "--help"])
    text = capsys.readouterr().out
    assert text.startswith("Table 3 of HDAFL")
    for flag in ("scale", "data_dir", "output_dir", "seeds", "dry_run"):
        assert re.search(rf"--(\[no\])?{flag}:", text)
