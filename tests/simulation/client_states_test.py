"""The store of client states: memory and disk give the same, and new clients start right."""

import contextlib
import pathlib

import numpy as np
import pytest
import tensorflow as tf

from tff_het.learning.client_work import ClientState
from tff_het.learning.process import ServerState
from tff_het.models.model import Weights
from tff_het.simulation.checkpoints import Checkpoints, encode
from tff_het.simulation.client_states import ClientStates


class Process:
    """The one thing of a process that the store uses."""

    def init_state(self, client: int, seed: int, server_state: ServerState) -> ClientState:
        start = np.array([client, seed, server_state.round], np.float32)
        return ClientState(Weights([start], []), (), np.int32(0))


SERVER = ServerState(np.int32(9), Weights([], []), Weights([], []), (), ())


def trained(value: float, rounds: int) -> ClientState:
    return ClientState(Weights([np.full(3, value, np.float32)], []), (), np.int32(rounds))


def value_of(state: ClientState) -> tuple[float, ...]:
    return tuple(map(float, state.model.trainable[0]))


@pytest.fixture
def saved(tmp_path):
    with contextlib.closing(Checkpoints(tmp_path / "run.sqlite", {})) as checkpoints:
        yield checkpoints


@pytest.fixture(params=["nowhere", "memory", "disk"])
def states(request, saved):
    return ClientStates(
        Process(),
        seed=5,
        saved=None if request.param == "nowhere" else saved,
        in_memory=request.param != "disk",
    )


def test_client_that_never_trained_has_its_initial_state(states):
    assert value_of(states.get(3, SERVER)) == (3, 5, 9)
    # It is made anew for whoever asks: the server may have moved on meanwhile.
    assert value_of(states.get(3, SERVER._replace(round=np.int32(10)))) == (3, 5, 10)


def test_newest_state_is_given_back(states):
    states.put(1, [(0, trained(0.5, 1)), (2, trained(2.5, 1))])
    states.put(2, [(2, trained(-1, 2))])
    assert value_of(states.get(0, SERVER)) == (0.5, 0.5, 0.5)
    state = states.get(2, SERVER)
    assert value_of(state) == (-1, -1, -1) and state.rounds == 2
    assert isinstance(state, ClientState) and state.rounds.dtype == np.int32
    assert value_of(states.get(1, SERVER)) == (1, 5, 9)


@pytest.mark.parametrize("in_memory", [True, False])
@pytest.mark.parametrize("then_in_memory", [True, False])
def test_either_kind_goes_on_where_the_other_stopped(tmp_path, in_memory, then_in_memory):
    path = tmp_path / "run.sqlite"
    rng = np.random.default_rng(0)
    kept = {client: trained(rng.normal(), 1) for client in range(6)}
    with contextlib.closing(Checkpoints(path, {})) as saved:
        states = ClientStates(Process(), 5, saved, in_memory=in_memory)
        for round_num, clients in enumerate([(0, 1), (1, 2), (0, 5)], start=1):
            states.put(round_num, [(client, kept[client]) for client in clients])
            states.write(round_num, states.take_changed())
            saved.save(round_num, ())
        states.put(4, [(0, trained(99, 4))])  # Lost: its round was not saved.
        states.write(4, states.take_changed())
    states = ClientStates(Process(), 5, Checkpoints(path, {}), in_memory=then_in_memory)
    with contextlib.closing(states):
        for client in (0, 1, 2, 5):
            tf.nest.map_structure(
                np.testing.assert_array_equal, states.get(client, SERVER), kept[client]
            )
        assert value_of(states.get(3, SERVER)) == (3, 5, 9)


def test_memory_writes_at_flush_and_only_what_changed(saved):
    states = ClientStates(Process(), 5, saved)
    states.put(1, [(0, trained(1, 1)), (1, trained(1, 1))])
    assert saved.client_state(0) is None
    states.write(1, states.take_changed())
    first = saved.client_state(0)
    assert first is not None
    states.put(2, [(1, trained(2, 2))])
    states.write(2, states.take_changed())
    rows = saved._db.execute("SELECT owner, round FROM clients ORDER BY owner, round").fetchall()
    assert rows == [(0, 1), (1, 2)]


def test_disk_keeps_nothing_in_memory(saved):
    states = ClientStates(Process(), 5, saved, in_memory=False)
    states.put(1, [(0, trained(1, 1))])
    assert states.get(0, SERVER) is not states.get(0, SERVER)
    assert not states._states


def test_states_have_to_be_kept_somewhere():
    with pytest.raises(ValueError, match="kept in memory"):
        ClientStates(Process(), 5, None, in_memory=False)


def bytes_moved_by_rounds(path, num_clients: int) -> int:
    """What ten clients' rounds read and write, every client having a state of 20 KB on disk."""

    def moved() -> int:
        lines = (
            line.split()
            for line in pathlib.Path("/proc/self/io").read_text(encoding="utf-8").splitlines()
        )
        found = {name: int(number) for name, number in lines}
        return found["rchar:"] + found["wchar:"]

    blob = encode(ClientState(Weights([np.zeros(5000, np.float32)], []), (), np.int32(1)))
    with contextlib.closing(Checkpoints(path, {})) as saved:
        saved.put_clients(1, ((client, blob) for client in range(num_clients)))
        saved.save(1, ())
    # Opened again, since SQLite would still have much of the file in memory.
    with contextlib.closing(Checkpoints(path, {})) as saved:
        states = ClientStates(Process(), 5, saved, in_memory=False)
        rng = np.random.default_rng(0)
        before = moved()
        for round_num in range(2, 8):
            cohort = [int(client) for client in rng.choice(num_clients, 10, replace=False)]
            states.put(round_num, [(client, states.get(client, SERVER)) for client in cohort])
            saved.save(round_num, ())
        return moved() - before


def test_what_a_round_moves_does_not_depend_on_how_many_clients_there_are(tmp_path):
    few, many = (bytes_moved_by_rounds(tmp_path / f"{n}.sqlite", n) for n in (1000, 10_000))
    assert few > 6 * 10 * 2 * 20_000  # Each state once in and once out.
    assert many < 1.3 * few
