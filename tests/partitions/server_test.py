"""What the server keeps belongs to no client, whatever the partition."""

import numpy as np
import pytest

from tff_het import partitions
from tff_het.datasets import Dataset

NUM = 503


def examples(n: int, seed: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    return {
        "x": rng.normal(size=(n, 3)).astype(np.float32),
        "y": rng.permutation(np.arange(n) % 6).astype(np.int32),
        "writer": rng.permutation(np.arange(n) % 8).astype(np.int32),
    }


TRAIN, TEST = examples(NUM, 0), examples(200, 1)
CASES = {
    "clusters": {"num_clients": 3},
    "dirichlet": {"num_clients": 3, "alpha": 5.0},
    "disjoint_classes": {"num_clients": 3},
    "groups": {"num_clients": 4},
    "iid": {"num_clients": 4},
    "multimodal": {"num_clients": 5, "minority_clients": 2, "minority_classes": [0, 3]},
    "niid_bench_classes": {"num_clients": 6},
    "p_fed_me_classes": {"num_clients": 2},
    "pfllib_classes": {"num_clients": 6},
    "shards": {"num_clients": 4, "shards_per_client": 2},
}


def test_nothing_twice_and_nothing_lost():
    found = partitions.set_apart(NUM, initial=40, selection=100, seed=3)
    assert [len(part) for part in found] == [40, 100, NUM - 140]
    np.testing.assert_array_equal(np.sort(np.concatenate(found)), np.arange(NUM))
    assert all(np.all(np.diff(part) > 0) for part in found)
    # At random: neither the first ones nor those of another seed.
    assert not np.array_equal(found.initial, np.arange(40))
    other = partitions.set_apart(NUM, initial=40, selection=100, seed=4)
    assert not np.array_equal(found.initial, other.initial)
    again = partitions.set_apart(NUM, initial=40, selection=100, seed=3)
    for one, two in zip(found, again, strict=True):
        np.testing.assert_array_equal(one, two)


def test_the_initial_ones_do_not_depend_on_the_others():
    found = partitions.set_apart(NUM, initial=40, selection=0, seed=3)
    np.testing.assert_array_equal(
        found.initial, partitions.set_apart(NUM, initial=40, selection=300, seed=3).initial
    )
    everything = partitions.set_apart(NUM, initial=0, selection=0, seed=3)
    np.testing.assert_array_equal(everything.clients, np.arange(NUM))


@pytest.mark.parametrize(("initial", "selection"), [(-1, 0), (0, -2), (500, 3), (NUM, 0)])
def test_sizes_that_are_refused(initial, selection):
    with pytest.raises(ValueError, match=rf"{initial} for initial .* {selection} for .*of {NUM}"):
        partitions.set_apart(NUM, initial=initial, selection=selection, seed=0)


def test_all_partitions_have_a_case():
    assert set(CASES) | {"file"} == set(partitions.names())


@pytest.mark.parametrize("name", CASES)
def test_clients_share_what_is_left_as_if_there_were_nothing_else(name):
    """Dealing some of the examples is dealing a data set of these alone."""
    left = partitions.set_apart(NUM, initial=40, selection=100, seed=3).clients
    made = partitions.make(name, TRAIN, TEST, seed=1, among=left, **CASES[name])
    alone = {key: column[left] for key, column in TRAIN.items()}
    wanted = partitions.make(name, alone, TEST, seed=1, **CASES[name])
    assert (made.num_train, wanted.num_train) == (NUM, len(left))
    for own, own_alone in zip(made.train, wanted.train, strict=True):
        np.testing.assert_array_equal(TRAIN["x"][own], alone["x"][own_alone])
    for own, own_alone in zip(made.test, wanted.test, strict=True):
        np.testing.assert_array_equal(own, own_alone)
    assert not set(np.concatenate(made.train)) - set(left)


def test_with_test_examples_cut_from_the_clients_own():
    dataset = Dataset("small", TRAIN, TEST, tuple("abcdef"), "made up")
    left = partitions.set_apart(NUM, initial=40, selection=100, seed=3).clients
    divided, made = partitions.make_with_local_test(
        "iid", dataset, fraction=0.25, num_clients=4, seed=1, among=left
    )
    theirs = {tuple(row) for row in TRAIN["x"][left]}
    for split, parts in (("train", made.train), ("test", made.test)):
        held = getattr(divided, split)["x"][np.concatenate(parts)]
        assert {tuple(row) for row in held} <= theirs
    assert sum(map(len, (*made.train, *made.test))) == len(left)
