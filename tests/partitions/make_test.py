"""Each partition over many seeds, and what it refuses."""

import numpy as np
import pytest

from tff_het import partitions

SEEDS = range(8)


def examples(n, num_classes=10, num_writers=12, seed=0):
    """Labels and writers in random order; features, which clusters alone looks at, of no form."""
    rng = np.random.default_rng(seed)
    return {
        "x": np.random.default_rng((1, seed)).random((n, 1), np.float32),
        "y": rng.permutation(np.arange(n) % num_classes).astype(np.int32),
        "writer": rng.permutation(np.arange(n) % num_writers).astype(np.int32),
    }


TRAIN, TEST = examples(1003), examples(407, seed=1)

CASES = {
    "clusters": {"num_clients": 6, "num_components": 1, "shuffle_fraction": 0.3},
    "iid": {"num_clients": 7},
    "shards": {"num_clients": 10, "shards_per_client": 3},
    "disjoint_classes": {"num_clients": 4},
    "groups": {"num_clients": 5},
    "dirichlet": {"num_clients": 6, "alpha": 0.5},
    "multimodal": {"num_clients": 9, "minority_clients": 2, "minority_classes": [0, 3, 8]},
    "niid_bench_classes": {"num_clients": 10},
    "p_fed_me_classes": {"num_clients": 10},
    "pfllib_classes": {"num_clients": 20},
}


def make(name, seed=0, train=TRAIN, test=TEST, **options):
    return partitions.make(name, train, test, seed=seed, **{**CASES[name], **options})


def same(one, other):
    return len(one.train) == len(other.train) and all(
        np.array_equal(a, b)
        for split in ("train", "test")
        for a, b in zip(getattr(one, split), getattr(other, split), strict=True)
    )


def sizes(partition, split="train"):
    return [len(part) for part in getattr(partition, split)]


def test_all_partitions_have_a_case():
    assert set(CASES) | {"file"} == set(partitions.names())  # file_test.py has that.


@pytest.mark.parametrize("name", CASES)
def test_seed_decides_and_no_example_is_owned_twice(name):
    made = [make(name, seed) for seed in SEEDS]
    for seed, partition in zip(SEEDS, made, strict=True):
        assert same(partition, make(name, seed))
        assert len(partition.client_ids) == CASES[name]["num_clients"]
        for parts, size in ((partition.train, 1003), (partition.test, 407)):
            together = np.concatenate(parts)
            assert len(np.unique(together)) == len(together) <= size
            if name not in ("shards", "multimodal", "p_fed_me_classes"):
                assert len(together) == size
    assert not any(same(made[0], other) for other in made[1:])


@pytest.mark.parametrize("name", CASES)
def test_global_generator_is_neither_read_nor_moved(name):
    np.random.seed(1)
    before = np.random.get_state()[1].copy()
    one = make(name)
    np.testing.assert_array_equal(before, np.random.get_state()[1])
    np.random.seed(2)
    assert same(one, make(name))


@pytest.mark.parametrize("name", ["shards", "multimodal", "disjoint_classes", "dirichlet"])
def test_test_distribution_follows_that_of_train(name):
    # Ten of each class in test for each hundred in train, so that shards cut both alike.
    train, test = examples(3000), examples(600, seed=1)
    for seed in SEEDS:
        partition = make(name, seed, train, test)
        shares = [
            counts / counts.sum(axis=1, keepdims=True)
            for counts in (
                partition.class_counts(train["y"]),
                partition.class_counts(test["y"], "test"),
            )
        ]
        assert np.abs(shares[0] - shares[1]).max() < 0.05


def test_iid_sizes_differ_by_at_most_one():
    for seed in SEEDS:
        partition = make("iid", seed)
        assert set(sizes(partition)) == {143, 144} and set(sizes(partition, "test")) == {58, 59}
    assert sizes(make("iid", num_clients=1)) == [1003]


def test_shards_are_of_equal_size_and_few_classes():
    for seed in SEEDS:
        partition = make("shards", seed)
        assert set(sizes(partition)) == {3 * 33} and set(sizes(partition, "test")) == {3 * 13}
        # A shard of 33 lies in at most 2 classes of 100.
        assert (partition.class_counts(TRAIN["y"]) > 0).sum(axis=1).max() <= 6
    text = make("shards").describe(TRAIN["y"], TEST["y"])
    assert "990 of 1003" in text and "13 to nobody" in text


def test_shards_discard_the_remainder_evenly():
    lost = np.zeros(10)
    for seed in range(100):
        lost += np.bincount(TRAIN["y"]) - make("shards", seed).class_counts(TRAIN["y"]).sum(axis=0)
    assert lost.sum() == 1300 and lost.min() > 80


def test_shards_of_a_class_with_fewer_examples_than_shards_are_refused():
    train = {"x": np.zeros((303, 1)), "y": np.repeat(np.arange(4), [100, 100, 100, 3])}
    with pytest.raises(ValueError, match="Class 3 has 3 training examples, fewer than the 5"):
        make("shards", 0, train, num_clients=10, shards_per_client=2, single_class=True)


