"""Times a round of each method, alternating in one program."""

import functools
import statistics
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from experiments.run import processes, setup
from tff_het.simulation.feeding import Prepared, cohort_inputs, run_round

_WARM_UP = 2  # Rounds.


def round_times(
    *,
    seed: int,
    folder: Path,
    data_dir: str | None,
    flags: Mapping[str, str],
    methods: Sequence[str],
    rounds: int,
) -> dict[str, float]:
    """Times rounds of several methods, after two to warm up: training and aggregation alone.

    Gives `<method>_seconds`, medians, and for all but the last `<method>_more`, by what share its
    rounds are longer than the last one's.
    """
    del folder
    made = setup.of_flags(flags, seed=seed, data_dir=data_dir, method=",".join(methods))
    built = processes.build(made)
    prepared = {name: Prepared(process, made.population) for name, process in built.items()}
    states = {name: process.initialize() for name, process in built.items()}
    seconds: dict[str, list[float]] = {name: [] for name in built}
    for round_num in range(_WARM_UP + rounds):
        for name, process in built.items():
            state_of = functools.partial(process.init_state, seed=seed, server_state=states[name])
            cohort = made.schedule(round_num)
            clients = cohort_inputs(cohort, round_num, seed, prepared[name], state_of)
            began = time.perf_counter()
            states[name] = run_round(process, states[name], clients).state
            seconds[name].append(time.perf_counter() - began)
    median = {name: statistics.median(taken[_WARM_UP:]) for name, taken in seconds.items()}
    *others, last = methods
    return {f"{name}_seconds": median[name] for name in methods} | {
        f"{name}_more": median[name] / median[last] - 1 for name in others
    }
