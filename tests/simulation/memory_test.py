"""Many clients with large states: what is resident does not grow with the rounds."""

import collections
import contextlib
import ctypes
import gc
import pathlib

import numpy as np
import pytest

from tff_het import seeding
from tff_het.learning.client_work import ClientState
from tff_het.learning.process import ServerState
from tff_het.models.model import Weights
from tff_het.simulation.checkpoints import Checkpoints
from tff_het.simulation.client_states import ClientStates

CLIENTS, COHORT, FLOATS = 1000, 20, 25_000  # 100 KB each, 100 MB together.


class Process:
    """The one thing of a process that the store uses."""

    def init_state(self, client: int, seed: int, server_state: ServerState) -> ClientState:
        return ClientState(Weights([np.zeros(FLOATS, np.float32)], []), (), np.int32(0))


def resident_bytes() -> int:
    gc.collect()
    # What others have freed in this process goes back to the system: else it would be used again,
    # and what is allocated here would not be seen.
    ctypes.CDLL(None).malloc_trim(0)
    status = pathlib.Path("/proc/self/status").read_text(encoding="utf-8")
    (line,) = [line for line in status.splitlines() if line.startswith("VmRSS")]
    return int(line.split()[1]) * 1024


def run(path: pathlib.Path, rounds: int, *, in_memory: bool) -> tuple[list[int], list[int]]:
    """Bytes resident, and in the file, after each tenth of the rounds."""
    resident, size = [], []
    expected: dict[int, float] = collections.defaultdict(float)
    with contextlib.closing(Checkpoints(path, {})) as saved:
        states = ClientStates(Process(), 0, saved, in_memory=in_memory)
        for round_num in range(1, rounds + 1):
            rng = seeding.generator(0, seeding.COHORT, round_num)
            cohort = [int(c) for c in rng.choice(CLIENTS, COHORT, replace=False)]
            before = {client: states.get(client, None) for client in cohort}
            after = {
                client: state._replace(model=Weights([state.model.trainable[0] + 1], []))
                for client, state in before.items()
            }
            states.put(round_num, after.items())
            for client in cohort:
                expected[client] += 1
            states.write(round_num, states.take_changed())
            saved.save(round_num, ())
            del before, after
            if round_num % (rounds // 10) == 0:
                resident.append(resident_bytes())
                size.append(path.stat().st_size)
        for client in range(0, CLIENTS, 37):
            np.testing.assert_array_equal(
                states.get(client, None).model.trainable[0], expected[client]
            )
    return resident, size


@pytest.mark.slow
def test_states_on_disk_are_not_in_memory(tmp_path):
    start = resident_bytes()
    resident, size = run(tmp_path / "disk.sqlite", 300, in_memory=False)
    print("disk: MB", [(b - start) // 2**20 for b in resident], "file", [b // 2**20 for b in size])
    # From the first tenth on, when a cohort has been held once.
    assert max(resident) - resident[0] < 10e6
    # All clients, and the states of the last two checkpoints.
    assert size[-1] < 1.2 * CLIENTS * FLOATS * 4
    # The measurement sees states where they are kept.
    start = resident_bytes()
    resident, _ = run(tmp_path / "memory.sqlite", 100, in_memory=True)
    print("memory: MB", [(b - start) // 2**20 for b in resident])
    assert resident[-1] - start > 60e6
