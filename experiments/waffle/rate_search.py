"""What WAFFLe's posteriors learn by: rates and rules, and what becomes of the clients' masks."""

from typing import Any

import experiments.study as s
from experiments.waffle import settings
from experiments.waffle.following import ACCURACY, MOVED, SATURATED, USED, follow

_RULES: dict[str, dict[str, Any]] = {
    "rate 1, as written": {"posterior_rate": 1},
    "rate 480": {"posterior_rate": 480},
    "rate 10,000": {"posterior_rate": 10_000},
    "rate 100,000": {"posterior_rate": 100_000},
    "natural gradient, rate 480": {"posterior_rule": "natural", "posterior_rate": 480},
    "SGD on pi, rate 480": {"posterior_rule": "probabilities", "posterior_rate": 480},
}
_WRITTEN, *_, _TAKEN, _NATURAL, _ON_PI = _RULES
_ALPHAS = ("1.0", "0.4")
_SPREAD = 0.0031  # Printed with WAFFLe's accuracy in Table 1, MNIST, unimodal.


def _cell(rule: str, alpha: str = "1.0") -> str:
    return f"{rule}, alpha/F = {alpha}"


def _cells(size: settings.Size) -> list[s.Cell]:
    common = size["MNIST/unimodal"] | {"method": "waffle", "validation_fraction": 0.1}

    def cell(alpha: str, rule: str) -> s.Cell:
        flags = s.Training(common | {"alpha_over_factors": alpha} | _RULES[rule]).flags
        name, data = _cell(rule, alpha), flags["dataset"]
        return s.call(name, follow, data, scales_with="flags", flags=dict(flags))

    return [cell(alpha, rule) for alpha in _ALPHAS for rule in _RULES]


_COLUMNS = {
    "Validation accuracy": (ACCURACY, s.PERCENT),
    "Sum of pi": (USED, s.Form(digits=1)),
    "% of |logits| above 6": (SATURATED, s.PERCENT),
    "% of a mask that changes in a round": (MOVED, s.PERCENT),
}
_FASTER = "(MNIST, unimodal) Posteriors that learn faster than everything else do better."
_AS_WELL = "A principled rule does what rate 100,000 does, but for the printed spread"
_NOTE = "30 rounds instead of 100, 3 seeds."

EXPERIMENT = s.Experiment(
    "waffle.rate_search",
    "Not in the paper: the learning rate of the posteriors",
    scales=settings.scales(
        _cells(settings.SMOKE),
        s.Scale(_cells(settings.SHORT), 3, _NOTE),
        _cells(settings.PAPER),
    ),
    tables=[
        s.table(
            f"MNIST, unimodal, alpha/F = {alpha}; masks over the last ten rounds",
            {rule: _cell(rule, alpha) for rule in _RULES},
            _COLUMNS,
            s.metric,
        )
        for alpha in _ALPHAS
    ],
    claims=[
        s.better(
            text,
            lambda rule: s.metric(_cell(rule), ACCURACY),
            rule,
            other,
            by="validation accuracy",
            above=margin,
        )
        for text, rule, other, margin in (
            (_FASTER, _TAKEN, _WRITTEN, 0.0),
            (f"Ours: ({_NATURAL}) {_AS_WELL}", _NATURAL, _TAKEN, -_SPREAD),
            (f"Ours: ({_ON_PI}) {_AS_WELL}", _ON_PI, _TAKEN, -_SPREAD),
        )
    ],
)
