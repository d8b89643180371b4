"""Checkpoint files: what comes back, what is forgotten, and what is refused."""

import collections
import contextlib
import json
import logging
import os
import pathlib
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator

import numpy as np
import pytest
import tensorflow as tf

from tff_het.learning.client_work import ClientState
from tff_het.models.model import Weights
from tff_het.simulation import checkpoints
from tff_het.simulation.checkpoints import CheckpointError, Checkpoints

CONFIG = {"seed": 0, "method": "hdafl", "classes": [[0, 1], [2]], "rate": 0.1}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "checkpoints" / "run.sqlite"


def opened(path, config=CONFIG):
    return contextlib.closing(Checkpoints(path, config))


def state_of(value: float) -> dict[str, np.ndarray]:
    return {"weights": np.full(1000, value, np.float32)}


def make_run(path, rounds: int) -> None:
    with opened(path) as saved:
        for round_num in range(1, rounds + 1):
            saved.put_clients(round_num, [(round_num % 2, checkpoints.encode(round_num))])
            saved.put_row("metrics", round_num, f"{round_num}\n")
            saved.save(round_num, state_of(round_num))


# --- Encoding ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "value",
    [
        *(
            np.arange(6).reshape(2, 3).astype(dtype)
            for dtype in (np.int8, np.uint8, np.int32, np.int64, np.float16, np.float32, np.float64)
        ),
        np.array([True, False]),
        np.array([1 + 2j], np.complex64),
        np.float32(0.1),
        np.zeros([0, 3], np.float32),
        np.array([np.nan, -0.0, np.inf, 1e-45], np.float32),
        np.asfortranarray(np.arange(6).reshape(2, 3)),
        np.arange(10)[::-2],
        np.array([b"one", b"three"]),
        np.array("text"),
    ],
    ids=lambda value: f"{value.dtype}{list(value.shape)}",
)
def test_arrays_come_back(value):
    found = checkpoints.decode(checkpoints.encode(value), like=0)
    assert found.dtype == value.dtype and found.shape == value.shape
    assert found.tobytes() == np.ascontiguousarray(value).tobytes()


def test_structures_come_back():
    state = ClientState(
        model=Weights([np.ones(2), np.zeros([])], []),
        work=collections.OrderedDict(pool=np.arange(3), nothing=()),
        rounds=np.int32(3),
    )
    # TFF gives tensors or arrays; the structure alone is taken from `like`.
    like = tf.nest.map_structure(lambda _: 0, state)
    found = checkpoints.decode(checkpoints.encode(state), like)
    assert isinstance(found, ClientState) and isinstance(found.model, Weights)
    assert found.work["nothing"] == ()
    tf.nest.assert_same_structure(found, state)
    tf.nest.map_structure(np.testing.assert_array_equal, found, state)


def test_tensors_become_arrays():
    found = checkpoints.decode(checkpoints.encode(tf.constant([1.5])), like=0)
    np.testing.assert_array_equal(found, np.array([1.5], np.float32))


@pytest.mark.parametrize("empty", [(), [], {}, Weights([], [])])
def test_empty_structures_come_back(empty):
    assert checkpoints.decode(checkpoints.encode(empty), like=empty) == empty


@pytest.mark.parametrize(
    "value", [np.array([None]), tf.zeros([2], tf.bfloat16)], ids=["object", "bfloat16"]
)
def test_what_would_not_come_back_is_refused(value):
    with pytest.raises(TypeError, match=r"dtype (object|bfloat16) cannot be kept"):
        checkpoints.encode(value)


@pytest.mark.parametrize("like", [[0], [0, 0, 0]])
def test_state_of_another_structure_is_refused(like):
    with pytest.raises(CheckpointError, match=f"has 2 values where {len(like)} are expected"):
        checkpoints.decode(checkpoints.encode([np.ones(3), 4.0]), like)


# --- What is kept -----------------------------------------------------------------------------


def test_new_file_is_empty(path):
    with opened(path) as saved:
        assert saved.latest_round() is None
        assert saved.client_state(0) is None and saved.rows("metrics") == []
    assert checkpoints.rounds_done(path.parents[1], CONFIG) == 0


def test_run_goes_on_from_the_last_checkpoint(path):
    make_run(path, 3)
    with opened(path) as saved:
        assert saved.latest_round() == 3
        np.testing.assert_array_equal(
            saved.server_state(like=state_of(0))["weights"], np.full(1000, 3)
        )
        assert [checkpoints.decode(saved.client_state(client), 0) for client in (0, 1)] == [2, 3]
        assert saved.rows("metrics") == [(1, "1\n"), (2, "2\n"), (3, "3\n")]
    assert checkpoints.rounds_done(path.parents[1], CONFIG) == 3


