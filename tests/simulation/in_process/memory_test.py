"""Long programs do not grow."""

import collections
import gc
import os

import numpy as np
import pytest
import tensorflow_federated as tff

from tff_het import methods, seeding
from tff_het.learning.client_work import LocalTraining
from tff_het.models import architectures

FEATURES, CLASSES, CLIENTS, ROUNDS, WARM_UP = 64, 3, 4, 300, 20


def resident() -> float:
    """Returns this process's memory in MB."""
    gc.collect()
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE") / 1e6


@pytest.mark.slow
@pytest.mark.parametrize("method", ["fed_avg", "hdafl"])
def test_memory_is_flat(in_process, method):
    element = {"x": (np.dtype(np.float32), (FEATURES,)), "y": (np.dtype(np.int32), ())}
    architecture = architectures.make("small", element, CLASSES, architectures.mlp([64]))
    training = LocalTraining(tff.learning.optimizers.build_sgdm(0.1), batch_size=8, epochs=1)
    process = methods.build(method, architecture, training, seed=1)
    state = process.initialize()
    kept = {client: process.init_state(client, 1, state) for client in range(CLIENTS)}
    memory = []
    for round_num in range(ROUNDS):
        rng = np.random.default_rng(round_num)
        clients = [
            collections.OrderedDict(
                client=np.int32(client),
                seed=seeding.stateless_seed(1, seeding.CLIENT_WORK, round_num, client),
                examples=collections.OrderedDict(
                    x=rng.normal(size=(32, FEATURES)).astype(np.float32),
                    y=rng.integers(0, CLASSES, 32).astype(np.int32),
                ),
                state=kept[client],
            )
            for client in range(CLIENTS)
        ]
        state, _, client_states = process.next(state, clients)
        kept = {int(one["client"]): one["state"] for one in client_states}
        if round_num in (WARM_UP, ROUNDS - 1):
            memory.append(resident())
    assert memory[1] < 1.03 * memory[0], memory
