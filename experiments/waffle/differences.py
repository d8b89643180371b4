"""Ablation of the settings that Table 1 depends on and the paper does not print."""

import experiments.study as s
from experiments.waffle import settings
from experiments.waffle.settings import ACCURACY, FED_AVG, WAFFLE

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
    "Last round": lambda cell: s.metric(cell, ACCURACY),
    "Mean of the last ten": lambda cell: s.last_rounds(cell, ACCURACY),
    "Best round, chosen by test data": lambda cell: s.of_curve(cell, ACCURACY, lambda _, y: max(y)),
}


def _cells(size: settings.Size, *methods: str) -> tuple[s.Cell, ...]:
    return settings.cells(size, ["MNIST/unimodal"], methods, "/{other}", other=_OTHERS)


_CELLS = _cells(settings.PAPER, FED_AVG, WAFFLE)


def _table(method: str) -> s.Table:
    cells = {other: f"MNIST/unimodal/{method}/{other}" for other in _OTHERS}
    title = f"{method} on MNIST, unimodal"
    return s.table(title, cells, _COLUMNS, lambda cell, of: of(cell), compare=False)


def _claim(other: str) -> s.Claim:
    ours, taken = (f"MNIST/unimodal/FedAvg/{of}" for of in (other, _AS_TAKEN))
    name = f"FedAvg, {other}: mean of the last ten, above that {_AS_TAKEN}"
    gain = s.last_rounds(ours, ACCURACY) - s.last_rounds(taken, ACCURACY)
    return s.claim(f"Ours: FedAvg is more accurate with this: {other}", {name: gain})


EXPERIMENT = s.Experiment(
    "waffle.differences",
    "Not in the paper: which unprinted settings matter for accuracy",
    scales={
        "smoke": s.Scale(_cells(settings.SMOKE, FED_AVG), 1, settings.SMOKE_NOTE),
        "quick": s.Scale(_CELLS, 2, "The paper's settings, 2 seeds."),
        "paper": s.Scale(_CELLS, 5, settings.PAPER_NOTE),
    },
    tables=[_table(FED_AVG), _table(WAFFLE)],
    claims=[_claim(other) for other in _OTHERS if other != _AS_TAKEN],
)

if __name__ == "__main__":
    s.main(EXPERIMENT, __doc__)
