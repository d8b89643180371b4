"""What differential privacy promises for a run: epsilon, by Google's `dp-accounting`.

The unit is a client with all of its examples, and neighbours are populations of the same size in
which one client is replaced by another (dp-accounting's REPLACE_ONE): that is the relation that
fixed-size sampling without replacement has a bound for. Such a replacement moves a sum of clipped
updates by up to twice their norm, so the noise is half as large in its terms as `noise_multiplier`
says. With adding or removing a client, as most papers have it, the same noise gives a smaller
epsilon; the two are not to be compared.

All bounds are from Renyi differential privacy and hold for the aggregates of all rounds together.
"""

import functools
import math

import dp_accounting
from dp_accounting import rdp

_REPLACE_ONE = dp_accounting.NeighboringRelation.REPLACE_ONE


def composed_epsilon(noise_multiplier: float, times: int, delta: float) -> float:
    """Returns epsilon of clients that take part this many times, in rounds that all may know.

    Args:
      noise_multiplier: Standard deviation of a sum's noise, over the norm that updates are clipped
        to; 0 promises nothing.
      times: How often the client that takes part most often does, 0 or more.
      delta: In (0, 1).

    Returns:
      Epsilon, infinite where there is no noise.

    Raises:
      ValueError: If a number is out of its range.
    """
    _check(noise_multiplier, times, delta)
    return _epsilon(_gaussian(noise_multiplier), times, delta)


def sampled_epsilon(
    noise_multiplier: float, rounds: int, cohort: int, population: int, delta: float
) -> float:
    """Returns epsilon where each round's clients are drawn uniformly, without replacement.

    Theorem 27 of Wang, Balle, Kasiviswanathan (2019), which holds if nobody learns who was drawn;
    or `composed_epsilon` where that is lower, as with most clients in each round: a client cannot
    take part more often than there are rounds.

    Args:
      noise_multiplier: See `composed_epsilon`.
      rounds: How many, 0 or more.
      cohort: Clients in a round.
      population: All clients.
      delta: In (0, 1).

    Raises:
      ValueError: If a number is out of its range.
    """
    _check(noise_multiplier, rounds, delta)
    if not 1 <= cohort <= population:
        raise ValueError(
            f"A cohort is of 1 to {population} clients, the population; found {cohort}."
        )
    without = composed_epsilon(noise_multiplier, rounds, delta)
    if cohort == population or not noise_multiplier:
        return without
    event = dp_accounting.SampledWithoutReplacementDpEvent(
        population, cohort, _gaussian(noise_multiplier)
    )
    return min(without, _epsilon(event, rounds, delta))


def _gaussian(noise_multiplier: float) -> dp_accounting.DpEvent:
    return dp_accounting.GaussianDpEvent(noise_multiplier / 2)  # See above.


@functools.cache  # Seconds, and asked for of each method.
def _epsilon(event: dp_accounting.DpEvent, times: int, delta: float) -> float:
    accountant = rdp.RdpAccountant(neighboring_relation=_REPLACE_ONE)
    if times:
        accountant.compose(event, times)
    return float(accountant.get_epsilon(delta))


def _check(noise_multiplier: float, times: int, delta: float) -> None:
    if not 0 <= noise_multiplier < math.inf:
        raise ValueError(f"A noise multiplier is not negative, found {noise_multiplier}.")
    if times < 0:
        raise ValueError(f"Numbers of rounds are not negative, found {times}.")
    if not 0 < delta < 1:
        raise ValueError(f"delta must lie between 0 and 1, found {delta}.")
