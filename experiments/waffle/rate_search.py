"""What WAFFLe's posteriors learn by: rates and rules, and what becomes of the clients' masks."""

from typing import Any

import experiments.study as s
from experiments.waffle import settings, table1
from experiments.waffle.following import ACCURACY, MOVED, SATURATED, USED, follow

_RULES: dict[str, dict[str, Any]] = {
    "rate 1, as all others": {"posterior_rate": 1},
    "rate 480": {"posterior_rate": 480},
    "rate 10,000": {"posterior_rate": 10_000},
    "rate 100,000": {"posterior_rate": 100_000},
    "natural gradient, rate 480": {"posterior_rule": "natural", "posterior_rate": 480},
    "SGD on pi, rate 480": {"posterior_rule": "probabilities", "posterior_rate": 480},
}
_WRITTEN, *_, _TAKEN, _NATURAL, _ON_PI = _RULES
_ALPHAS = ("1.0", "0.4")
# How far apart WAFFLe's own repetitions are in print.
_PRINTED = settings.by_place(table1.EXPERIMENT.printed)["MNIST, WAFFLe", "Unimodal"]
_SPREAD = (_PRINTED.interval or 0.0) / 100


def _cell(rule: str, alpha: str = "1.0") -> str:
    return f"{rule}, alpha/F = {alpha}"


def _cells(size: settings.Size) -> list[s.Cell]:
    common = size["MNIST/unimodal"] | {"method": "waffle", "validation_fraction": 0.1}

    def cell(alpha: str, rule: str) -> s.Cell:
        flags = s.Training(common | {"alpha_over_factors": alpha} | _RULES[rule]).flags
        name, data = _cell(rule, alpha), flags["dataset"]
        return s.call(name, follow, data, scales_with="flags", flags=dict(flags))

    return [cell(alpha, rule) for alpha in _ALPHAS for rule in _RULES]


def _better(text: str, one: str, other: str, above: float = 0.0) -> s.Claim:
    gap = s.metric(_cell(one), ACCURACY) - s.metric(_cell(other), ACCURACY)
    return s.claim(text, {f"validation accuracy of {one} - {other}": gap}, above)


def _table(alpha: str) -> s.Table:
    title = f"MNIST, unimodal, alpha/F = {alpha}; masks over the last ten rounds"
    return s.table(title, {rule: _cell(rule, alpha) for rule in _RULES}, _COLUMNS, s.metric)


_COLUMNS = {
    "Validation accuracy": (ACCURACY, s.PERCENT),
    "Sum of pi": (USED, s.Form(digits=1)),
    "% of |logits| above 6": (SATURATED, s.PERCENT),
    "% of a mask that changes in a round": (MOVED, s.PERCENT),
}
_FREEZE = "Ours: At rate 100,000 masks freeze: less than 1 % changes in a round at the end"
_NO_SAY = (
    "Ours: At rate 100,000 the prior has no say: alpha/F = 0.4 and 1 use as many factors, to one"
)
_FULL, _LESS = (s.metric(_cell(_TAKEN, alpha), USED) for alpha in _ALPHAS)
_ALIKE = {"1 - difference in the sum of pi": 1 - abs(_FULL - _LESS)}
_FASTER = "(MNIST, unimodal) Posteriors that learn faster than everything else do better."
_PRINCIPLED = (
    "A principled rule does what rate 100,000 does, but for the spread printed with WAFFLe's "
    "accuracy"
)
_QUICK = s.Scale(_cells(settings.SHORT), 3, "30 rounds instead of 100, 3 seeds.")

EXPERIMENT = s.Experiment(
    "waffle.rate_search",
    "Not in the paper: the learning rate of the posteriors",
    scales=settings.scales(_cells(settings.SMOKE), _QUICK, _cells(settings.PAPER)),
    tables=[*map(_table, _ALPHAS)],
    claims=[
        _better(_FASTER, _TAKEN, _WRITTEN),
        _better(f"Ours: ({_NATURAL}) {_PRINCIPLED}", _NATURAL, _TAKEN, -_SPREAD),
        _better(f"Ours: ({_ON_PI}) {_PRINCIPLED}", _ON_PI, _TAKEN, -_SPREAD),
        s.claim(_FREEZE, {"1 % - share that changes": 0.01 - s.metric(_cell(_TAKEN), MOVED)}),
        s.claim(_NO_SAY, _ALIKE, form=s.Form()),
    ],
    figures=[
        s.curves(
            "How much of a client's mask changes in a round",
            "Nothing: ours.",
            {f"alpha/F = {a}": {r: (_cell(r, a), MOVED) for r in _RULES} for a in _ALPHAS},
            ylabel="factors switched on or off (%)",
        )
    ],
)
