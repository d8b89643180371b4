"""`experiments.reproduce` makes what it is told, and keeps runs where the report looks for them."""

import pathlib
import subprocess
import sys

import pytest

from experiments import list as listing
from experiments import main, reproduce
from experiments.hdafl import figure2
from experiments.study import papers, runner
from experiments.study.store import Status

ROOT = pathlib.Path(__file__).parents[3]


@pytest.mark.slow
def test_cells_that_are_functions_of_the_module(tmp_path):
    command = [sys.executable, "-m", "experiments.reproduce", "hdafl.figure2", "--scale=smoke"]
    done = subprocess.run(
        [*command, f"--output_dir={tmp_path}"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    results = runner.read(figure2.EXPERIMENT, "smoke", tmp_path)
    assert results is not None
    assert {run.status for run in results.runs.values()} == {Status.OK}


def test_names_are_those_that_the_list_prints():
    assert list(listing.lines("experiments")) == papers.names()
    assert [one.id for one in papers.all_experiments()] == papers.names()


@pytest.mark.parametrize(
    ("argv", "begins"),
    [(["--help"], reproduce.__doc__), (["hdafl.figure2", "--help"], figure2.__doc__)],
)
def test_help_is_of_the_table_that_is_named(capsys, argv, begins):
    with pytest.raises(SystemExit, match="0"):
        main.main(["reproduce", *argv])
    text = capsys.readouterr().out
    assert text.startswith(begins) and "--scale: smoke: seconds" in text


def test_a_table_has_no_program_of_its_own():
    for name in papers.names():
        path = ROOT / "experiments" / f"{name.replace('.', '/')}.py"
        assert "__main__" not in path.read_text(), name
