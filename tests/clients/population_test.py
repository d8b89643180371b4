"""Clients hold what the partition says, validation comes from train, populations grow."""

import dataclasses
import gc
import tracemalloc

import numpy as np
import pytest

from tff_het import datasets, partitions
from tff_het.clients import Client, Population


def make_dataset(num_train=103, num_test=40):
    def examples(n, offset):
        ids = np.arange(offset, offset + n)  # x tells which example it is, and of which split.
        return {
            "x": np.stack([ids, -ids], axis=1).astype(np.float32),
            "y": (np.arange(n) % 5).astype(np.int32),
            "writer": (np.arange(n) % 7).astype(np.int32),
        }

    train, test = examples(num_train, 0), examples(num_test, 1000)
    return datasets.Dataset("toy", train, test, tuple("abcde"), "")


DATA = make_dataset()
PARTITION = partitions.make("iid", DATA.train, DATA.test, num_clients=6, seed=0)


def ids_of(examples):
    return examples["x"][:, 0].astype(int).tolist()


@pytest.mark.parametrize("fraction", [0.0, 0.1, 0.5, 0.99])
def test_every_client_holds_its_own_examples(fraction):
    for seed in range(5):
        population = Population.from_partition(
            DATA, PARTITION, validation_fraction=fraction, seed=seed
        )
        assert population.ids == PARTITION.client_ids and len(population) == 6
        for k, client in enumerate(population):
            train, validation = ids_of(client.train), ids_of(client.validation)
            assert sorted(train + validation) == PARTITION.train[k].tolist()
            assert ids_of(client.test) == (PARTITION.test[k] + 1000).tolist()
            n = len(PARTITION.train[k])
            assert len(validation) == min(round(fraction * n), n - 1)
            np.testing.assert_array_equal(client.train["y"], np.array(train) % 5)
        np.testing.assert_array_equal(
            population.num_train_examples, [len(client.train["y"]) for client in population]
        )
        assert population.num_train_examples.dtype == np.int64


def test_seed_decides_validation_and_clients_draw_apart():
    def held_out(seed):
        population = Population.from_partition(DATA, PARTITION, validation_fraction=0.3, seed=seed)
        return [ids_of(client.validation) for client in population]

    assert held_out(1) == held_out(1) != held_out(2)
    places = [
        np.searchsorted(part, own).tolist()
        for part, own in zip(PARTITION.train, held_out(1), strict=True)
    ]
    assert len({tuple(place) for place in places}) > 1


def test_one_training_example_always_remains():
    data = make_dataset(3, 3)
    partition = partitions.make("iid", data.train, data.test, num_clients=3, seed=0)
    population = Population.from_partition(data, partition, validation_fraction=0.9)
    assert population.num_train_examples.tolist() == [1, 1, 1]
    assert population[0].validation["x"].shape == (0, 2)


def test_arrays_are_contiguous_read_only_and_of_the_chosen_columns():
    population = Population.from_partition(
        DATA, PARTITION, validation_fraction=0.2, columns=("y", "writer", "x")
    )
    assert population.columns == ("y", "writer", "x")
    assert population.element_spec == {
        "y": (np.dtype(np.int32), ()),
        "writer": (np.dtype(np.int32), ()),
        "x": (np.dtype(np.float32), (2,)),
    }
    for client in population:
        for examples in (client.train, client.validation, client.test):
            assert tuple(examples) == population.columns
            for column in examples.values():
                assert column.flags.c_contiguous
        with pytest.raises(ValueError, match="read-only"):
            client.train["x"][0] = 1
    assert Population.from_partition(DATA, PARTITION).columns == ("x", "y")


def test_client_without_test_examples_keeps_the_form():
    partition = dataclasses.replace(
        PARTITION, test=(np.zeros(0, np.int64), *PARTITION.test[1:]), allow_empty_test=True
    )
    population = Population.from_partition(DATA, partition)
    assert population[0].test["x"].shape == (0, 2)