def test_what_was_not_saved_is_there_until_the_end_and_then_gone(path):
    make_run(path, 2)
    with opened(path) as saved:
        saved.put_clients(3, [(1, checkpoints.encode(30))])
        saved.put_row("metrics", 3, "3\n")
        assert checkpoints.decode(saved.client_state(1), 0) == 30
        assert len(saved.rows("metrics")) == 3
    with opened(path) as saved:
        assert checkpoints.decode(saved.client_state(1), 0) == 1
        assert saved.rows("metrics") == [(1, "1\n"), (2, "2\n")]


def test_file_does_not_grow_with_saves(path):
    num_clients, sizes = 5, []
    rng = np.random.default_rng(0)
    newest = {}
    with opened(path) as saved:
        for round_num in range(1, 101):
            for client in map(int, rng.choice(num_clients, 2, replace=False)):
                newest[client] = round_num
                saved.put_clients(
                    round_num, [(client, checkpoints.encode(np.full(1000, round_num)))]
                )
            saved.save(round_num, state_of(round_num))
            sizes.append(path.stat().st_size)
        for client, round_num in newest.items():
            assert checkpoints.decode(saved.client_state(client), 0)[0] == round_num
    with contextlib.closing(sqlite3.connect(path)) as db:
        servers = [r for (r,) in db.execute("SELECT round FROM servers ORDER BY round")]
        states = db.execute("SELECT owner, round FROM clients ORDER BY owner").fetchall()
    assert servers == [100] and states == sorted(newest.items())
    assert max(sizes[50:]) <= max(sizes[:50])


# --- What is refused --------------------------------------------------------------------------


def refusal(path, config=CONFIG) -> str:
    with pytest.raises(CheckpointError) as error:
        Checkpoints(path, config)
    message = str(error.value)
    assert str(path) in message and "\n" not in message
    return message


def test_run_with_other_settings_is_refused_naming_each(path):
    make_run(path, 1)
    before = path.read_bytes()
    message = refusal(path, {**CONFIG, "seed": 1, "new": 2, "classes": [[0, 1], [3]]})
    assert "seed: 0 there, 1 now" in message
    assert "new: None there, 2 now" in message
    assert "classes: [[0, 1], [2]] there, [[0, 1], [3]] now" in message
    assert "method" not in message and "rate" not in message
    assert path.read_bytes() == before
    make_run(path, 2)  # Not locked by the refusal.


def test_settings_are_compared_as_json(path):
    make_run(path, 1)
    with opened(path, {**CONFIG, "classes": ((0, 1), (2,))}) as saved:
        assert saved.latest_round() == 1


def test_format_of_another_version_is_refused(path):
    make_run(path, 1)
    with contextlib.closing(sqlite3.connect(path)) as db, db:
        db.execute("UPDATE about SET value = '0' WHERE key = 'format'")
    assert "has format 0, this version reads 3" in refusal(path)


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM clients WHERE owner = 300",
        "UPDATE clients SET owner = 3000 WHERE owner = 300",
        "UPDATE clients SET round = 2 WHERE owner = 300",
        "UPDATE clients SET value = (SELECT max(value) FROM clients) WHERE owner = 300",
        "UPDATE blocks SET checksums = (SELECT checksums FROM blocks WHERE block = 0)",
        "UPDATE blocks SET block = 9 WHERE block = 1",
        "DELETE FROM blocks WHERE block = 1",
        "UPDATE blocks SET checksums = 'text' WHERE block = 1",
    ],
)
def test_of_a_large_file_damage_is_noticed_when_the_client_is_read(path, monkeypatch, statement):
    with opened(path) as saved:
        saved.put_clients(1, [(client, checkpoints.encode(client)) for client in range(600)])
        saved.save(1, state_of(1))
    with contextlib.closing(sqlite3.connect(path)) as db, db:
        assert db.execute(statement).rowcount
    monkeypatch.setattr(checkpoints, "_SMALL", 0)
    with opened(path) as saved:
        assert checkpoints.decode(saved.client_state(5), 0) == 5
        with pytest.raises(CheckpointError, match="is damaged") as error:
            saved.client_state(300)
    assert str(path) in str(error.value)


def steps_to_open(path, num_clients: int) -> int:
    """Makes a file; counts the instructions of SQLite that opening and a look-up take."""
    with opened(path) as saved:
        saved.put_clients(1, ((client, b"state") for client in range(num_clients)))
        saved.save(1, state_of(1))
    steps = [0]

    class Counted(sqlite3.Connection):
        def __init__(self, *args, **options):
            super().__init__(*args, **options)
            self.set_progress_handler(self.step, 1)

        def step(self) -> int:
            steps[0] += 1
            return 0

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(checkpoints, "_SMALL", 0)
        connect = sqlite3.connect
        patch.setattr(sqlite3, "connect", lambda *a, **o: connect(*a, factory=Counted, **o))
        with opened(path) as saved:
            assert saved.client_state(7) == b"state"
    return steps[0]


