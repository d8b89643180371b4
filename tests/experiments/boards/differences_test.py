"""P-values of many differences on numbers worked out by hand."""

import pytest

import experiments.study as s
from experiments.boards import differences
from experiments.study.store import Results, Run, Status


def test_holm_multiplies_the_smallest_by_the_number_of_tests_and_never_falls():
    assert differences.holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert differences.holm([0.6, 0.9]) == [1.0, 1.0]
    assert differences.holm([]) == []


def test_p_values_are_corrected_within_a_column():
    values = {"a": (1.0, 2.0, 3.0), "b": (0.1, -0.1, 0.3)}
    runs = {
        (name, seed): Run(None, Status.OK, {"metrics": {"gap": value}})
        for name, of in values.items()
        for seed, value in enumerate(of)
    }
    results = Results("paper", [0, 1, 2], runs)
    both = s.places([*values], ["gap"], s.metric)
    # By hand: t = 3.464 and 0.866 with 2 degrees of freedom.
    assert differences.p_values(both, results) == {
        ("a", "gap"): ", p 0.148",
        ("b", "gap"): ", p 0.478",
    }
    assert differences.p_values(both[:1], results) == {("a", "gap"): ", p 0.074"}