@pytest.mark.parametrize(
    ("options", "parts"),
    [
        ({"validation_fraction": 1.0}, ("[0, 1)", "1.0")),
        ({"validation_fraction": -0.1}, ("[0, 1)", "-0.1")),
        ({"validation_fraction": float("nan")}, ("[0, 1)", "nan")),
        ({"columns": ("x", "race")}, ("['writer', 'x', 'y']", "'race'")),
        ({"columns": ("x", "x")}, ("different", "['x', 'x']")),
        ({"columns": ()}, ("columns",)),
        ({"dataset": make_dataset(104, 40)}, ("103 train", "104")),
        ({"dataset": make_dataset(103, 41)}, ("40 test", "41")),
    ],
)
def test_from_partition_refuses(options, parts):
    with pytest.raises(ValueError) as error:
        Population.from_partition(**{"dataset": DATA, "partition": PARTITION, **options})
    for part in parts:
        assert part in str(error.value)


def make_client(client_id, n=2, width=3, dtype=np.float32, **changes):
    examples = {"x": np.zeros((n, width), dtype), "y": np.zeros(n, np.int32)}
    splits = {"train": examples, "validation": examples, "test": examples}
    return Client(client_id, **{**splits, **changes})


def test_client_makes_arrays_contiguous_once():
    column = np.arange(6, dtype=np.float32).reshape(3, 2).T
    client = make_client("a", train={"x": column, "y": np.zeros(2, np.int32)})
    assert client.train["x"].flags.c_contiguous
    assert client.train["x"] is client.train["x"]


@pytest.mark.parametrize(
    ("changes", "parts"),
    [
        ({"n": 0}, ("at least one training",)),
        ({"test": {"x": np.zeros((1, 3), np.float32)}}, ("test", "columns of train")),
        ({"train": {"x": np.zeros((2, 3)), "y": np.zeros(1, np.int32)}}, ("'x': 2", "'y': 1")),
        (
            {"validation": {"x": np.zeros((1, 4), np.float32), "y": np.zeros(1, np.int32)}},
            ("validation", "(4,)"),
        ),
        ({"train": {}}, ("equally long", "{}")),
    ],
)
def test_client_refuses(changes, parts):
    with pytest.raises(ValueError) as error:
        make_client("ann", **changes)
    for part in ("'ann'", *parts):
        assert part in str(error.value)


def test_population_refuses_clients_that_do_not_fit_together():
    with pytest.raises(ValueError, match="at least one client"):
        Population([])
    with pytest.raises(ValueError, match=r"unique.*'a'"):
        Population([make_client("a"), make_client("b"), make_client("a")])
    for other in (make_client("bob", width=4), make_client("bob", dtype=np.uint8)):
        with pytest.raises(ValueError, match=r"'ann' has.*'bob' has"):
            Population([make_client("ann"), other])


def test_grows_without_changing():
    small = Population([make_client("a", 1), make_client("b", 2)])
    large = small.grown_by(Population([make_client("c", 3)]))
    assert small.ids == ("a", "b") and large.ids == ("a", "b", "c")
    assert large.num_train_examples.tolist() == [1, 2, 3]
    assert large[0] is small[0]
    with pytest.raises(ValueError, match=r"unique.*'b'"):
        large.grown_by([make_client("b")])
    with pytest.raises(ValueError, match="'a' has"):
        large.grown_by([make_client("d", width=9)])


def test_is_a_sequence():
    population = Population([make_client(name) for name in "abc"])
    assert population[-1].id == "c" and population[1:].ids == ("b", "c")
    assert population[0] in population and [client.id for client in population] == list("abc")
    with pytest.raises(IndexError):
        population[3]


def test_pooled_client_holds_everybodys_training_examples_and_nothing_else():
    population = Population.from_partition(DATA, PARTITION, validation_fraction=0.2)
    larger = population.with_pooled("all")
    assert larger.ids == (*population.ids, "all")
    for one, other in zip(larger, population, strict=False):
        assert one.id == other.id and np.shares_memory(one.train["x"], other.train["x"])
    pooled = larger[-1]
    assert ids_of(pooled.train) == [i for client in population for i in ids_of(client.train)]
    np.testing.assert_array_equal(pooled.train["y"], np.array(ids_of(pooled.train)) % 5)
    assert ids_of(pooled.validation) == ids_of(pooled.test) == []
    with pytest.raises(ValueError, match="read-only"):
        pooled.train["x"][0] = 1
    with pytest.raises(ValueError, match=r"unique.*'all'"):
        larger.with_pooled("all")


