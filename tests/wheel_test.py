"""A wheel: what is in it, and that its programs run without the checkout."""

import importlib.util
import pathlib
import re
import shutil
import subprocess
import sys
import zipfile

import pytest

ROOT = pathlib.Path(__file__).parents[1]


def test_overrides_for_uvx_are_those_of_uv():
    lines = (ROOT / "docs/overrides.txt").read_text().splitlines()
    settings = (ROOT / "pyproject.toml").read_text().partition("override-dependencies = [")[2]
    assert lines[1:] == re.findall(r'^ +"(.+)",$', settings.partition("\n]")[0], re.M)


@pytest.mark.slow
def test_programs_run_from_a_wheel(tmp_path, monkeypatch):
    source, empty = tmp_path / "source", tmp_path / "empty"
    for name in ("tff_het", "experiments", "embeddings"):
        shutil.copytree(ROOT / name, source / name)
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    build = "from setuptools import build_meta; build_meta.build_wheel('dist')"
    subprocess.run([sys.executable, "-c", build], cwd=source, check=True, capture_output=True)
    (wheel,) = (source / "dist").glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "site")
    assert [p.name for p in (tmp_path / "site").iterdir() if "dist-info" not in p.name] == [
        "tff_het"
    ]

    empty.mkdir()
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "site"))

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "tff_het", *words]
        return subprocess.run(command, cwd=empty, capture_output=True, text=True, check=False)

    table = ["--scale=smoke", "--output_dir=out", "--jobs=2"]
    embed = ["embed", "--help"] if importlib.util.find_spec("apache_beam") else ["help"]
    for words in (["train", "--rounds=1"], ["reproduce", "cgau.figure3", *table], embed):
        assert run(*words).returncode == 0
    assert (empty / "runs/demo/comparison.md").exists()
    page = run("report", "--output_dir=out")
    assert page.stdout.strip() == "out/report/index.html"
    refused = run("report")
    assert refused.returncode == 2 and "in a checkout" in refused.stderr
