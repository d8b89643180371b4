"""A run that is stopped or killed, at any moment, ends with the bytes of one that never was."""

import csv
import io
import os
import pathlib
import signal
import time

import numpy as np
import pytest

METHODS = ["hdafl"]
ROUNDS = 100
RUN = ("--method=hdafl", "--clients_per_round=3", "--eval_every=2", "--local_steps=8")

# By (class, function, which call in the process, before or after it). Each starts where the one
# before was killed, and gets further by a round or more.
KILLS = [
    ("Checkpoints", "put_clients", 2, "before"),
    ("Checkpoints", "put_clients", 2, "after"),
    ("Records", "put", 2, "before"),
    ("Checkpoints", "put_row", 3, "after"),  # Between the rows of metrics.csv and clients.csv.
    # In memory, a round puts two rows of tables, three clients, their block, the server; on disk,
    # three rounds put 18 times before the server. The 133rd is the server's in both.
    ("Checkpoints", "_put", 12, "after"),  # Between clients' states and their checksums.
    ("Checkpoints", "_put", 133, "before"),  # Between the server's old row and its new one.
    ("Checkpoints", "_put", 133, "after"),
    # One commit in the program's look at the folder, one at the opening, one for each save.
    ("Checkpoints", "_commit", 4, "before"),
    ("Checkpoints", "_commit", 4, "after"),
    ("Table", "flush", 3, "before"),
    ("Table", "flush", 3, "after"),  # Between the flush of metrics.csv and that of clients.csv.
    ("Records", "put_times", 2, "before"),
    ("Records", "__init__", 1, "before"),
    ("Records", "__init__", 1, "after"),
    ("", "write_atomically", 1, "before"),
    ("", "write_json", 1, "before"),  # The summary, after the last round.
    ("", "write_json", 1, "after"),
]


# How runs keep clients and checkpoints.
DISK = ("--client_store=disk", "--checkpoint_every=3")


LONG = (*RUN, f"--rounds={ROUNDS}")


@pytest.fixture(scope="module")
def reference(programs, tmp_path_factory, tools) -> dict[str, bytes]:
    folder = tmp_path_factory.mktemp("reference")
    programs.run(*LONG, f"--output_dir={folder}")
    return tools.results(folder, METHODS)


def rounds_in(folder: pathlib.Path, name: str) -> list[int]:
    path = folder / "hdafl" / name
    if not path.exists():
        return []
    return [int(row["round"]) for row in csv.DictReader(io.StringIO(path.read_text()))]


def assert_prefix(folder: pathlib.Path, reference: dict[str, bytes]) -> None:
    """At any moment: tables are the beginning of what they will be, up to a line's end."""
    for name in ("metrics.csv", "clients.csv"):
        path = folder / "hdafl" / name
        if path.exists():
            text = path.read_bytes()
            assert reference[f"hdafl/{name}"].startswith(text) and text.endswith(b"\n")


@pytest.mark.slow
@pytest.mark.parametrize("keeping", [(), DISK], ids=["memory", "disk"])
def test_killed_between_any_two_writes(programs, reference, tools, tmp_path, keeping):
    command = (*LONG, *keeping, f"--output_dir={tmp_path}")
    begun = []
    for kill in KILLS:
        program = programs.start(*command, kill=kill)
        assert program.wait() == -signal.SIGKILL, (kill, program.stderr)
        assert_prefix(tmp_path, reference)
        begun.append(len(rounds_in(tmp_path, "metrics.csv")))
    assert begun == sorted(begun) and len(set(begun)) > 5
    assert begun[-1] == ROUNDS
    programs.run(*command)
    assert tools.results(tmp_path, METHODS) == reference


@pytest.mark.slow
def test_on_a_worker_killed_at_random_moments(programs, tools, tmp_path):
    command = (*RUN, "--rounds=20", "--runtime=worker", *DISK)
    programs.run(*command, f"--output_dir={tmp_path / 'whole'}")
    reference = tools.results(tmp_path / "whole", METHODS)
    folder = tmp_path / "killed"
    rng = np.random.default_rng(0)
    for _ in range(3):
        before = len(rounds_in(folder, "times.csv"))
        program = programs.start(*command, f"--output_dir={folder}", round_seconds=0.3)
        tools.wait_for(lambda n=before: len(rounds_in(folder, "times.csv")) > n)
        time.sleep(rng.uniform(0, 0.6))
        os.kill(program.pid, signal.SIGKILL)
        assert program.wait() == -signal.SIGKILL, program.stderr
        assert_prefix(folder, reference)
    assert len(rounds_in(folder, "metrics.csv")) < 20
    programs.run(*command, f"--output_dir={folder}")
    assert tools.results(folder, METHODS) == reference


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signal_finishes_the_round_and_the_command_goes_on(
    programs, reference, tools, tmp_path, number
):
    command = (*LONG, "--checkpoint_every=20", f"--output_dir={tmp_path}")
    program = programs.start(*command, round_seconds=0.2)
    tools.wait_for(lambda: len(rounds_in(tmp_path, "times.csv")) >= 3)
    os.kill(program.pid, number)
    assert program.wait() == 128 + number
    done = rounds_in(tmp_path, "metrics.csv")[-1]
    assert 3 <= done < 20  # Saved, although it was not due.
    last = program.stderr.splitlines()[-1]
    assert last == (
        f"Stopped by {number.name} after round {done} of {ROUNDS}: the same command goes on from "
        "there."
    )
    assert "Traceback" not in program.stderr
    programs.run(*command)
    assert rounds_in(tmp_path, "times.csv") == [*range(1, ROUNDS + 1)]  # None a second time.
    assert tools.results(tmp_path, METHODS) == reference


@pytest.mark.slow
def test_ctrl_c_in_the_last_round_of_a_method_ends_the_program(programs, tools, tmp_path):
    command = (*RUN, "--method=hdafl,fed_avg", "--rounds=1", f"--output_dir={tmp_path}")
    program = programs.start(*command, round_seconds=3)
    tools.wait_for(lambda: (tmp_path / "hdafl" / "times.csv").exists())
    time.sleep(0.5)  # Into the only round.
    os.kill(program.pid, signal.SIGINT)
    assert program.wait() == 130
    assert "Stopped by SIGINT after round 1 of 1" in program.stderr
    assert not (tmp_path / "fed_avg").exists()
    programs.run(*command)
    assert (tmp_path / "fed_avg" / "summary.json").exists()


@pytest.mark.slow
def test_second_ctrl_c_does_not_wait(programs, tools, tmp_path):
    command = (*RUN, "--rounds=3", f"--output_dir={tmp_path}")
    program = programs.start(*command, round_seconds=60)
    tools.wait_for(lambda: (tmp_path / "hdafl" / "times.csv").exists())
    time.sleep(0.5)
    os.kill(program.pid, signal.SIGINT)
    time.sleep(0.5)
    start = time.monotonic()
    os.kill(program.pid, signal.SIGINT)
    assert program.wait() in (-signal.SIGINT, 130)
    assert time.monotonic() - start < 30  # A round takes 60 s; a busy machine needs 15.
    assert rounds_in(tmp_path, "metrics.csv") == []
