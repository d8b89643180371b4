"""Cohorts: drawn fairly, without replacement, and the same for everybody with one seed."""

import numpy as np
import pytest

from tff_het.simulation import cohorts


@pytest.mark.parametrize(("num_clients", "size"), [(1, 1), (7, 7), (10, 3), (500, 20)])
def test_cohorts_are_distinct_clients_of_the_right_number(num_clients, size):
    schedule = cohorts.uniform(num_clients, size, seed=3)
    for round_num in range(50):
        cohort = schedule(round_num)
        assert len(set(cohort)) == len(cohort) == size
        assert cohort == sorted(cohort)
        assert all(type(client) is int and 0 <= client < num_clients for client in cohort)


def test_draw_depends_on_seed_and_round_alone():
    one, same, other = (cohorts.uniform(50, 5, seed) for seed in (0, 0, 1))
    np.random.seed(1)
    rounds = [one(r) for r in range(20)]
    np.random.seed(2)
    assert [same(r) for r in reversed(range(20))] == rounds[::-1]  # In any order: a resume.
    assert [other(r) for r in range(20)] != rounds
    assert len({tuple(cohort) for cohort in rounds}) == 20


def test_all_clients_are_equally_likely():
    schedule = cohorts.uniform(10, 3, seed=0)
    rounds = 2000
    counts = np.bincount([client for r in range(rounds) for client in schedule(r)], minlength=10)
    deviation = (counts - 0.3 * rounds) / np.sqrt(rounds * 0.3 * 0.7)
    assert np.abs(deviation).max() < 4


@pytest.mark.parametrize("size", [0, -1, 6])
def test_impossible_sizes_are_refused(size):
    with pytest.raises(ValueError, match=f"between 1 and the number of clients, 5; found {size}"):
        cohorts.uniform(5, size, seed=0)
    with pytest.raises(ValueError, match=f"between 1 and the number of clients, 5; found {size}"):
        cohorts.in_turn(5, size)


def test_one_client_after_another():
    schedule = cohorts.in_turn(4, 1)
    assert [schedule(round_num) for round_num in range(6)] == [[0], [1], [2], [3], [0], [1]]
    after = cohorts.in_turn(4, 1, first_round=7)
    assert [after(7 + round_num) for round_num in range(6)] == [[0], [1], [2], [3], [0], [1]]
    # Cohorts that do not divide the population: everybody as often as anybody.
    rounds = [cohorts.in_turn(5, 3)(round_num) for round_num in range(5)]
    assert rounds[:2] == [[0, 1, 2], [0, 3, 4]]
    assert np.bincount(np.concatenate(rounds)).tolist() == [3] * 5


def test_always_the_same_clients():
    schedule = cohorts.always(4, 2)
    assert [schedule(round_num) for round_num in (0, 1, 7)] == [[2, 4]] * 3
    for clients in ((), (1, 1)):
        with pytest.raises(ValueError, match="different clients are needed"):
            cohorts.always(*clients)


def test_a_draw_beside_a_client_that_is_always_there():
    drawn = cohorts.uniform(10, 3, seed=0)
    schedule = cohorts.together(cohorts.always(10, 4), drawn)
    cohorts_of = [schedule(round_num) for round_num in range(30)]
    assert cohorts_of == [sorted({4, 10, *drawn(round_num)}) for round_num in range(30)]
    assert {len(cohort) for cohort in cohorts_of} == {4, 5}  # Client 4 is drawn at times.
    with pytest.raises(ValueError, match="At least one schedule"):
        cohorts.together()
