"""Two sub-populations: the groupings of WAFFLe's appendix B, and what is refused."""

import numpy as np
import pytest

from tff_het import partitions

# MNIST's numbers of training and test examples by digit.
TRAIN_SIZES = (5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949)
TEST_SIZES = (980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009)
EVEN = [0, 2, 4, 6, 8]


def examples(sizes, seed=0):
    labels = np.repeat(np.arange(len(sizes)), sizes).astype(np.int32)
    return {"y": np.random.default_rng(seed).permutation(labels)}


TRAIN, TEST = examples(TRAIN_SIZES), examples(TEST_SIZES, seed=1)


def make(seed=0, train=TRAIN, test=TEST, **options):
    return partitions.make(
        "multimodal",
        train,
        test,
        seed=seed,
        **{
            "num_clients": 120,
            "minority_classes": EVEN,
            "minority_clients": 20,
            **options,
        },
    )


def test_odd_and_even_digits():
    """100 and 20 clients, two shards each, all of one size within and across groups."""
    dealt = set()
    for seed in range(3):
        partition = make(seed)
        assert partition.groups == ("majority",) * 100 + ("minority",) * 20
        assert partition.client_ids[:2] + partition.client_ids[-1:] == (
            "majority_0",
            "majority_1",
            "minority_19",
        )
        # 200 shards of five classes: 40 of the fives, of which there are 5421 and 892.
        for split, labels, size in (("train", TRAIN["y"], 135), ("test", TEST["y"], 22)):
            counts = partition.class_counts(labels, split)
            assert set(np.unique(counts)) <= {0, size, 2 * size}
            assert set(counts.sum(axis=1)) == {2 * size}
            assert not counts[:100, EVEN].any() and not np.delete(counts[100:], EVEN, 1).any()
            assert counts[:100].sum(axis=0).tolist() == [0, 40 * size] * 5
            assert counts[100:].sum(axis=0).tolist() == [8 * size, 0] * 5
            dealt.add(counts.tobytes())
    assert len(dealt) == 6


@pytest.mark.parametrize("classes_each", [2, 3, 4])
def test_number_of_shards(classes_each):
    partition = make(shards_per_client=classes_each)
    counts = partition.class_counts(TRAIN["y"])
    size = 5421 // (20 * classes_each)
    assert set(counts.sum(axis=1)) == {classes_each * size}
    assert (counts > 0).sum(axis=1).max() <= classes_each


def test_what_is_left_over_is_drawn_anew():
    """Over many seeds no example is always out, or always in."""
    owned = np.zeros(len(TRAIN["y"]))
    for seed in range(10):
        owned[np.concatenate(make(seed).train)] += 1
    of_fives = owned[TRAIN["y"] == 5]
    assert of_fives.sum() == 10 * 5400
    zeros = owned[TRAIN["y"] == 0]
    assert 0 < zeros.mean() / 10 < 0.25 and zeros.max() < 10


def test_classes_that_do_not_divide_the_shards():
    """14 shards of three classes: the largest ones have five of them."""
    partition = make(
        train=examples((50, 60, 55, 80)),
        test=examples((10, 12, 11, 16)),
        num_clients=9,
        minority_clients=2,
        minority_classes=[3],
    )
    counts = partition.class_counts(examples((50, 60, 55, 80))["y"])
    size = min(50 // 4, 60 // 5, 55 // 5, 80 // 4)
    assert counts.sum(axis=0).tolist() == [4 * size, 5 * size, 5 * size, 4 * size]


@pytest.mark.parametrize(
    ("options", "parts"),
    [
        ({"minority_classes": None}, ("minority_classes", "found []")),
        ({"minority_classes": [1, 1]}, ("minority_classes", "[1, 1]")),
        ({"minority_classes": [1, 12]}, ("minority_classes", "[1, 12]")),
        ({"minority_classes": list(range(10))}, ("not all",)),
        ({"minority_clients": None}, ("1 to 119", "None")),
        ({"minority_clients": 120}, ("1 to 119", "120")),
        ({"num_clients": None}, ("2 or more", "None")),
        ({"num_clients": 1}, ("2 or more", "found 1")),
        ({"shards_per_client": 0}, ("shards_per_client", "found 0")),
        ({"num_clients": 40_000}, ("40000 clients", "80000 training", "60000")),
        ({"num_clients": 29_000}, ("Class 1 has 6742", "11592 shards")),
        ({"num_clients": 5_000}, ("none of the 10000 test examples",)),
    ],
)
def test_refuses_with_the_numbers(options, parts):
    with pytest.raises(ValueError) as error:
        make(**options)
    for part in parts:
        assert part in str(error.value)


def test_groups_are_kept_on_disk(tmp_path):
    partition = make()
    partition.save(tmp_path / "p.npz")
    assert partitions.Partition.load(tmp_path / "p.npz").groups == partition.groups