def from_columns(num_clients: int, **changes) -> Population:
    """Clients with two examples to train on, and one each for validation and test."""
    sizes = {"train": 2, "validation": 1, "test": 1}
    examples = {
        split: {
            "x": np.arange(size * num_clients, dtype=np.float32),
            "y": np.zeros(size * num_clients, np.int32),
        }
        for split, size in sizes.items()
    }
    arguments = {
        "ids": [f"client {k}" for k in range(num_clients)],
        "examples": examples,
        "sizes": {split: np.full(num_clients, size) for split, size in sizes.items()},
    }
    return Population.from_columns(**{**arguments, **changes})


def test_clients_of_columns_are_those_made_one_by_one():
    population = from_columns(5, groups=[*"aabba"])
    client = population[3]
    assert (client.id, client.group) == ("client 3", "b")
    assert client.train["x"].tolist() == [6, 7] and client.test["x"].tolist() == [3]
    assert np.shares_memory(client.train["x"], population[3].train["x"])
    one_by_one = Population(population)
    for name in ("ids", "groups", "columns", "element_spec"):
        assert getattr(one_by_one, name) == getattr(population, name)
    for split in ("train", "validation", "test"):
        for of in (Population.num_examples, lambda p, s: p.column(s, "x")):
            np.testing.assert_array_equal(of(population, split), of(one_by_one, split))
    assert population.validation_fingerprint() == one_by_one.validation_fingerprint()
    one = {"x": np.array([9], np.float32), "y": np.zeros(1, np.int32)}
    grown = population.grown_by([Client("new", one, one, one)])
    assert grown.ids == (*population.ids, "new") and grown[-1].train["x"].tolist() == [9]
    assert grown.column("train", "x").tolist() == [*range(10), 9]


@pytest.mark.parametrize(
    "changes",
    [
        {"ids": ["a", "b"]},
        {"ids": ["a", "b", "b"]},
        {"sizes": {"train": np.array([2, 4, 0]), "validation": np.ones(3), "test": np.ones(3)}},
        {"sizes": {"train": np.array([2, 2, 1]), "validation": np.ones(3), "test": np.ones(3)}},
    ],
)
def test_columns_that_do_not_fit_are_refused(changes):
    with pytest.raises(ValueError, match=r"clients need as many sizes|must be unique"):
        from_columns(3, **changes)


def test_a_client_takes_less_than_200_bytes_beside_its_examples():
    """From its partition on; with the index of each example, which is no client's."""
    num_clients = 20_000
    data = make_dataset(2 * num_clients, num_clients)
    tracemalloc.start()
    try:
        partition = partitions.make("iid", data.train, data.test, num_clients=num_clients, seed=0)
        population = Population.from_partition(data, partition)
        gc.collect()
        found, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    kept = [population.column(split, name) for split in ("train", "test") for name in "xy"]
    held = found - sum(column.nbytes for column in kept) - 8 * 3 * num_clients
    assert 50 * num_clients < held < 200 * num_clients


def test_memory_mapped_examples_are_not_copied(tmp_path):
    """So that many clients' examples may be more than fits into memory."""
    shape = (3, 10, 2)
    x = np.lib.format.open_memmap(tmp_path / "x.npy", "w+", dtype=np.float32, shape=shape)
    y = np.zeros(10, np.int32)
    clients = [
        Client(
            str(k), {"x": x[k], "y": y}, {"x": x[k, :0], "y": y[:0]}, {"x": x[k, :2], "y": y[:2]}
        )
        for k in range(3)
    ]
    for k, client in enumerate(Population(clients)):
        assert np.shares_memory(client.train["x"], x[k])
        assert np.shares_memory(client.test["x"], x[k, :2])
