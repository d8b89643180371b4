"""Each client's test examples are cut from its own share of the training examples."""

import numpy as np
import pytest

from tff_het import partitions
from tff_het.clients import Population
from tff_het.datasets import Dataset

N, SEEDS = 1000, range(4)


def make_dataset() -> Dataset:
    """Every training example has a number of its own; test examples have negative ones."""
    rng = np.random.default_rng(0)

    def examples(numbers):
        return {
            "x": numbers.astype(np.float32)[:, np.newaxis],
            "y": rng.permutation(np.arange(len(numbers)) % 10).astype(np.int32),
        }

    return Dataset(
        name="numbers",
        train=examples(np.arange(N)),
        test=examples(-1 - np.arange(200)),
        class_names=tuple("0123456789"),
        source="made up",
    )


DATASET = make_dataset()


def make(name="shards", seed=0, fraction=0.2, num_clients=20, **options):
    return partitions.make_with_local_test(
        name, DATASET, fraction=fraction, num_clients=num_clients, seed=seed, **options
    )


def numbers(dataset, partition, split):
    """For each client the numbers of its examples."""
    column = getattr(dataset, split)["x"][:, 0]
    return [set(column[own].tolist()) for own in getattr(partition, split)]


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("iid", {}),
        ("shards", {"shards_per_client": 3}),
        ("shards", {"single_class": True}),
        ("dirichlet", {"num_clients": 5}),
        ("disjoint_classes", {"num_clients": 5}),
        ("clusters", {"num_clients": 4, "num_components": 1}),
        ("multimodal", {"minority_classes": [1, 2], "minority_clients": 3}),
    ],
)
def test_train_and_test_are_what_the_client_was_dealt(name, options):
    for seed in SEEDS:
        dataset, partition = make(name, seed, **options)
        options = {"num_clients": 20, **options}
        nothing = {key: column[:0] for key, column in DATASET.test.items()}
        dealt = partitions.make(
            name, DATASET.train, nothing, seed=seed, allow_empty_test=True, **options
        )
        assert partition.client_ids == dealt.client_ids and partition.groups == dealt.groups
        train, test = (numbers(dataset, partition, split) for split in ("train", "test"))
        for whole, learned, tested in zip(dealt.train, train, test, strict=True):
            assert learned | tested == set(whole.tolist()) and not learned & tested
            assert len(tested) == np.rint(0.2 * len(whole))
        # The test part is that of the clients, and of nobody else; of the old one nothing is left.
        assert len(dataset.test["y"]) == sum(map(len, test))
        assert len(dataset.train["y"]) == N - len(dataset.test["y"])
        for examples in (dataset.train, dataset.test):
            rows = examples["x"][:, 0].astype(int)
            assert rows.min() >= 0
            np.testing.assert_array_equal(examples["y"], DATASET.train["y"][rows])
        assert partition.options["local_test_fraction"] == 0.2
        Population.from_partition(dataset, partition)


def test_the_seed_decides():
    cut = {frozenset(numbers(*make("iid", seed), "test")[0]) for seed in SEEDS}
    assert len(cut) == len(SEEDS)
    assert numbers(*make("iid", 1), "test") == numbers(*make("iid", 1), "test")


def test_one_example_is_left_to_train_on():
    dataset, partition = make("iid", fraction=0.9, num_clients=N // 2)
    assert {len(own) for own in partition.train} == {len(own) for own in partition.test} == {1}
    assert len(dataset.test["y"]) == N // 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"fraction": 0.0}, "between 0 and 1; found 0.0"),
        ({"fraction": 1.0}, "between 0 and 1; found 1.0"),
        ({"fraction": 0.001}, "they have 50 at most"),
        ({"num_clients": None}, "num_clients is needed"),
        ({"num_clients": 1001}, "found 1001"),
    ],
)
def test_refuses_with_the_numbers(options, message):
    with pytest.raises(ValueError, match=message):
        make(**options)


def test_clients_without_test_examples_have_to_be_allowed():
    """Alone at one client, an example is trained on."""
    options = {"num_clients": 8, "alpha": 0.05, "min_examples": 1, "seed": 5}
    with pytest.raises(ValueError, match="accept it with allow_empty_test=True"):
        make("dirichlet", fraction=0.01, **options)
    _, partition = make("dirichlet", fraction=0.01, allow_empty_test=True, **options)
    sizes = [len(own) for own in partition.test]
    assert min(sizes) == 0 < max(sizes)


def test_its_file_is_for_the_divided_data(tmp_path):
    divided, partition = make()
    partition.save(tmp_path / "split.npz")
    again = partitions.make(
        "file",
        divided.train,
        divided.test,
        num_clients=None,
        seed=0,
        path=str(tmp_path / "split.npz"),
    )
    assert all(map(np.array_equal, again.train, partition.train))
    assert all(map(np.array_equal, again.test, partition.test))