def test_a_large_file_opens_as_fast_whatever_the_number_of_clients(tmp_path):
    few, many = (steps_to_open(tmp_path / f"{n}.sqlite", n) for n in (256, 20_000))
    assert 20 < few == many


@pytest.mark.parametrize("share", [0.3, 0.6, 0.95])
def test_truncated_file_is_refused(path, share):
    make_run(path, 3)
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * share)])
    assert "is damaged or no checkpoint file" in refusal(path)


def test_file_of_something_else_is_refused(path):
    path.parent.mkdir()
    path.write_bytes(b"no database " * 1000)
    assert "is damaged or no checkpoint file" in refusal(path)
    path.unlink()
    with contextlib.closing(sqlite3.connect(path)) as db, db:
        db.execute("CREATE TABLE other (x)")
    assert "is damaged or no checkpoint file" in refusal(path)


@pytest.mark.parametrize("small", [0, checkpoints._SMALL])
def test_any_flipped_byte_is_noticed_or_harmless(path, monkeypatch, small):
    make_run(path, 2)
    monkeypatch.setattr(checkpoints, "_SMALL", small)
    data = path.read_bytes()
    outcomes = collections.Counter()
    for position in np.random.default_rng(0).choice(len(data), 60, replace=False):
        damaged = bytearray(data)
        damaged[position] ^= 0xFF
        path.write_bytes(damaged)
        try:
            with opened(path) as saved:
                state = saved.server_state(like=state_of(0))
                clients = [checkpoints.decode(saved.client_state(c), 0) for c in (0, 1)]
        except CheckpointError:
            outcomes["noticed"] += 1
        else:  # Free space.
            np.testing.assert_array_equal(state["weights"], state_of(2)["weights"])
            assert clients == [2, 1]
            outcomes["harmless"] += 1
    assert outcomes["noticed"] > 5, outcomes


def test_damaged_state_names_the_file(path):
    make_run(path, 1)
    data = path.read_bytes()
    where = data.index(np.full(50, 1, np.float32).tobytes())
    path.write_bytes(data[: where + 80] + b"\x11" + data[where + 81 :])
    with pytest.raises(CheckpointError, match="is damaged") as error, opened(path):
        pass
    assert str(path) in str(error.value)


@pytest.fixture(scope="module")
def saving() -> Iterator[subprocess.Popen]:
    """A program of its own, which forks: this one's threads may hold any lock."""
    script = pathlib.Path(__file__).with_name("saving_program.py")
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, str(script)], text=True, **pipes) as process:
        yield process
        process.kill()


def saved_by_another(saving, path, then: str) -> int:
    """Opens the file in another process, which saves a round, and does something more."""
    saving.stdin.write(json.dumps([str(path), CONFIG, then]) + "\n")
    saving.stdin.flush()
    said, pid = saving.stdout.readline().split()
    assert said == "saved"
    return int(pid)


def test_file_in_use_by_another_process_is_refused(saving, path):
    pid = saved_by_another(saving, path, "wait")
    try:
        assert "is in use by another process" in refusal(path)
    finally:
        os.kill(pid, signal.SIGKILL)
        assert saving.stdout.readline() == "ended\n"
    with opened(path) as saved:
        assert saved.latest_round() == 1


def test_interrupted_save_is_ignored_and_reported(saving, path, caplog):
    saved_by_another(saving, path, "be killed during a save")
    assert saving.stdout.readline() == "ended\n"
    assert path.stat().st_size > 5_000_000
    with caplog.at_level(logging.WARNING):
        assert checkpoints.rounds_done(path.parents[1], CONFIG) == 1
    assert "was interrupted; it is ignored, and the run goes on from round 1" in caplog.text
    caplog.clear()
    with opened(path) as saved:
        assert saved.latest_round() == 1 and saved.client_state(0) is None
    assert caplog.text == ""


@pytest.mark.parametrize("becomes", ["removed", "replaced"])
def test_a_file_that_is_taken_away_meanwhile_is_an_error(path, becomes):
    with opened(path) as saved:
        saved.save(1, state_of(1))
        path.rename(path.with_name("elsewhere"))
        if becomes == "replaced":
            path.write_bytes(b"")
        with pytest.raises(CheckpointError, match="was removed or replaced while the run goes on"):
            saved.save(2, state_of(2))


def test_kill_between_saves_is_no_interrupted_save(saving, path, caplog):
    saved_by_another(saving, path, "be killed")
    assert saving.stdout.readline() == "ended\n"
    assert [p.name for p in path.parent.iterdir() if p != path] == ["run.sqlite-journal"]
    with caplog.at_level(logging.WARNING), opened(path) as saved:
        assert saved.latest_round() == 1
    assert caplog.text == "" and list(path.parent.iterdir()) == [path]
