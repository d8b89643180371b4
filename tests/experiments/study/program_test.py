"""A module run as a program keeps its runs where the report looks for them."""

import pathlib
import subprocess
import sys

import pytest

from experiments.hdafl import figure2
from experiments.study import runner
from experiments.study.store import Status

ROOT = pathlib.Path(__file__).parents[3]


@pytest.mark.slow
def test_cells_that_are_functions_of_the_program_itself(tmp_path):
    """There the function's module is called `__main__`."""
    command = [sys.executable, "-m", "experiments.hdafl.figure2", "--scale=smoke"]
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
