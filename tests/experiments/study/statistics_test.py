"""Statistics over seeds on numbers worked out by hand."""

import math

import numpy as np
import pytest
from scipy import stats

from experiments.study import pages, sections, statistics
from experiments.study.experiment import Check, Form
from experiments.study.measures import metric
from experiments.study.statistics import Estimate, Verdict


def test_interval_is_the_t_interval():
    found = statistics.estimate([1.0, 2.0, 3.0])
    half = 4.302652729911275 / math.sqrt(3)  # t of 2 degrees of freedom; the deviation is 1.
    assert found.mean == 2.0 and found.num_seeds == 3
    assert (found.low, found.high) == pytest.approx((2 - half, 2 + half))


def test_one_seed_has_no_interval_no_test_and_decides_nothing():
    found = statistics.estimate([0.9])
    assert found == Estimate(0.9, None, None, 1)
    assert statistics.paired_t_test([0.9]) is None
    assert statistics.verdict(found, 0.1) is Verdict.UNDECIDED


def test_no_values_are_refused():
    with pytest.raises(ValueError, match="at least one"):
        statistics.estimate([])


@pytest.mark.parametrize(
    ("low", "high", "margin", "expected"),
    [
        (0.11, 0.3, 0.10, Verdict.HOLDS),
        (0.09, 0.3, 0.10, Verdict.UNDECIDED),
        (0.10, 0.3, 0.10, Verdict.UNDECIDED),  # On the margin is not above it.
        (0.01, 0.09, 0.10, Verdict.CONTRADICTED),
        (-0.3, -0.1, 0.0, Verdict.CONTRADICTED),
        (-0.1, 0.1, 0.0, Verdict.UNDECIDED),
    ],
)
def test_verdict_is_read_off_the_interval(low, high, margin, expected):
    assert statistics.verdict(Estimate((low + high) / 2, low, high, 3), margin) is expected


def test_verdict_and_test_agree():
    differences = [0.02, 0.05, 0.03, 0.06]
    p = statistics.paired_t_test(differences)
    a, b = [0.5, 0.6, 0.7, 0.8], [0.48, 0.55, 0.67, 0.74]
    assert p == pytest.approx(stats.ttest_rel(a, b).pvalue)
    assert p < 0.05
    beyond = statistics.paired_t_test(differences, 0.02)
    assert beyond == pytest.approx(stats.ttest_1samp(differences, 0.02).pvalue) and beyond > p
    assert statistics.verdict(statistics.estimate(differences)) is Verdict.HOLDS


def test_the_same_difference_everywhere_has_no_test():
    assert statistics.paired_t_test([0.2, 0.2]) is None


def test_seeds_that_would_decide():
    """The least number whose interval, of the spread seen, leaves the margin out."""
    found = statistics.estimate([0.1, 0.4, -0.2, 0.3])
    needed = statistics.seeds_to_decide(found, 0.0)
    spread = np.std([0.1, 0.4, -0.2, 0.3], ddof=1)
    half = [stats.t.ppf(0.975, n - 1) * spread / np.sqrt(n) for n in (needed - 1, needed)]
    assert half[0] >= found.mean > half[1]
    assert statistics.seeds_to_decide(found, found.mean) is None
    assert statistics.seeds_to_decide(statistics.estimate([0.1]), 0.0) is None


def test_a_claim_is_as_good_as_its_worst_check():
    margins = {Verdict.HOLDS: 0.0, Verdict.CONTRADICTED: 9.0, Verdict.UNDECIDED: 2.1}
    number = sections.Number(statistics.estimate([2.0, 2.1, 2.2]), "")

    def verdict(*of: Verdict) -> Verdict:
        checks = [Check(one.value, metric("cell", "name"), margins[one], Form()) for one in of]
        return sections.Judged("", [sections.JudgedCheck(c, number) for c in checks]).verdict

    holds, no, open_ = Verdict.HOLDS, Verdict.CONTRADICTED, Verdict.UNDECIDED
    assert verdict(holds, holds) is holds
    assert verdict(holds, open_) is open_
    assert verdict(open_, no, holds) is no


@pytest.mark.parametrize(
    ("margins", "seeds"),
    [((1.9, 1.5), 387), ((1.9, 2.5), 18)],  # Means are 0.1 and 0.5 from these margins.
)
def test_one_check_contradicts_a_claim_but_all_must_hold(margins, seeds):
    number = sections.Number(statistics.estimate([1.0, 2.0, 3.0]), "")
    checks = [Check("", metric("cell", "name"), margin, Form()) for margin in margins]
    claim = sections.Judged("", [sections.JudgedCheck(check, number) for check in checks])
    *_, said = pages._row("", claim)
    assert said == f"3; about {seeds} would decide"
