"""The programs of several machines: a worker's own; training on workers, and when none is left."""

import json
import os
import pathlib
import signal
import socket
import subprocess
import sys

import pytest

from experiments.run import one
from experiments.run.config import RunConfig
from tff_het.backend.names import tff
from tff_het.simulation import several_workers
from tff_het.simulation.worker_process import WorkerProcess

ROOT = pathlib.Path(__file__).parents[2]
ROUNDS = 6
RUN = ("--method=hdafl", "--clients_per_round=3", f"--rounds={ROUNDS}")
AGGREGATORS = {
    "dp": {"noise_multiplier": "0.5", "update_clip_norm": "0.3"},
    "robust": {},
    "compressed": {"quantization_threshold": "1000"},
}


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("", 0))
        return one.getsockname()[1]


class WorkerProgram:
    """`python -m experiments.worker`."""

    def __init__(self, port: int):
        self.port = port
        self.mark = f"worker-program-{os.getpid()}-{port}"
        self.popen = subprocess.Popen(
            [sys.executable, "-m", "experiments.worker", f"--port={port}"],
            env={**os.environ, "PYTHONPATH": str(ROOT), "MARK": self.mark},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def wait_until_serving(self) -> None:
        assert self.popen.stdout is not None
        assert self.popen.stdout.readline() == f"Serving on port {self.port}.\n"

    def end(self, number: int) -> tuple[int, str]:
        """Its exit code and what it said, after this signal."""
        self.popen.send_signal(number)
        _, stderr = self.popen.communicate(timeout=60)
        return self.popen.returncode, stderr


@pytest.fixture
def start():
    """(number) -> that many worker programs, which serve."""
    started: list[WorkerProgram] = []

    def start_some(*ports: int) -> list[WorkerProgram]:
        some = [WorkerProgram(port) for port in ports]
        started.extend(some)
        for program in some:
            program.wait_until_serving()
        return some

    yield start_some
    for program in started:
        program.popen.kill()
        program.popen.communicate()


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_worker_leaves_no_process(start, tools, number):
    (program,) = start(free_port())
    assert len(tools.processes_with(program.mark)) == 2
    code, stderr = program.end(number)
    assert (code, stderr) == (-9 if number == signal.SIGKILL else 0, "")
    tools.wait_for(lambda: not tools.processes_with(program.mark))


@pytest.mark.slow
def test_worker_refuses_what_it_cannot_do(start):
    (program,) = start(free_port())
    for argv, message in (
        ((f"--port={program.port}",), f"error: Port {program.port} is not to be had"),
        ((), "error: "),
        (("--port=70000",), "error: "),
    ):
        ended = subprocess.run(
            [sys.executable, "-m", "experiments.worker", *argv],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
        )
        assert ended.returncode == 2
        assert ended.stderr.startswith(message) and ended.stderr.count("\n") == 1
        assert argv or "--port" in ended.stderr


@pytest.mark.slow
def test_worker_whose_process_dies_fails(start, tools):
    (program,) = start(free_port())
    (child,) = set(tools.processes_with(program.mark)) - {program.popen.pid}
    os.kill(child, signal.SIGKILL)
    _, stderr = program.popen.communicate(timeout=60)
    assert program.popen.returncode == 1
    assert "signal 9 (Killed)" in stderr


@pytest.fixture(scope="module")
def addresses():
    """Where two workers serve that stay."""
    serving = [WorkerProcess(1) for _ in range(2)]
    yield [f"localhost:{process.port}" for process in serving]
    for process in serving:
        process.stop()


@pytest.mark.slow
@pytest.mark.parametrize("aggregator", AGGREGATORS)
def test_aggregators_give_what_they_give_on_one_machine(
    worker, addresses, tools, tmp_path, aggregator
):
    values = {
        "dataset": "digits",
        "partition": "iid",
        "num_clients": "5",
        "clients_per_round": "3",
        "model": "mlp",
        "method": "hdafl",
        "rounds": "2",
        "aggregator": aggregator,
        **AGGREGATORS[aggregator],
    }
    with tff.framework.get_context_stack().install(worker):
        one.run(RunConfig.of(**values), tmp_path / "one" / "hdafl").close()
    with several_workers.use(addresses):
        one.run(RunConfig.of(**values), tmp_path / "several" / "hdafl").close()
    here, there = (tools.results(tmp_path / name, ["hdafl"]) for name in ("one", "several"))
    assert there == here


@pytest.mark.slow
def test_run_that_loses_all_workers_goes_on(programs, start, tools, tmp_path):
    one, several, shared = (tmp_path / name for name in ("one", "several", "shared"))
    shared.mkdir()
    programs.run(*RUN, "--runtime=worker", f"--output_dir={one}")
    ports = (free_port(), free_port())
    serving = start(*ports)
    command = (
        *RUN,
        f"--workers=localhost:{ports[0]},localhost:{ports[1]}",
        f"--output_dir={several}",
        f"--shared_examples_dir={shared}",
    )
    program = programs.start(*command, "--worker_deadline=10", round_seconds=1.0)
    table = several / "hdafl" / "times.csv"
    tools.wait_for(lambda: table.exists() and table.read_text().count("\n") > 2)
    for worker in serving:
        worker.end(signal.SIGKILL)
    assert program.wait() == 1
    last = program.stderr.splitlines()[-1]
    assert last.startswith(f"error: No worker is left (localhost:{ports[0]}: ")
    assert "Traceback" not in program.stderr
    done = (several / "hdafl" / "metrics.csv").read_text().count("\n") - 1
    assert 1 <= done < ROUNDS
    start(*ports)
    programs.run(*command)
    assert tools.results(several, ["hdafl"]) == tools.results(one, ["hdafl"])
    assert json.loads((several / "hdafl" / "summary.json").read_text())["rounds"] == ROUNDS
    assert list(shared.iterdir())
