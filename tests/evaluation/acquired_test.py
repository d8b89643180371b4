"""What clients have acquired, against what they were given to train on."""

import numpy as np
import pytest
import tensorflow as tf

from tff_het.evaluation import acquired
from tff_het.learning import acquisition as acquiring
from tff_het.learning.acquisition import Acquisition, Pool
from tff_het.learning.client_work import ClientState
from tff_het.learning.works import Personal
from tff_het.models.model import ClientContext, Variables, Weights

LABELS = np.arange(20, dtype=np.int32) % 4
NOTHING = Weights([], [])


def state_of(work) -> ClientState:
    return ClientState(NOTHING, work, np.int32(1))


def test_examples_are_those_trained_on():
    """Two rounds of two acquisitions, of a pool of 7: the last finds it exhausted."""
    settings = Acquisition("random", 3, 2, pool_size=7, kept_per_class=2)
    pool, given = acquiring.initial(settings, 3), []

    def train_on(variables, batch, client, seed):
        given.append(batch["x"].numpy())
        return variables, tf.zeros([])

    for round_num in range(2):
        _, _, pool = acquiring.train_on_acquired(
            None,
            settings,
            train_on,
            Variables(NOTHING, NOTHING),
            {"x": tf.range(20), "y": tf.constant(LABELS)},
            ClientContext(tf.constant(0), tf.constant(20), tf.constant(0)),
            tf.constant([1, round_num]),
            pool,
            tf.zeros([]),
        )
    found = acquired.examples(settings, state_of(pool), LABELS)
    assert [len(places) for places in found] == [3, 3, 1]
    assert [len(places) for places in given] == [3 + 8, 3 + 8, 1 + 8, 8]
    for places, rows in zip([*found, []], given, strict=True):
        assert set(rows[: len(places)]) == set(places)
        np.testing.assert_array_equal(rows[len(places) :], given[-1])
    counts = acquired.class_counts(settings, state_of(pool), LABELS, 5)
    wanted = [[sum(LABELS[p] == c for p in places) for c in range(5)] for places in found]
    np.testing.assert_array_equal(counts, wanted)


@pytest.mark.parametrize("wrapped", [False, True])
def test_read_off_the_state(wrapped):
    settings = Acquisition("random", 2, pool_size=30)
    taken = np.zeros(30, np.int32)
    taken[[4, 9]], taken[[0, 19]] = 1, 2
    pool = Pool(taken, np.array([7, 8], np.int32))
    state = state_of(Personal(NOTHING, pool) if wrapped else pool)
    places = acquiring.draw(settings, LABELS, pool.seed).pool.numpy()
    first, second = acquired.examples(settings, state, LABELS)
    np.testing.assert_array_equal(first, places[[4, 9]])
    np.testing.assert_array_equal(second, places[[0, 19]])


def test_nothing_yet():
    settings = Acquisition("random", 2, pool_size=30)
    state = state_of(acquiring.initial(settings, 0))
    assert acquired.examples(settings, state, LABELS) == []
    assert acquired.class_counts(settings, state, LABELS, 4).shape == (0, 4)
