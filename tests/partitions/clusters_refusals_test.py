"""Clusters of features where they leave clients with nothing, and options that are none."""

import warnings

import numpy as np
import pytest

from tff_het import partitions


def examples(x, y):
    return {"x": np.asarray(x, np.float32), "y": np.asarray(y, np.int32)}


def grouped():
    """One class in four groups, example i in group i % 4."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(180, 5))
    x[:, :2] += 90 * np.array([(0, 0), (1, 0), (0, 1), (1, 1)])[np.arange(180) % 4]
    return examples(x, np.zeros(180))


def make(train, test, num_clients=4, allow_empty_test=True, **options):
    return partitions.make(
        "clusters",
        train,
        test,
        num_clients=num_clients,
        seed=0,
        allow_empty_test=allow_empty_test,
        **options,
    )


def test_copies_of_few_points_leave_clusters_empty_without_a_warning():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(200, 3)), np.zeros(200, int)
    y[100:] = 1
    x[:100] = np.eye(3)[np.arange(100) // 50]
    train, test = examples(x[::2], y[::2]), examples(x[1::2], y[1::2])
    for projection in ("pca", "none"):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            partition = make(train, test, projection=projection)
        counts = partition.class_counts(train["y"])
        assert (counts[:, 0] > 0).sum() == 2 and (counts[:, 1] > 0).all()


@pytest.mark.parametrize(
    ("assignment", "way_out"),
    [("own_class", "or another seed."), ("nearest", "or for assignment='own_class'.")],
)
def test_clients_without_training_examples_are_refused(assignment, way_out):
    part = {"x": np.ones((60, 3), np.float32), "y": np.arange(60, dtype=np.int32) % 2}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ValueError, match="3 of 4 clients without training examples") as error:
            make(part, part, assignment=assignment)
    assert str(error.value).endswith(way_out) and "client_" in str(error.value)


def test_clients_without_test_examples_are_refused_unless_accepted():
    train = grouped()
    left = np.isin(np.arange(len(train["y"])) % 4, [0, 3])
    test = {key: column[left] for key, column in train.items()}
    with pytest.raises(ValueError, match=r"2 of 4 clients.*accept it with allow_empty_test=True"):
        make(train, test, allow_empty_test=False)
    assert sorted(len(own) > 0 for own in make(train, test).test) == [False, False, True, True]
    none = {key: column[:0] for key, column in test.items()}
    for options in ({}, {"assignment": "nearest"}, {"projection": "tsne"}):
        assert not any(len(own) for own in make(train, none, **options).test)


@pytest.mark.parametrize(
    ("options", "parts"),
    [
        ({"projection": "umap"}, ("projection: should be one of <pca|none|tsne>", "umap")),
        ({"projection": None}, ("projection: should be one of", "found None")),
        ({"assignment": "own"}, ("<own_class|nearest>", "found own.")),
        ({"shuffle_fraction": 1.1}, ("from 0 to 1", "1.1")),
        ({"shuffle_fraction": -0.1}, ("from 0 to 1", "-0.1")),
        ({"shuffle_fraction": float("nan")}, ("from 0 to 1", "nan")),
        ({"num_components": 0}, ("num_components: expected a whole number from 1", "found 0")),
        ({"num_components": 6}, ("1 to 5", "'pca'", "[180, 5]", "found 6")),
        ({"num_components": 4, "projection": "tsne"}, ("1 to 3", "'tsne'", "found 4")),
        ({"num_clients": None}, ("num_clients is needed",)),
        ({"num_clients": 181}, ("1 to 180", "training examples", "181")),
        (
            {"num_clients": 150, "assignment": "nearest", "labels": 2},
            ("150 clients", "at most 90", "fewer"),
        ),
    ],
)
def test_refuses_with_the_numbers(options, parts):
    options = dict(options)
    train = grouped()
    train["y"] = np.arange(180, dtype=np.int32) % options.pop("labels", 1)
    with pytest.raises(ValueError) as error:
        make(train, train, **options)
    for part in parts:
        assert part in str(error.value)
