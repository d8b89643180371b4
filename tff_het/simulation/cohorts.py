"""Schedules: functions from a round to its cohort.

A schedule is any `Callable[[int], Sequence[int]]` from a round, counted from 0,
to indices into the population.
"""

from collections.abc import Callable, Sequence

from tff_het import seeding

Schedule = Callable[[int], Sequence[int]]


def uniform(
    num_clients: int, clients_per_round: int, seed: int, purpose: int = seeding.COHORT
) -> Schedule:
    """Draws clients uniformly without replacement, again in every round.

    The draw depends on the seed and the round alone: all methods see the same
    cohorts, and so does a run that is resumed.

    Args:
      num_clients: Size of the population.
      clients_per_round: Size of a cohort.
      seed: The seed of the run.
      purpose: What they are drawn for; of `seeding`.

    Returns:
      A schedule that gives a round's clients in ascending order.

    Raises:
      ValueError: If a cohort is empty or larger than the population.
    """
    what = "clients_per_round" if purpose == seeding.COHORT else "evaluate_clients"
    _check_size(num_clients, clients_per_round, what)

    def schedule(round_num: int) -> list[int]:
        generator = seeding.generator(seed, purpose, round_num)
        drawn = generator.choice(num_clients, size=clients_per_round, replace=False)
        return sorted(int(client) for client in drawn)

    return schedule


def in_turn(num_clients: int, clients_per_round: int, first_round: int = 0) -> Schedule:
    """One client after another, round and round: sequential training, for cohorts of one.

    Args:
      num_clients: Size of the population.
      clients_per_round: Size of a cohort.
      first_round: The round in which the first clients train; where a run starts from another, the
        rounds before are counted.

    Returns:
      A schedule in which the next clients train in the next round, and the first ones follow on the
      last; a round's clients in ascending order.

    Raises:
      ValueError: If a cohort is empty or larger than the population.
    """
    _check_size(num_clients, clients_per_round)

    def schedule(round_num: int) -> list[int]:
        first = (round_num - first_round) * clients_per_round
        return sorted((first + place) % num_clients for place in range(clients_per_round))

    return schedule


def always(*clients: int) -> Schedule:
    """The same clients in every round, such as a pooled one for centralised training.

    Args:
      *clients: Indices into the population.

    Raises:
      ValueError: If there are none, or one is given twice.
    """
    if not clients or len(set(clients)) < len(clients):
        raise ValueError(f"One or more different clients are needed; found {clients}.")
    return lambda round_num: sorted(clients)


def together(*schedules: Schedule) -> Schedule:
    """All clients of several schedules: a draw of some beside one that is always there.

    Args:
      *schedules: One or more; a client that several of them name trains once.

    Raises:
      ValueError: If there are none.
    """
    if not schedules:
        raise ValueError("At least one schedule is needed; found 0.")

    def schedule(round_num: int) -> list[int]:
        return sorted({client for one in schedules for client in one(round_num)})

    return schedule


def _check_size(num_clients: int, clients_per_round: int, what: str = "clients_per_round") -> None:
    if not 1 <= clients_per_round <= num_clients:
        raise ValueError(
            f"{what} must lie between 1 and the number of clients, {num_clients}; found "
            f"{clients_per_round}."
        )
