"""The README's example runs, and its commands are those that CI runs."""

import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()


@pytest.mark.slow
def test_the_worked_example_of_a_method_runs(tmp_path):
    code = max(re.findall(r"```python\n(.*?)```", README, re.DOTALL), key=len)
    assert len(code.strip().splitlines()) <= 45
    script = tmp_path / "example.py"
    script.write_text(code)
    result = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, cwd=ROOT, timeout=300, check=False
    )
    assert result.returncode == 0, result.stderr
    accuracies = [float(number) for number in re.findall(r"\d+\.\d*", result.stdout)]
    assert len(accuracies) == 5
    # Far above the 0.1 of guessing, so something was learned.
    assert sum(accuracies) / 5 > 0.5


def test_ci_runs_the_readme_commands():
    ci = (ROOT / ".ci" / "run").read_text()
    for pattern in re.findall(r"grep -m1 -o '([^']+)' README.md", ci):
        assert re.search(pattern, README), pattern


def test_files_named_in_the_readme_exist():
    links = [link for link in re.findall(r"\]\(([^)#]+)\)", README) if "://" not in link]
    named = re.findall(r"--flagfile=(\S+\.flags)", README)
    assert links and named
    for name in links + named:
        assert (ROOT / name).exists(), name
