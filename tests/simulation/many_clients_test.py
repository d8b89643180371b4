"""What a round does does not grow with the population: counted, since times are never the same."""

import contextlib
import ctypes
import mmap
import sys
import threading
from collections.abc import Iterator

import numpy as np
import pytest

from tff_het.clients import Client, Population
from tff_het.simulation import checkpoints, cohorts, loop, runtime

FEW, MANY, COHORT, ROUNDS = 40, 4000, 4, 6


class Watched(Population):
    """Notes which clients are asked for."""

    asked: set[int]

    def __getitem__(self, index):
        if isinstance(index, int):
            self.asked.add(index)
        return super().__getitem__(index)


def watched(x: np.ndarray) -> Watched:
    """Clients with these columns, [clients, examples, 4]."""
    y = np.arange(x.shape[1], dtype=np.int32) % 3
    nothing = {"x": np.zeros((0, 4), np.float32), "y": y[:0]}
    test = {"x": np.zeros((1, 4), np.float32), "y": y[:1]}
    population = Watched(Client(str(k), {"x": x[k], "y": y}, nothing, test) for k in range(len(x)))
    population.asked = set()
    return population


def train(process, population: Population, folder, *, rounds: int, on_round=None) -> None:
    """Evaluates one client alone, at the end: an evaluation of all does grow with them."""
    result = loop.train(
        process,
        population,
        cohorts.uniform(len(population), COHORT, seed=0),
        loop.Settings(rounds=rounds, seed=0, eval_every=10**9, states_in_memory=False),
        evaluated=population[:1],
        folder=folder,
        on_round=on_round,
    )
    result.client_states.close()


class Steps:
    """Counts the instructions of Python and of SQLite."""

    def __init__(self) -> None:
        self.python = self.sqlite = 0

    @contextlib.contextmanager
    def counting_python(self) -> Iterator[None]:
        """While the block is open, in this thread and in those that begin in it."""
        before = sys.gettrace()
        threading.settrace(self._enter)
        sys.settrace(self._enter)
        try:
            yield
        finally:
            sys.settrace(before)
            threading.settrace(before)

    def _enter(self, frame, event, argument):
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        return self._step

    def _step(self, frame, event, argument):
        self.python += 1
        return self._step

    def step_of_sqlite(self) -> int:
        self.sqlite += 1
        return 0  # Anything else would end the statement.


@pytest.fixture
def steps(monkeypatch) -> Steps:
    counted = Steps()

    class Counted(checkpoints.Checkpoints):
        def __init__(self, *args, **options):
            super().__init__(*args, **options)
            self._db.set_progress_handler(counted.step_of_sqlite, 1)

    monkeypatch.setattr(loop, "Checkpoints", Counted)
    # As many blocks are written for a cohort of few clients as for one of many.
    monkeypatch.setattr(checkpoints, "_BLOCK", 1)
    return counted


def steps_of_rounds(steps: Steps, process, num_clients: int, folder) -> list[list[int]]:
    """[Python's, SQLite's] for each round, every client having a state on disk."""
    population = watched(np.zeros((num_clients, 8, 4), np.float32))
    train(process, population, folder, rounds=1)
    with contextlib.closing(checkpoints.Checkpoints(checkpoints.path_in(folder), {})) as saved:
        server = saved.server_state(like=process.initialize())
        state = checkpoints.encode(process.init_state(0, 0, server)._replace(rounds=np.int32(1)))
        saved.put_clients(1, ((client, state) for client in range(num_clients)))
        saved.save(1, server)

    counted, asked = [], []

    def on_round(row, seconds: float) -> None:
        counted.append((steps.python, steps.sqlite))
        asked.append(population.asked)
        population.asked = set()

    with steps.counting_python():
        train(process, population, folder, rounds=2 + ROUNDS, on_round=on_round)
    assert all(len(clients) == COHORT for clients in asked[1:])
    # From the third round on, as many checkpoints are there as are kept; the last one is evaluated.
    return np.diff(counted, axis=0)[1:-1].tolist()


def test_steps_of_a_round_do_not_depend_on_how_many_clients_there_are(
    make_process, steps, tmp_path
):
    process = make_process("hdafl")
    with runtime.use("in_process", clients_in_parallel=1):
        few = steps_of_rounds(steps, process, FEW, tmp_path / "few")
        many = steps_of_rounds(steps, process, MANY, tmp_path / "many")
    print("steps of Python's, of SQLite's:", few, many)
    assert np.min(few) > 20 * COHORT
    # The median, since Python's garbage collection runs in some rounds.
    more = np.median(many, axis=0) - np.median(few, axis=0)
    assert max(more) < (MANY - FEW) / 10  # Far less than one step for each further client.


def pages_in_memory(x: np.memmap) -> int:
    """How many pages of a mapped file the system has read, for whoever wants them."""
    is_there = (ctypes.c_ubyte * (-(-x.nbytes // mmap.PAGESIZE) + 1))()
    begin = x.ctypes.data - x.ctypes.data % mmap.PAGESIZE
    length = x.ctypes.data + x.nbytes - begin
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mincore(ctypes.c_void_p(begin), ctypes.c_size_t(length), is_there):
        raise OSError(ctypes.get_errno(), "mincore")
    return sum(one & 1 for one in is_there)


@pytest.mark.usefixtures("each_runtime")
def test_of_a_mapped_file_rounds_read_their_clients_examples(make_process, tmp_path):
    shape = (MANY, 512, 4)  # 8 KB each, with holes: nothing on disk.
    x = np.lib.format.open_memmap(tmp_path / "x.npy", "w+", dtype=np.float32, shape=shape)
    if pages_in_memory(x) > 2:
        pytest.skip("this system does not say what is in memory of a file")
    population = watched(x)
    train(make_process("hdafl"), population, tmp_path / "run", rounds=ROUNDS)
    assert len(population.asked) > 4 * COHORT
    # Each client stands on three pages; the system would read 32 and more around the first of them.
    assert pages_in_memory(x) <= 3 * len(population.asked) + 2
