"""From a config to how updates are aggregated, and what privacy that promises."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from experiments.run.config import RunConfig
from experiments.run.setup import Setup
from tff_het.evaluation import privacy
from tff_het.learning import aggregators
from tff_het.learning.composer import AggregationFactory
from tff_het.learning.process import FederatedProcess


def factory(made: Setup, taken: Mapping[str, Sequence[str]]) -> AggregationFactory | None:
    """Returns what aggregates updates, or None for the methods' own means.

    `taken` are the options that each method takes: those without a mean are refused.
    """
    training = made.config.training
    name = training.aggregator
    if name == "mean":
        return None
    if without := [method for method, options in taken.items() if "aggregator" not in options]:
        raise ValueError(
            f"--aggregator={name} takes the place of a mean of clients' updates, and there is none "
            f"in {', '.join(without)}: leave it out of --method."
        )
    if name == "robust":
        return aggregators.robust()
    if name == "compressed":
        return aggregators.compressed(training.quantization_bits or 8, _threshold(made.config))
    assert training.noise_multiplier is not None and training.update_clip_norm is not None
    return aggregators.private(
        training.noise_multiplier,
        training.update_clip_norm,
        len(made.schedule(made.rounds_before)),
        seed=made.settings.seed,
        rounds_before=made.rounds_before,
    )


def check(config: RunConfig, processes: Mapping[str, FederatedProcess]) -> None:
    """Raises ValueError if nothing would be compressed, or variances get noise."""
    name = config.training.aggregator
    for method, process in processes.items():
        sent = [spec for spec in process.model.specs if not spec.local]
        if name == "compressed" and all(spec.size <= _threshold(config) for spec in sent):
            raise ValueError(
                f"--aggregator=compressed leaves all that {method} sends as it is: no variable has "
                f"more than {_threshold(config)} numbers, the largest "
                f"{max(spec.size for spec in sent)}. Lower --quantization_threshold."
            )
        if name == "dp" and (moving := [spec.path for spec in sent if not spec.trainable]):
            raise ValueError(
                f"--aggregator=dp would add noise to the moving statistics that {method} averages "
                f"({', '.join(moving[:2])}, ...), and variances must stay positive: give "
                "--local_statistics, or a --model without batch normalisation."
            )


def promise(made: Setup, rounds: int) -> dict[str, Any]:
    """Returns what `summary.json` says of privacy after this many rounds; nothing but for dp.

    `dp_epsilon` is null where it is infinite. Rounds before a start are not counted.
    """
    training = made.config.training
    if training.aggregator != "dp":
        return {}
    noise, delta = training.noise_multiplier, training.delta or 1e-5
    assert noise is not None
    first = made.rounds_before
    if made.config.run.sampling == "in_turn":
        turns = Counter(c for r in range(first, first + rounds) for c in made.schedule(r))
        times = max(turns.values(), default=0)
        epsilon = privacy.composed_epsilon(noise, times, delta)
        bound = f"RDP, replace one client, each in at most {times} rounds"
    else:
        cohort, clients = len(made.schedule(first)), len(made.population)
        epsilon = privacy.sampled_epsilon(noise, rounds, cohort, clients, delta)
        bound = f"RDP, replace one client, {rounds} rounds of {cohort} of {clients} clients"
        bound += " without replacement" if cohort < clients else ", no amplification by sampling"
    finite = epsilon if math.isfinite(epsilon) else None
    return {"dp_epsilon": finite, "dp_delta": delta, "dp_bound": bound}


def describe(made: Setup) -> str:
    """Returns in a sentence what privacy the rounds asked for promise; empty where none is."""
    found = promise(made, made.settings.rounds)
    if not found:
        return ""
    epsilon = "infinite" if found["dp_epsilon"] is None else f"{found['dp_epsilon']:.4g}"
    text = f"dp: epsilon {epsilon} at delta {found['dp_delta']:g} ({found['dp_bound']})"
    if made.start is not None:
        text += "; the run that it starts from is not counted"
    return f"{text}. Every client counts the same; training metrics are sent without noise."


def _threshold(config: RunConfig) -> int:
    threshold = config.training.quantization_threshold
    return 20_000 if threshold is None else threshold
