"""Runs are claimed: equal programs share a folder, and a lost one's runs are taken over."""

import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import time

import pytest

from experiments import report
from experiments.hdafl import table5
from experiments.study import claims

ROOT = pathlib.Path(__file__).parents[3]


def test_one_has_it_until_it_ends(tmp_path):
    with claims.claimed(tmp_path / "run") as first:
        assert first is not None
        first(7)
        with claims.claimed(tmp_path / "run") as second:
            assert second is None
        assert claims.read(tmp_path / "run")["pid"] == os.getpid()
    assert claims.read(tmp_path / "run") is None
    assert list((tmp_path / "run").iterdir()) == []
    with claims.claimed(tmp_path / "run") as third:
        assert third is not None


@pytest.mark.parametrize(("age", "is_lost"), [(0, False), (50, False), (70, True)])
def test_another_machines_claim_is_lost_when_it_is_not_touched(tmp_path, age, is_lost):
    path = tmp_path / "claim.json"
    path.write_text(json.dumps({"host": "elsewhere", "pid": 1, "token": "0", "round": 3}))
    then = time.time() - age
    os.utime(path, (then, then))
    with claims.claimed(tmp_path) as mine:
        assert (mine is not None) == is_lost
    assert (claims.read(tmp_path) is None) == is_lost


def test_who_comes_second_on_another_machine_does_not_write_over_a_claim(tmp_path, monkeypatch):
    monkeypatch.setattr(claims.fcntl, "flock", lambda *_: None)  # It is of one machine.
    with claims.claimed(tmp_path) as first:
        with monkeypatch.context() as patch:
            patch.setattr(claims, "read", lambda folder: None)  # Asked a moment too early.
            assert not claims._take(0, tmp_path / "claim.json", {"host": "elsewhere"})
        assert first is not None and claims.read(tmp_path)["pid"] == os.getpid()


def test_of_two_that_find_a_lost_claim_the_last_one_has_it(tmp_path, monkeypatch):
    path, other = tmp_path / "claim.json", {"host": "elsewhere", "pid": 2, "token": "1", "round": 0}
    path.write_text(json.dumps({"host": "elsewhere", "pid": 1, "token": "0", "round": 3}))
    os.utime(path, (time.time() - 70,) * 2)
    monkeypatch.setattr(claims.time, "sleep", lambda _: path.write_text(json.dumps(other)))
    with claims.claimed(tmp_path) as mine:
        assert mine is None
    assert claims.read(tmp_path) == other


def test_a_claim_that_ends_while_it_is_looked_at_is_for_the_next_time(tmp_path, monkeypatch):
    path, read = tmp_path / "claim.json", claims.read
    path.write_text(json.dumps({"host": "elsewhere", "pid": 1, "token": "0", "round": 3}))

    def ends(folder):
        found = read(folder)
        path.unlink(missing_ok=True)
        return found

    monkeypatch.setattr(claims, "read", ends)
    with claims.claimed(tmp_path) as mine:
        assert mine is None


def test_a_killed_programs_claim_is_lost_at_once(tmp_path):
    path = tmp_path / "claim.json"
    about = {"host": os.uname().nodename, "pid": 1, "token": "0", "round": 3}
    path.write_text(json.dumps(about))
    with claims.claimed(tmp_path) as mine:
        assert mine is not None


def test_a_claim_is_touched_and_says_how_far_it_is(tmp_path, monkeypatch):
    monkeypatch.setattr(claims, "_BEAT_SECONDS", 0.02)
    with claims.claimed(tmp_path) as mine:
        mine(5)
        until = time.monotonic() + 10
        while claims.read(tmp_path)["round"] != 5 and time.monotonic() < until:
            time.sleep(0.01)
        assert claims.read(tmp_path)["round"] == 5


def test_who_has_lost_it_does_not_take_it_back(tmp_path, monkeypatch):
    monkeypatch.setattr(claims, "_BEAT_SECONDS", 0.02)
    other = {"host": "elsewhere", "pid": 1, "token": "other", "round": 0}
    with claims.claimed(tmp_path) as mine:
        mine(1)
        (tmp_path / "claim.json").write_text(json.dumps(other))
        time.sleep(0.2)
    assert claims.read(tmp_path) == other


@pytest.mark.slow
def test_four_programs_share_a_table_while_three_are_killed(tmp_path):
    def command(folder: pathlib.Path) -> list[str]:
        program = [sys.executable, "-m", "experiments.reproduce", "hdafl.table5", "--scale=smoke"]
        return [*program, "--jobs=1", "--seeds=6", f"--output_dir={folder}"]

    alone, shared = tmp_path / "alone", tmp_path / "shared"
    subprocess.run(command(alone), cwd=ROOT, check=True, capture_output=True, timeout=300)
    draw = random.Random(1)
    programs = [
        subprocess.Popen(command(shared), cwd=ROOT, stdout=subprocess.PIPE, text=True)
        for _ in range(4)
    ]
    until = time.monotonic() + 100
    while not list(shared.rglob("claim.json")) and time.monotonic() < until:
        time.sleep(0.01)
    for program in programs[1:]:
        time.sleep(draw.uniform(0.2, 1.5))
        program.send_signal(signal.SIGKILL)
    for program in programs:
        program.communicate(timeout=300)
    # One that was done already could not be killed any more.
    codes = [program.returncode for program in programs]
    assert codes[0] == 0 and set(codes[1:]) <= {0, -9} and -9 in codes
    pages = [report.write([table5.EXPERIMENT], folder).parent for folder in (alone, shared)]
    names = sorted(path.name for path in pages[0].glob("*.csv"))
    assert names
    for name in names:
        assert (pages[0] / name).read_bytes() == (pages[1] / name).read_bytes()
    assert not list(shared.rglob("claim.json"))
