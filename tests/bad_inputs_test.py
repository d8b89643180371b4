"""Each row of `bad_inputs.py`, run by the programs themselves: one line, a code, nothing left."""

import collections
import functools
import os
import pathlib
import subprocess
import sys
from collections.abc import Iterator

import bad_inputs
import pytest
from bad_inputs import FAILS, REFUSED, ROWS, STOPPED, WORKS, Row
from programs import ROOT, Programs


@pytest.fixture(scope="module")
def forks(tmp_path_factory) -> Iterator[Programs]:
    started = Programs()
    for name, program, flags in (
        ("RUN", "experiments.train", bad_inputs.RUN_FLAGS),
        ("MATRIX", "experiments.sweep", bad_inputs.MATRIX_FLAGS),
    ):
        folder = tmp_path_factory.mktemp(name)
        argv = ["-m", program, *flags.split(), f"--output_dir={folder}"]
        assert started.run(argv, folder).code == WORKS
        setattr(bad_inputs, name, folder)
    yield started
    started.close()


def content(folder: pathlib.Path) -> dict[str, bytes]:
    paths = sorted(folder.rglob("*"))
    return {str(p.relative_to(folder)): p.read_bytes() if p.is_file() else b"" for p in paths}


def filled_in(text: str, folder: pathlib.Path) -> str:
    return text.replace("{in}", str(folder / "in")).replace("{out}", str(folder / "out"))


def name_of(row: Row) -> str:
    return f"{row.program.removeprefix('experiments.')} {row.flags}"[:90]


# What is refused is refused soon; other rows train.
REFUSALS = [row for row in ROWS if row.code == REFUSED]
OTHERS = [pytest.param(row, marks=pytest.mark.slow) for row in ROWS if row.code != REFUSED]


@pytest.mark.parametrize("row", [*REFUSALS, *OTHERS], ids=name_of)
def test_row(row, forks, tmp_path):
    (tmp_path / "in").mkdir()
    if row.makes is not None:
        row.makes(tmp_path / "in")
    before = content(tmp_path)
    argv = ["-m", row.program, *filled_in(row.flags, tmp_path).split()]
    if "--output_dir" not in row.flags:
        argv.append(f"--output_dir={tmp_path / 'out'}")
    code, printed, *_ = forks.run(argv, tmp_path, **row.request)
    assert code == row.code, printed
    assert "Traceback" not in printed
    if code == WORKS:
        return
    assert filled_in(row.says, tmp_path) in printed
    if code == STOPPED:
        assert printed.splitlines()[-1].startswith("Stopped: ")
    if code == REFUSED:
        assert printed.startswith("error: ") and printed.count("\n") == 1
        assert content(tmp_path) == before


def results(
    forks: Programs, folder: pathlib.Path, program: str, flags: str, *requests
) -> dict[str, bytes]:
    """Runs a command once for each request, and returns what the last run left."""
    argv = ["-m", program, *flags.split(), f"--output_dir={folder / 'out'}"]
    for request in requests:
        ended = forks.run(argv, folder, **request)
    assert ended.code == WORKS, ended.printed
    return {
        path: data
        for path, data in content(folder).items()
        if path.endswith((".csv", "summary.json", "weights.npz", ".md", ".png"))
        and not path.endswith("times.csv")
    }


@pytest.fixture(scope="module")
def whole(forks, tmp_path_factory):
    """What a command leaves that nothing stops; rows share commands."""
    return functools.cache(
        lambda *command: results(forks, tmp_path_factory.mktemp("whole"), *command, {})
    )


@pytest.mark.slow
@pytest.mark.parametrize("row", bad_inputs.STOPS, ids=name_of)
def test_what_was_stopped_goes_on_to_the_same_bytes(row, forks, whole, tmp_path):
    expected = whole(row.program, row.flags)
    assert expected
    assert results(forks, tmp_path, row.program, row.flags, row.request, {}) == expected


def test_where_one_method_diverges_the_others_are_trained(forks, tmp_path):
    flags = "--method=fed_avg,local_only --rounds=2 --server_optimizer=sgd --model=mlp"
    flags += " --client_learning_rate=0.5 --server_learning_rate=3e38"
    argv = ["-m", "experiments.train", *flags.split(), f"--output_dir={tmp_path / 'out'}"]
    ended = forks.run(argv, tmp_path)
    assert ended.code == FAILS and "error: fed_avg: " in ended.printed
    assert "Lower the client learning rate" in ended.printed and "Traceback" not in ended.printed
    assert "local_only" in (tmp_path / "out" / "comparison.md").read_text()
    assert not (tmp_path / "out" / "fed_avg" / "summary.json").exists()


def test_letters_that_the_locale_lacks(tmp_path):
    name = "caf\u00e9_\u2713"
    argv = [sys.executable, "-m", "experiments.report", f"--output_dir={tmp_path / name}"]
    plain = {"PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "LC_ALL": "C"}
    env = {**os.environ, "PYTHONPATH": str(ROOT), **plain}
    done = subprocess.run(argv, env=env, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == REFUSED and done.stdout == ""
    assert "has letters that the locale C does not have: set PYTHONUTF8=1" in done.stderr
    assert done.stderr.count("\n") == 1 and list(tmp_path.iterdir()) == []


def test_rows_are_many_and_different():
    counts = collections.Counter(map(str, ROWS))
    assert len(counts) > 150 and max(counts.values()) == 1
