"""Long programs do not grow."""

import collections
import gc
import os

import numpy as np
import pytest

from tff_het import methods, seeding
from tff_het.backend import internals
from tff_het.backend.names import tff
from tff_het.learning.local_training import LocalTraining
from tff_het.learning.process import FederatedProcess
from tff_het.models import architectures, networks

FEATURES, CLASSES, CLIENTS, ROUNDS, WARM_UP = 64, 3, 4, 300, 20


def resident() -> float:
    """Returns this process's memory in MB."""
    gc.collect()
    with open("/proc/self/statm", encoding="utf-8") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE") / 1e6


def build(method: str, seed: int) -> FederatedProcess:
    element = {"x": (np.dtype(np.float32), (FEATURES,)), "y": (np.dtype(np.int32), ())}
    architecture = architectures.make("small", element, CLASSES, networks.mlp([64]))
    training = LocalTraining(tff.learning.optimizers.build_sgdm(0.1), batch_size=8, epochs=1)
    return methods.build(method, architecture, training, seed=seed)


def clients_of(round_num: int, states) -> list[collections.OrderedDict]:
    rng = np.random.default_rng(round_num)
    return [
        collections.OrderedDict(
            client=np.int32(client),
            seed=seeding.stateless_seed(1, seeding.CLIENT_WORK, round_num, client),
            examples=collections.OrderedDict(
                x=rng.normal(size=(32, FEATURES)).astype(np.float32),
                y=rng.integers(0, CLASSES, 32).astype(np.int32),
            ),
            state=state,
        )
        for client, state in states.items()
    ]


def first_states(process, state):
    return {client: process.init_state(client, 1, state) for client in range(CLIENTS)}


@pytest.mark.slow
@pytest.mark.parametrize("method", ["fed_avg", "hdafl"])
def test_memory_is_flat(in_process, method):
    process = build(method, seed=1)
    state = process.initialize()
    kept = first_states(process, state)
    memory = []
    for round_num in range(ROUNDS):
        state, _, client_states = process.next(state, clients_of(round_num, kept))
        kept = {int(one["client"]): one["state"] for one in client_states}
        if round_num in (WARM_UP, ROUNDS - 1):
            memory.append(resident())
    assert memory[1] < 1.03 * memory[0], memory


@pytest.mark.slow
def test_another_seed_leaves_nothing_in_tensorflow(in_process):
    """A second run of a kind adds no function to the table, which has one for the process."""

    def train(seed: int) -> set[str]:
        process = build("hdafl", seed)
        state = process.initialize()
        clients = clients_of(0, first_states(process, state))
        process.next(state, clients)
        process.predict(state.weights, clients[0]["state"], clients[0]["examples"])
        del process
        gc.collect()
        return set(internals.context.context().list_function_names())

    train(0)
    after_two = train(1)
    assert [train(seed) - after_two for seed in range(2, 5)] == [set()] * 3
