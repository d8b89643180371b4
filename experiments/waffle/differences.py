"""Ablation of the settings that Table 1 depends on and the paper does not print."""

import experiments.study as s
from experiments.waffle.settings import ACCURACY, FED_AVG, PAPER, SMOKE, WAFFLE, Size, cells, scales

_AS_TAKEN = "as in Table 1"
# What is different -> flags, over those of Table 1; None takes the flag away.
_OTHERS = {
    _AS_TAKEN: {},
    "with biases": {"bias": True},
    "PyTorch's initial weights": {"initialization": "fan_in"},
    "both, PyTorch's default layers": {"bias": True, "initialization": "fan_in"},
    "inputs of mean 0 and variance 1": {"standardize": True},
    "a tenth is tested": {"local_test_fraction": 0.1},
    "tested on the official test set's shards": {"local_test_fraction": None},
    "shards of the sorted set, some of two classes": {"single_class": False},
}
_COLUMNS = {
    "Last round": s.metric,
    "Mean of the last ten": s.last_rounds,
    "Best round, chosen by test data": s.best_round,
}


def _cells(size: Size, method: str, seeds: int | None = None) -> tuple[s.Cell, ...]:
    return cells(size, ["MNIST/unimodal"], [method], "/{other}", other=_OTHERS, num_seeds=seeds)


# By the spread of 2 seeds, as many as decide all claims, on FedAvg, but one that 118 would; and 2.
_MADE = _cells(PAPER, FED_AVG) + _cells(PAPER, WAFFLE, 2)
_QUICK = s.Scale(_MADE, 10, "The paper's settings, 10 seeds; WAFFLe 2.")


def _table(method: str) -> s.Table:
    rows = {other: f"MNIST/unimodal/{method}/{other}" for other in _OTHERS}
    title = f"{method} on MNIST, unimodal"
    return s.table(title, rows, _COLUMNS, lambda cell, of: of(cell, ACCURACY), compare=False)


def _claim(other: str) -> s.Claim:
    name = f"FedAvg, {other}: mean of the last ten, above that {_AS_TAKEN}"
    both = (f"MNIST/unimodal/FedAvg/{of}" for of in (other, _AS_TAKEN))
    ours, taken = (s.last_rounds(cell, ACCURACY) for cell in both)
    return s.claim(f"Ours: FedAvg is more accurate with this: {other}", {name: ours - taken})


EXPERIMENT = s.Experiment(
    "waffle.differences",
    "Not in the paper: which unprinted settings matter for accuracy",
    scales=scales(_cells(SMOKE, FED_AVG), _QUICK, _MADE),
    tables=[_table(FED_AVG), _table(WAFFLE)],
    claims=[_claim(other) for other in _OTHERS if other != _AS_TAKEN],
)
