"""Clients made of clusters of features."""

import numpy as np
import pytest

from tff_het import partitions

CLIENTS = 4
# Class -> the middles of its groups, far apart in the first two of five dimensions.
MIDDLES = {0: [(0, 0), (90, 0), (0, 90), (90, 90)], 1: [(40, 45), (140, 0), (40, -60), (-60, 30)]}


def split(rng, x, y, num_test):
    """Dtypes as a data set has them, in random order, cut in two."""
    order = rng.permutation(len(y))
    x, y = np.asarray(x, np.float32)[order], np.asarray(y, np.int32)[order]
    return {"x": x[num_test:], "y": y[num_test:]}, {"x": x[:num_test], "y": y[:num_test]}


def grouped(seed=0, per_group=30):
    """Well-separated groups; the third dimension says which one: [n, 5]."""
    rng = np.random.default_rng(seed)
    x, y = [], []
    for label, middles in MIDDLES.items():
        for number, middle in enumerate(middles):
            points = rng.normal(size=(per_group, 5))
            points[:, :2] += middle
            points[:, 2] = number / 1000
            x.append(points)
            y.append(np.full(per_group, label))
    return split(rng, np.concatenate(x), np.concatenate(y), num_test=60)


def overlapping(seed=0, n=1200, num_classes=3, num_test=400):
    """Classes without groups that lie on one another, so that every border matters."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 6)) * [4, 3, 2, 1, 1, 0.1]
    return split(rng, x, rng.integers(num_classes, size=n), num_test)


def make(train, test, seed=0, num_clients=CLIENTS, allow_empty_test=True, **options):
    return partitions.make(
        "clusters",
        train,
        test,
        num_clients=num_clients,
        seed=seed,
        allow_empty_test=allow_empty_test,
        **options,
    )


def owners(partition):
    """The client of each example: [train], [test]."""
    found = []
    for parts, size in (
        (partition.train, partition.num_train),
        (partition.test, partition.num_test),
    ):
        owner = np.full(size, -1)
        for client, own in enumerate(parts):
            owner[own] = client
        assert owner.min() >= 0
        found.append(owner)
    return found


def principal_components(train, test, number):
    """By a singular value decomposition of the training examples."""
    mean = train.mean(axis=0)
    _, _, directions = np.linalg.svd(train - mean, full_matrices=False)
    return (train - mean) @ directions[:number].T, (test - mean) @ directions[:number].T


def nearest(points, centres):
    return np.square(points[:, None] - centres).sum(axis=2).argmin(axis=1)


def class_centres(points, labels, owner, label):
    own = labels == label
    return np.stack([points[own & (owner == k)].mean(axis=0) for k in range(CLIENTS)])


@pytest.mark.parametrize("projection", ["pca", "none", "tsne"])
def test_each_client_holds_one_group_of_each_class(projection):
    train, test = grouped()
    pairings = set()
    for seed in range(3):
        partition = make(train, test, seed, projection=projection)
        in_train, in_test = owners(partition)
        groups, test_groups = (np.rint(part["x"][:, 2] * 1000) for part in (train, test))
        pairing = []
        for label in (0, 1):
            for group in range(CLIENTS):
                held = in_train[(train["y"] == label) & (groups == group)]
                held_test = in_test[(test["y"] == label) & (test_groups == group)]
                assert len(set(held)) == 1 and set(held_test) <= set(held)
                pairing.append(held[0])
            assert sorted(pairing[-CLIENTS:]) == list(range(CLIENTS))
        pairings.add(tuple(pairing))
        if projection == "tsne":
            break
    assert projection == "tsne" or len(pairings) > 1


@pytest.mark.parametrize(("projection", "components"), [("pca", 2), ("pca", 3), ("none", 6)])
def test_clusters_are_those_of_k_means_in_the_projection(projection, components):
    train, test = overlapping()
    options = {"projection": projection, "num_components": min(components, 3)}
    in_train, in_test = owners(make(train, test, **options))
    points, test_points = train["x"], test["x"]
    if projection == "pca":
        points, test_points = principal_components(points, test_points, components)
    # K-means has ended: the middle of a cluster's training examples is nearest to all of them.
    centres = [class_centres(points, train["y"], in_train, label) for label in range(3)]
    for at, labels, owner in ((points, train["y"], in_train), (test_points, test["y"], in_test)):
        for label in range(3):
            expected = nearest(at[labels == label], centres[label])
            assert np.mean(expected == owner[labels == label]) > 0.98

    # The same clusters, all of them offered to each example.
    by_all = owners(make(train, test, assignment="nearest", **options))
    for at, owner in zip((points, test_points), by_all, strict=True):
        assert np.mean(nearest(at, np.concatenate(centres)) % CLIENTS == owner) > 0.98
    assert np.mean(by_all[0] != in_train) > 0.2


def test_nearest_does_not_look_at_test_labels():
    train, test = overlapping()
    other = {**test, "y": (test["y"] + 1) % 3}
    by_all, by_all_other = (owners(make(train, t, assignment="nearest")) for t in (test, other))
    np.testing.assert_array_equal(by_all[1], by_all_other[1])
    assert (owners(make(train, test))[1] != owners(make(train, other))[1]).any()


def test_components_are_those_of_the_training_examples():
    train, test = overlapping()
    far = test["x"].copy()
    far[::2, 5] += 1e4
    before, after = owners(make(train, test)), owners(make(train, {**test, "x": far}))
    np.testing.assert_array_equal(before[0], after[0])
    assert (before[1] == after[1])[1::2].all()


def test_images_are_flattened():
    rng = np.random.default_rng(0)
    images = rng.integers(256, size=(300, 4, 4, 1), dtype=np.uint8)
    labels = rng.integers(2, size=300).astype(np.int32)
    train, test = {"x": images[:200], "y": labels[:200]}, {"x": images[200:], "y": labels[200:]}
    flat = [{**part, "x": part["x"].reshape(-1, 16).astype(np.float32)} for part in (train, test)]
    for projection in ("pca", "none"):
        one, other = (make(*p, projection=projection) for p in ((train, test), flat))
        for a, b in zip(owners(one), owners(other), strict=True):
            np.testing.assert_array_equal(a, b)


def test_a_seed_gives_the_same_clients_again():
    train, test = overlapping(n=150, num_test=50)
    for options in ({}, {"projection": "tsne"}, {"assignment": "nearest", "shuffle_fraction": 0.5}):
        one, two = (owners(make(train, test, 3, **options)) for _ in range(2))
        for a, b in zip(one, two, strict=True):
            np.testing.assert_array_equal(a, b)
    assert (owners(make(train, test, 4))[0] != owners(make(train, test, 3))[0]).any()


def test_a_class_with_fewer_examples_than_clients_is_spread_at_random():
    train, test = overlapping()
    rare = np.flatnonzero(train["y"] == 2)[: CLIENTS - 1]
    kept = np.union1d(np.flatnonzero(train["y"] != 2), rare)
    few = {key: column[kept] for key, column in train.items()}
    alike = {key: column.copy() for key, column in test.items()}
    alike["x"][test["y"] == 2] = few["x"][few["y"] == 2][0]  # No clusters could tell them apart.
    counts, rare_owners = np.zeros(CLIENTS), set()
    for seed in range(4):
        in_train, in_test = owners(make(few, alike, seed))
        counts += np.bincount(in_test[test["y"] == 2], minlength=CLIENTS)
        rare_owners.add(tuple(in_train[few["y"] == 2]))
    assert len(rare_owners) > 1
    assert counts.min() > 0.8 * counts.mean()

    # One more, and it has clusters.
    rare = np.flatnonzero(train["y"] == 2)[:CLIENTS]
    kept = np.union1d(np.flatnonzero(train["y"] != 2), rare)
    enough = {key: column[kept] for key, column in train.items()}
    in_train, in_test = owners(make(enough, alike))
    assert sorted(in_train[enough["y"] == 2]) == list(range(CLIENTS))
    assert len(set(in_test[test["y"] == 2])) == 1
    by_all = owners(make(enough, alike, assignment="nearest"))
    assert sorted(by_all[0][enough["y"] == 2]) == list(range(CLIENTS))

    # Where no test label is looked at, it goes with its neighbours: the clusters of the others.
    _, by_all = owners(make(few, alike, assignment="nearest"))
    assert len(set(by_all[test["y"] == 2])) == 1


@pytest.mark.parametrize("fraction", [0.0, 0.2, 0.6, 1.0])
@pytest.mark.parametrize("assignment", ["own_class", "nearest"])
def test_shuffling_moves_a_share_and_keeps_sizes(assignment, fraction):
    train, test = overlapping(n=6000, num_test=2000)
    options = {"assignment": assignment, "num_clients": CLIENTS}
    before, after = (
        np.concatenate(owners(make(train, test, shuffle_fraction=f, **options)))
        for f in (0.0, fraction)
    )
    sizes = np.bincount(before)
    np.testing.assert_array_equal(sizes, np.bincount(after))
    # Of those who are drawn, some draw their own client again.
    moved = fraction * (1 - np.square(sizes / len(before)).sum())
    for part in (slice(None, 4000), slice(4000, None)):  # Train and test alike.
        assert np.mean(before[part] != after[part]) == pytest.approx(moved, abs=0.03)


def test_complete_shuffling_leaves_nothing_of_the_clusters():
    train, test = overlapping(n=6000, num_test=2000)
    before, after = (
        np.concatenate(owners(make(train, test, shuffle_fraction=f))) for f in (0.0, 1.0)
    )
    shares = [np.bincount(after[before == k], minlength=CLIENTS) for k in range(CLIENTS)]
    shares = np.stack([own / own.sum() for own in shares])
    assert np.abs(shares - np.bincount(after) / 6000).max() < 0.05
