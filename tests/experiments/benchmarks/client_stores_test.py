"""The benchmark of client stores: every client has values of its own, and those drawn change."""

import contextlib

import numpy as np

from experiments.benchmarks import client_stores
from tff_het.simulation import checkpoints, cohorts


def test_states_are_the_clients_own_and_those_drawn_change(tmp_path):
    number, rounds = 150, 3
    client_stores.fill(number, tmp_path)
    found = client_stores.train(number, tmp_path, rounds)
    assert all(found[key] > 0 for key in ("seconds", "mb_moved", "mb_peak", "gb_stored"))
    schedule = cohorts.uniform(number, client_stores.COHORT, seed=0)
    drawn = [client for round_num in range(1, rounds) for client in schedule(round_num)]
    saved = checkpoints.Checkpoints(checkpoints.path_in(tmp_path), {})
    with contextlib.closing(saved):
        process = client_stores.make_process()
        like = process.init_state(0, 0, saved.server_state(like=process.initialize()))
        first_values = set()
        for client in range(number):
            state = checkpoints.decode(saved.client_state(client), like)
            began = client_stores.state_of(like, client)
            first_values.add(began.model.trainable[0].tobytes())
            assert state.rounds == 1 + drawn.count(client)
            same = [*map(np.array_equal, state.model.trainable, began.model.trainable)]
            assert all(same) if client not in drawn else not all(same)
    assert len(first_values) == number