def test_options_may_be_texts():
    found = [make("shards", single_class=value).fingerprint() for value in (False, "false", "true")]
    assert found[0] == found[1] != found[2]
    assert make("dirichlet", alpha="0.5").options == make("dirichlet", alpha=0.5).options


def test_shards_can_be_of_a_single_class():
    # 30 shards of 10 classes, whose examples the classes do not divide evenly.
    train, test = examples(1003, num_classes=7), examples(407, num_classes=7, seed=1)
    for seed in SEEDS:
        partition = make("shards", seed, train, test, single_class=True)
        counts = partition.class_counts(train["y"])
        assert (counts > 0).sum(axis=1).max() <= 3
        # The two largest classes, of 144 examples, are cut into five shards of 28, the others into
        # four of 35: what remains of each division belongs to nobody.
        assert counts.sum(axis=0).tolist() == [140] * 7
        assert not (counts % ([28] * 2 + [35] * 5)).any()
        np.testing.assert_array_equal(counts > 0, partition.class_counts(test["y"], "test") > 0)
    straddling = make("shards", 0, train, test).class_counts(train["y"])
    assert (straddling > 0).sum(axis=1).max() > 3


def test_disjoint_classes_are_disjoint_and_even():
    for seed in SEEDS:
        partition = make("disjoint_classes", seed)
        held = partition.class_counts(TRAIN["y"]) > 0
        assert (held.sum(axis=0) == 1).all() and set(held.sum(axis=1)) == {2, 3}
        np.testing.assert_array_equal(held, partition.class_counts(TEST["y"], "test") > 0)


def test_disjoint_classes_can_be_given():
    classes = [[0, 1], [2, 3], [4, 5, 6], [7, 8]]
    partition = make("disjoint_classes", classes=classes, num_clients=None)
    held = partition.class_counts(TRAIN["y"]) > 0
    assert [np.flatnonzero(row).tolist() for row in held] == classes
    assert partition.options == {"classes": classes}
    assert sum(sizes(partition)) == 1003 - (TRAIN["y"] == 9).sum()


def test_groups_stay_together():
    for seed in SEEDS:
        partition = make("groups", seed)
        owners = [set(TRAIN["writer"][part]) for part in partition.train]
        assert sorted(writer for own in owners for writer in own) == list(range(12))
        assert {len(own) for own in owners} == {2, 3}
        assert owners == [set(TEST["writer"][part]) for part in partition.test]


def test_groups_can_be_clients_of_their_own():
    partition = make("groups", num_clients=None)
    assert partition.client_ids == tuple(f"writer_{k}" for k in range(12))
    for number, part in enumerate(partition.train):
        assert set(TRAIN["writer"][part]) == {number}


def test_max_groups_is_an_upper_bound_drawn_at_random():
    ids = {make("groups", s, num_clients=None, max_groups=4).client_ids for s in SEEDS}
    assert len(ids) > 1 and {len(own) for own in ids} == {4}
    assert len(make("groups", num_clients=None, max_groups=99).client_ids) == 12
    assert len(make("groups", num_clients=2, max_groups=4).client_ids) == 2


def test_group_without_test_examples_matters_only_where_a_client_has_none():
    test = {key: column[TEST["writer"] != 3] for key, column in TEST.items()}
    assert min(sizes(make("groups", test=test), "test")) > 0
    with pytest.raises(ValueError, match=r"1 of 12 clients.*writer_3.*allow_empty_test"):
        make("groups", test=test, num_clients=None)
    partition = make("groups", test=test, num_clients=None, allow_empty_test=True)
    assert sizes(partition, "test")[3] == 0


@pytest.mark.parametrize(("shared", "own"), [(0, [5, 5]), (3, [3, 4]), (10, [0, 0])])
def test_groups_can_share_some_classes_and_split_the_others(shared, own):
    drawn = set()
    for seed in SEEDS:
        partition = make("groups", seed, num_clients=2, shared_classes=shared)
        plain = make("groups", seed, num_clients=2)
        held = partition.class_counts(TRAIN["y"]) > 0
        np.testing.assert_array_equal(held, partition.class_counts(TEST["y"], "test") > 0)
        assert held.all(axis=0).sum() == shared and held.any(axis=0).all()
        assert sorted(held[:, ~held.all(axis=0)].sum(axis=1)) == own
        drawn.add(held.tobytes())
        # Of what a client keeps it keeps all, and the groups are those without the option.
        for split, labels in (("train", TRAIN["y"]), ("test", TEST["y"])):
            for mask, part, whole in zip(
                held, getattr(partition, split), getattr(plain, split), strict=True
            ):
                np.testing.assert_array_equal(part, whole[mask[labels[whole]]])
    assert (len(drawn) > 1) == (shared < 10)


