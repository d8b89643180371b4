"""From a config to how updates are aggregated, and what privacy that promises."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from experiments.run.config import RunConfig
from tff_het.evaluation import privacy
from tff_het.learning import aggregators
from tff_het.learning.composer import AggregationFactory
from tff_het.learning.process import FederatedProcess

if TYPE_CHECKING:
    from experiments.run.setup import Setup

_DELTA = 1e-5
_THRESHOLD = 20_000


def factory(made: "Setup", taken: Mapping[str, Sequence[str]]) -> AggregationFactory | None:
    """Returns what aggregates updates, or None for the methods' own means.

    Args:
      made: What is trained on.
      taken: The options that each method takes.

    Raises:
      ValueError: If a method has no mean.
    """
    config = made.config
    name = config.training.aggregator
    if name == "mean":
        return None
    if without := [method for method, options in taken.items() if "aggregator" not in options]:
        raise ValueError(
            f"--aggregator={name} takes the place of a mean of clients' updates, and there is none "
            f"in {', '.join(without)}: leave it out of --method. (Methods with a mean take another "
            "one by their parameter aggregator.)"
        )
    if name == "robust":
        return aggregators.robust()
    if name == "compressed":
        bits = config.training.quantization_bits
        return aggregators.compressed(8 if bits is None else bits, _threshold(config))
    noise, clip = config.training.noise_multiplier, config.training.update_clip_norm
    assert noise is not None and clip is not None
    return aggregators.private(
        noise,
        clip,
        len(made.schedule(_rounds_before(made))),
        seed=made.settings.seed,
        rounds_before=_rounds_before(made),
    )


def check(config: RunConfig, processes: Mapping[str, FederatedProcess]) -> None:
    """Refuses models with which an aggregator makes no sense.

    Raises:
      ValueError: If none of a model's variables would be compressed, or noise in moving statistics
        would make variances negative.
    """
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


def promise(made: "Setup", rounds: int) -> dict[str, Any]:
    """Returns what `summary.json` says of privacy after this many rounds; nothing but for dp.

    `dp_epsilon` is null where it is infinite. Rounds before a start are not counted.
    """
    config = made.config
    if config.training.aggregator != "dp":
        return {}
    noise, clients = config.training.noise_multiplier, len(made.population)
    assert noise is not None
    if config.run.sampling == "in_turn":
        first = _rounds_before(made)
        turns = Counter(c for r in range(first, first + rounds) for c in made.schedule(r))
        times = max(turns.values(), default=0)
        epsilon = privacy.composed_epsilon(noise, times, _delta(config))
        bound = f"RDP, replace one client, each in at most {times} rounds"
    else:
        cohort = len(made.schedule(_rounds_before(made)))
        epsilon = privacy.sampled_epsilon(noise, rounds, cohort, clients, _delta(config))
        bound = f"RDP, replace one client, {rounds} rounds of {cohort} of {clients} clients"
        bound += " without replacement" if cohort < clients else ", no amplification by sampling"
    return {
        "dp_epsilon": epsilon if math.isfinite(epsilon) else None,
        "dp_delta": _delta(config),
        "dp_bound": bound,
    }


def describe(made: "Setup") -> str:
    """Returns in a sentence what privacy the rounds asked for promise; empty where none is."""
    found = promise(made, made.settings.rounds)
    if not found:
        return ""
    epsilon = found["dp_epsilon"]
    text = "infinite" if epsilon is None else f"{epsilon:.4g}"
    text = f"dp: epsilon {text} at delta {found['dp_delta']:g} ({found['dp_bound']})"
    if made.start is not None:
        text += "; the run that it starts from is not counted"
    return f"{text}. Every client counts the same; training metrics are sent without noise."


def _delta(config: RunConfig) -> float:
    delta = config.training.delta
    return _DELTA if delta is None else delta


def _threshold(config: RunConfig) -> int:
    threshold = config.training.quantization_threshold
    return _THRESHOLD if threshold is None else threshold


def _rounds_before(made: "Setup") -> int:
    return 0 if made.start is None else made.start.rounds
