"""Splitters of other suites: what each client has, by the rules that they publish."""

import numpy as np
import pytest

from tff_het import partitions

LABELS = np.random.default_rng(0).permutation(np.repeat(np.arange(10), 7000)).astype(np.int32)
TRAIN, NO_TEST = {"y": LABELS}, {"y": LABELS[:0]}


def counts(name, num_clients, seed=0, **options):
    """Of each class, how many examples each client has: [classes, clients]."""
    made = partitions.make(
        name, TRAIN, NO_TEST, num_clients=num_clients, seed=seed, allow_empty_test=True, **options
    )
    held = [np.bincount(LABELS[own], minlength=10) for own in made.train]
    together = np.concatenate(made.train)
    assert len(np.unique(together)) == len(together)
    return np.stack(held, axis=1)


@pytest.mark.parametrize("seed", range(5))
def test_pfllib_classes(seed):
    """Clients 4k to 4k + 3 share classes 2k and 2k + 1; three sizes are drawn, the last is left."""
    found = counts("pfllib_classes", 20, seed)
    expected = np.kron(np.eye(5), np.ones((2, 4)))
    np.testing.assert_array_equal(found > 0, expected)
    np.testing.assert_array_equal(found.sum(axis=1), 7000)
    sizes = found[found > 0].reshape(10, 4)
    assert sizes[:, :3].min() >= 175 and sizes[:, :3].max() < 1750 <= sizes[:, 3].min()
    # Uniform: the mean of 30 lies within four standard errors.
    assert abs(sizes[:, :3].mean() - 962) < 4 * 455 / np.sqrt(30)


@pytest.mark.parametrize("seed", range(5))
def test_niid_bench_classes(seed):
    """Client i has class i and one more, and holders have equal parts."""
    found = counts("niid_bench_classes", 10, seed)
    assert (np.diag(found) > 0).all() and ((found > 0).sum(axis=0) == 2).all()
    for row in found:
        own = row[row > 0]
        assert own.sum() == 7000 and np.ptp(own) <= 1
    assert (found != counts("niid_bench_classes", 10, seed + 1)).any()


@pytest.mark.parametrize("seed", range(5))
def test_p_fed_me_classes(seed):
    """Client i has classes i and i + 1, 10 of each and 300 or more of most."""
    found = counts("p_fed_me_classes", 40, seed)
    for client, column in enumerate(found.T):
        assert {*np.flatnonzero(column)} == {client % 10, (client + 1) % 10}
        assert all(size == 10 or size >= 310 for size in column[column > 0])
    # pFedMe's own script leaves 0.4 of 80 parts at 10, and uses 43,300 examples, on average.
    assert (found == 10).sum() <= 8 and 38_000 < found.sum() < 50_000


def test_p_fed_me_classes_follow_a_power_law():
    """Somebody has far more than the uniform part, in nine of ten draws of pFedMe's own script."""
    assert max(counts("p_fed_me_classes", 40, seed).max() for seed in range(5)) > 1080


def test_p_fed_me_classes_of_few_clients_are_doubled():
    assert counts("p_fed_me_classes", 10)[0, 0] >= 10 + 2 * 300


@pytest.mark.parametrize("seed", range(5))
def test_dirichlet_capped(seed):
    """In the order of the classes, a client with the average number gets nothing more."""
    found = counts("dirichlet", 20, seed, alpha=0.1, min_examples=40, capped=True)
    before = np.cumsum(found, axis=0) - found
    assert (found[before >= 70_000 / 20 + 1] == 0).all()
    assert found.sum() == 70_000 and found.sum(axis=0).min() >= 40
    free = counts("dirichlet", 20, seed, alpha=0.1, min_examples=1)
    before = np.cumsum(free, axis=0) - free
    assert (free[before >= 70_000 / 20 + 1] > 0).any()


@pytest.mark.parametrize("name", ["pfllib_classes", "niid_bench_classes", "p_fed_me_classes"])
def test_refuses(name):
    with pytest.raises(ValueError, match="classes_per_client must be from 1 to 10"):
        counts(name, 20, classes_per_client=11)


def test_p_fed_me_needs_ten_of_each():
    with pytest.raises(ValueError, match="need 10 examples of each"):
        counts("p_fed_me_classes", 4000)
