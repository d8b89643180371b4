"""Each row of `bad_inputs.py`, run by the programs themselves: one line, a code, nothing left."""

import collections
import json
import os
import pathlib
import subprocess
import sys
from collections.abc import Iterator

import bad_inputs
import pytest
from bad_inputs import REFUSED, ROWS, STOPPED, WORKS, Row

ROOT = pathlib.Path(__file__).parents[1]


class Programs:
    """Runs programs as forks of one process, which has imported TensorFlow."""

    def __init__(self) -> None:
        self._server = subprocess.Popen(
            [sys.executable, "-W", "ignore", ROOT / "tests" / "forking.py"],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, program: str, flags: str, folder: pathlib.Path, **request) -> tuple[int, str]:
        """Returns the exit code and what was printed."""
        request |= {"argv": ["-m", program, *flags.split()], "folder": str(folder)}
        assert self._server.stdin is not None and self._server.stdout is not None
        self._server.stdin.write(json.dumps(request) + "\n")
        self._server.stdin.flush()
        code = int(self._server.stdout.readline())
        printed = folder / "printed"
        text = printed.read_text()
        printed.unlink()
        return code, text

    def close(self) -> None:
        self._server.kill()
        self._server.communicate()


@pytest.fixture(scope="module")
def programs(tmp_path_factory) -> Iterator[Programs]:
    started = Programs()
    bad_inputs.RUN = tmp_path_factory.mktemp("run")
    flags = f"{bad_inputs.RUN_FLAGS} --output_dir={bad_inputs.RUN}"
    assert started.run("experiments.train", flags, bad_inputs.RUN)[0] == WORKS
    bad_inputs.MATRIX = tmp_path_factory.mktemp("matrix")
    flags = f"{bad_inputs._FEW} --output_dir={bad_inputs.MATRIX}"
    assert started.run("experiments.compare", flags, bad_inputs.MATRIX)[0] == WORKS
    yield started
    started.close()


def content(folder: pathlib.Path) -> dict[str, bytes]:
    paths = sorted(folder.rglob("*"))
    return {str(p.relative_to(folder)): p.read_bytes() if p.is_file() else b"" for p in paths}


def filled_in(text: str, folder: pathlib.Path) -> str:
    return text.replace("{in}", str(folder / "in")).replace("{out}", str(folder / "out"))


def run(row: Row, programs: Programs, folder: pathlib.Path, **request) -> tuple[int, str]:
    flags = filled_in(row.flags, folder)
    if "--output_dir" not in flags:
        flags += f" --output_dir={folder / 'out'}"
    return programs.run(row.program, flags, folder, **request)


def name_of(row: Row) -> str:
    return f"{row.program.removeprefix('experiments.')} {row.flags}"[:90]


@pytest.mark.parametrize("row", ROWS, ids=name_of)
def test_row(row, programs, tmp_path):
    (tmp_path / "in").mkdir()
    if row.makes is not None:
        row.makes(tmp_path / "in")
    before = content(tmp_path)
    code, printed = run(row, programs, tmp_path, **row.request)
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


@pytest.mark.parametrize("name", ["caf\u00e9", "\u2713"])
def test_letters_that_the_locale_lacks(tmp_path, name):
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
