"""Epsilon against the Gaussian mechanism's closed form, and dp-accounting itself."""

import math

import dp_accounting
import numpy as np
import pytest
from dp_accounting import rdp
from scipy import optimize, stats

from tff_het.evaluation import privacy

DELTA = 1e-5


def exact_epsilon(noise_multiplier: float, times: int) -> float:
    """Balle and Wang (2018), Theorem 8; k times with noise z is once with z / sqrt(k)."""
    a = 2 * math.sqrt(times) / noise_multiplier  # A replaced client moves the sum by 2 norms.

    def excess(epsilon):
        tail = np.exp(epsilon + stats.norm.logcdf(-a / 2 - epsilon / a))
        return stats.norm.cdf(a / 2 - epsilon / a) - tail - DELTA

    return optimize.brentq(excess, 0, 500)


@pytest.mark.parametrize(("noise", "times"), [(1.0, 1), (10.0, 1), (2.0, 20), (5.0, 100)])
def test_composed_bounds_the_closed_form_closely(noise, times):
    found, exact = privacy.composed_epsilon(noise, times, DELTA), exact_epsilon(noise, times)
    assert exact < found < 1.1 * exact


def test_sampled_is_what_the_accountant_gives_for_half_the_noise():
    event = dp_accounting.SampledWithoutReplacementDpEvent(
        1000, 20, dp_accounting.GaussianDpEvent(1.5)
    )
    accountant = rdp.RdpAccountant(
        neighboring_relation=dp_accounting.NeighboringRelation.REPLACE_ONE
    )
    accountant.compose(event, 50)
    found = privacy.sampled_epsilon(3.0, 50, 20, 1000, DELTA)
    assert found == pytest.approx(accountant.get_epsilon(DELTA))
    # Wang et al. (2019), Theorem 27 at order 2 by hand; Canonne et al. (2020) for epsilon.
    gaussian = 2 / (2 * 1.5**2)
    at_two = math.log1p(0.02**2 * min(4 * math.expm1(gaussian), 2 * math.exp(gaussian)))
    assert found <= 50 * at_two + math.log(1 / 2) - math.log(2 * DELTA)
    assert found < 0.2 * privacy.composed_epsilon(3.0, 50, DELTA)  # Sampling amplifies.


def test_all_clients_in_each_round_are_not_a_sample():
    composed = privacy.composed_epsilon(2.0, 20, DELTA)
    assert privacy.sampled_epsilon(2.0, 20, 7, 7, DELTA) == composed
    assert privacy.sampled_epsilon(2.0, 20, 6, 7, DELTA) <= composed  # Never worse.


def test_no_noise_and_no_rounds():
    assert privacy.sampled_epsilon(0.0, 1, 1, 2, DELTA) == math.inf
    assert privacy.composed_epsilon(0.0, 1, DELTA) == math.inf
    assert privacy.composed_epsilon(1.0, 0, DELTA) == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((-1.0, 1, 1, 2, DELTA), "not negative, found -1"),
        ((1.0, -1, 1, 2, DELTA), "not negative, found -1"),
        ((1.0, 1, 3, 2, DELTA), "1 to 2 clients, the population; found 3"),
        ((1.0, 1, 1, 2, 0.0), "between 0 and 1, found 0"),
    ],
)
def test_what_is_out_of_range_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        privacy.sampled_epsilon(*arguments)
