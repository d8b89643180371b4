"""Metadata live in pyproject.toml; here is where a wheel keeps the programs."""

import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py


class BuildPy(build_py):
    """Of a wheel `tff_het` alone is top-level: the programs lie in its folder `suite`."""

    def run(self) -> None:
        shutil.rmtree(self.build_lib, ignore_errors=True)  # Of a build before.
        super().run()
        if not self.editable_mode:
            suite = Path(self.build_lib, "tff_het", "suite")
            suite.mkdir()
            for programs in ("embeddings", "experiments"):
                shutil.move(Path(self.build_lib, programs), suite)


setup(cmdclass={"build_py": BuildPy})