def test_groups_split_classes_among_those_who_hold_them():
    # Writer 1 alone holds classes 0 to 4. Both hold the other five: one is shared, four go to
    # writer 0, in whatever order classes are drawn.
    def examples(columns):
        rows = (columns["writer"] == 1) | ((columns["writer"] == 0) & (columns["y"] > 4))
        return {key: column[rows] for key, column in columns.items()}

    train, test = examples(TRAIN), examples(TEST)
    for seed in SEEDS:
        partition = make("groups", seed, train, test, num_clients=None, shared_classes=1)
        assert partition.client_ids == ("writer_0", "writer_1")
        held = partition.class_counts(train["y"]) > 0
        assert held[:, :5].tolist() == [[False] * 5, [True] * 5]
        assert held.all(axis=0).sum() == 1 and held.sum(axis=1).tolist() == [5, 6]
    with pytest.raises(ValueError, match=r"from 0 to 5, .*found 6"):
        make("groups", 0, train, test, num_clients=None, shared_classes=6)


def test_dirichlet_alpha_sets_the_skew():
    def spread(alpha):
        counts = [
            make("dirichlet", seed, alpha=alpha, min_examples=1).class_counts(TRAIN["y"])
            for seed in SEEDS
        ]
        return np.mean([(own.max(axis=0) / own.sum(axis=0)).mean() for own in counts])

    assert spread(0.1) > 0.6
    assert spread(10.0) < 0.4
    assert spread(1e6) == pytest.approx(1 / 6, abs=0.02)


def test_dirichlet_keeps_the_least_number_of_examples():
    for seed in SEEDS:
        partition = make("dirichlet", seed, min_examples=90)
        assert min(sizes(partition)) >= 90 and min(sizes(partition, "test")) > 0


@pytest.mark.parametrize(
    ("name", "options", "parts"),
    [
        ("iid", {"num_clients": 1004}, ("1 to 1003", "1004")),
        ("iid", {"num_clients": 0}, ("1 to 1003", "found 0")),
        ("iid", {"num_clients": None}, ("num_clients is needed",)),
        ("iid", {"num_clients": 500}, ("93 of 500", "407 test", "allow_empty_test")),
        ("iid", {"alpha": 1.0}, ("no option alpha", "it has none")),
        ("shards", {"num_clients": 600}, ("600 clients", "1800", "1003")),
        ("shards", {"shards_per_client": 0}, ("shards_per_client", "found 0")),
        ("shards", {"shard_per_client": 2}, ("shard_per_client", "shards_per_client")),
        ("shards", {"num_clients": 200}, ("200 of 200 clients", "407 test")),
        ("disjoint_classes", {"num_clients": 11}, ("1 to 10", "classes", "found 11")),
        ("disjoint_classes", {"classes": [[0], [1]]}, ("4", "found 2 lists")),
        (
            "disjoint_classes",
            {"classes": [[0, 1], [1]], "num_clients": 2},
            ("at most once", "[1] repeatedly"),
        ),
        ("disjoint_classes", {"classes": [[0], []], "num_clients": 2}, ("at least one class",)),
        ("disjoint_classes", {"classes": [[0], [12]], "num_clients": 2}, ("[12]", "[0, 1, 2")),
        ("groups", {"num_clients": 13}, ("1 to 12", "'writer'", "found 13")),
        ("groups", {"column": "race"}, ("['writer', 'x', 'y']", "'race'")),
        ("groups", {"column": "x"}, ("'x'", "[1003, 1]")),
        ("groups", {"max_groups": 0}, ("max_groups", "found 0")),
        (
            "groups",
            {"shared_classes": -1},
            ("shared_classes: expected a whole number from 0", "found -1"),
        ),
        ("groups", {"shared_classes": 11}, ("shared_classes", "0 to 10", "found 11")),
        ("dirichlet", {"alpha": 0.0}, ("alpha", "0.0")),
        ("dirichlet", {"alpha": float("nan")}, ("alpha", "nan")),
        ("dirichlet", {"min_examples": 0}, ("min_examples", "found 0")),
        ("dirichlet", {"min_examples": 168}, ("1008", "1003")),
        ("dirichlet", {"min_examples": 160, "alpha": 0.1}, ("100", "160", "1003", "alpha=0.1")),
    ],
)
def test_refuses_with_the_numbers(name, options, parts):
    with pytest.raises(ValueError) as error:
        make(name, **options)
    for part in parts:
        assert part in str(error.value)


def test_unknown_partition_lists_the_known_ones():
    with pytest.raises(ValueError, match=r"'sharsd'.*dirichlet, disjoint_classes"):
        partitions.make("sharsd", TRAIN, TEST, num_clients=2, seed=0)


def test_options_are_recorded_with_defaults(tmp_path):
    partition = make("dirichlet")
    assert partition.options == {"alpha": 0.5, "min_examples": 10, "capped": False}
    partition.save(tmp_path / "p.npz")
    assert same(partition, partitions.Partition.load(tmp_path / "p.npz"))
