"""Tests of the distribution over clients."""

import math

import numpy as np
import pytest

from tff_het.evaluation.statistics import by_group, distribution


def test_numbers_by_hand():
    result = distribution([0.5, 1.0, 0.0, 0.75], [2, 1, 1, 4])
    assert result == {
        "num_clients": 4,
        "mean": 0.5625,
        "weighted_mean": pytest.approx((1.0 + 1.0 + 0.0 + 3.0) / 8),
        "std": pytest.approx(math.sqrt((1**2 + 7**2 + 9**2 + 3**2) / 4) / 16),
        "variance": pytest.approx((1**2 + 7**2 + 9**2 + 3**2) / 4 / 256),
        "min": 0.0,
        "max": 1.0,
        "median": 0.625,
        "worst_decile": 0.0,
        **{
            f"decile_{10 * d}": pytest.approx(np.quantile([0, 0.5, 0.75, 1], d / 10))
            for d in range(1, 10)
        },
    }


def test_weighted_mean_is_the_pooled_accuracy():
    rng = np.random.default_rng(0)
    correct = [rng.random(size) < 0.7 for size in (3, 50, 8, 1)]
    result = distribution([c.mean() for c in correct], [len(c) for c in correct])
    assert result["weighted_mean"] == pytest.approx(np.concatenate(correct).mean())


@pytest.mark.parametrize(("num", "worst"), [(1, 1), (9, 1), (10, 1), (11, 2), (70, 7), (71, 8)])
def test_worst_decile_holds_a_tenth_rounded_up(num, worst):
    values = np.random.default_rng(num).permutation(num) / num
    accuracies = distribution(values, np.ones(num))
    assert accuracies["worst_decile"] == pytest.approx(np.arange(worst).mean() / num)


def test_clients_without_examples_are_left_out():
    with_empty = distribution([np.nan, 0.5, 1.0, np.nan], [0, 3, 1, 0])
    assert with_empty == distribution([0.5, 1.0], [3, 1])
    assert with_empty["num_clients"] == 2


def test_nan_of_a_client_with_examples_is_not_hidden():
    result = distribution([0.5, np.nan], [1, 1])
    assert result.pop("num_clients") == 2
    assert all(math.isnan(value) for value in result.values())


def test_what_cannot_be_summarised_is_refused():
    with pytest.raises(ValueError, match="None of the 2 clients has examples"):
        distribution([np.nan, np.nan], [0, 0])
    with pytest.raises(ValueError, match=r"\(2,\) and \(3,\)"):
        distribution([0.5, 0.5], [1, 1, 1])
    with pytest.raises(ValueError, match="must not be negative, found -1"):
        distribution([0.5, 0.5], [1, -1])


def test_groups_by_hand():
    values, sizes = [0.5, 0.9, 1.0, 0.7, np.nan], [2, 1, 5, 4, 0]
    assert by_group(values, sizes, ["few", "many", "few", "many", "many"]) == {
        "mean_few": pytest.approx(0.75),
        "mean_many": pytest.approx(0.8),
        # Two clients with examples each: the first group counts as the larger one.
        "gap": pytest.approx(-0.05),
    }
    # The larger group has the lower mean, so that the gap is negative.
    found = by_group(values, sizes, ["many", "few", "many", "many", "few"])
    assert found["gap"] == pytest.approx((0.5 + 1.0 + 0.7) / 3 - 0.9)
    # Of three groups the largest and the smallest one.
    found = by_group([0.1, 0.1, 0.1, 0.4, 0.4, 0.8], [1] * 6, [*"aaabbc"])
    assert found["gap"] == pytest.approx(0.1 - 0.8) and len(found) == 4


def test_no_groups_to_compare():
    assert by_group([0.1, 0.2], [1, 1], ["", ""]) == {}
    assert by_group([0.1, np.nan], [1, 0], ["a", "b"]) == {}
    with pytest.raises(ValueError, match=r"found \(2,\), \(2,\) and 1 groups"):
        by_group([0.1, 0.2], [1, 1], ["a"])
