"""The training program, run as often as tests like."""

import dataclasses
import json
import os
import pathlib
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence

import pytest

ROOT = pathlib.Path(__file__).parents[2]
SECONDS = 120.0  # For anything, on a busy machine.


def wait_for(condition, seconds: float = SECONDS) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"Not within {seconds} s."
        time.sleep(0.005)


def processes_with(text: str) -> list[int]:
    """Processes that were started with this text in their environment."""
    found = []
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if text.encode() in (folder / "environ").read_bytes():
                found.append(int(folder.name))
        except OSError:  # It has ended meanwhile, or is of another user.
            continue
    return found


@dataclasses.dataclass
class Program:
    """One run of the program."""

    server: "Programs"
    pid: int
    output: pathlib.Path
    temporary: pathlib.Path

    def wait(self) -> int:
        """Returns its exit status; nothing of it may be left."""
        status = self.server.ask({"wait": self.pid})
        wait_for(lambda: not processes_with(str(self.temporary)), 10.0)
        assert list(self.temporary.iterdir()) == []
        return status

    @property
    def stdout(self) -> str:
        return (self.output / "stdout").read_text()

    @property
    def stderr(self) -> str:
        return (self.output / "stderr").read_text()


class Programs:
    """Starts runs of `experiments.train`."""

    def __init__(self, folder: pathlib.Path):
        self._folder = folder
        self._count = 0
        self._popen = subprocess.Popen(
            [sys.executable, pathlib.Path(__file__).with_name("program_server.py")],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._popen.stdout is not None
        assert self._popen.stdout.readline() == "ready\n"

    def ask(self, request: dict) -> int:
        assert self._popen.stdin is not None and self._popen.stdout is not None
        self._popen.stdin.write(json.dumps(request) + "\n")
        self._popen.stdin.flush()
        return int(self._popen.stdout.readline())

    def start(
        self,
        *argv: str,
        kill: tuple[str, str, int, str] | None = None,
        round_seconds: float = 0.0,
    ) -> Program:
        self._count += 1
        output = self._folder / f"program {self._count}"
        temporary = output / "tmp"
        temporary.mkdir(parents=True)
        request = {
            "argv": argv,
            "output": str(output),
            "temporary": str(temporary),
            "kill": kill,
            "round_seconds": round_seconds,
        }
        return Program(self, self.ask(request), output, temporary)

    def run(self, *argv: str, **options) -> Program:
        """Runs to the end, which has to be a success."""
        program = self.start(*argv, **options)
        assert program.wait() == 0, program.stderr
        return program

    def close(self) -> None:
        self._popen.kill()
        self._popen.communicate()


@pytest.fixture(scope="session")
def programs(tmp_path_factory) -> Iterator[Programs]:
    server = Programs(tmp_path_factory.mktemp("programs"))
    yield server
    server.close()


def results(folder: pathlib.Path, methods: Sequence[str]) -> dict[str, bytes]:
    """What has to be the same, byte for byte, whenever the seed is."""
    names = ("metrics.csv", "clients.csv", "summary.json", "weights.npz")
    return {f"{m}/{name}": (folder / m / name).read_bytes() for m in methods for name in names}


@pytest.fixture(scope="session")
def tools():
    """This module's functions."""
    return sys.modules[__name__]
