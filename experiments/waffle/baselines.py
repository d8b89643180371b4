"""Which inputs and momentum, which the paper does not print, give FedAvg's printed accuracies."""

from typing import Any

import experiments.study as s
from experiments.waffle import settings, table4
from experiments.waffle.settings import ACCURACY, FED_AVG, FED_PROX, MAJORITY, MINORITY, PAPER

# Flags over those of Table 1; None takes the flag away.
_PIPELINES = {
    inputs + (f", momentum {momentum}" if momentum else ""): flags | {"client_momentum": momentum}
    for inputs, flags in {"raw inputs": {}, "standardised inputs": {"standardize": True}}.items()
    for momentum in (None, 0.5, 0.9)
}
_UNI, _MULTI = f"MNIST/unimodal/{FED_AVG}", f"MNIST/multimodal/{FED_AVG}"
_RATES = {rate: {"client_learning_rate": rate, "local_epochs": 10} for rate in ("0.02", "0.04")}
_PROX = {FED_PROX: settings.METHODS[FED_PROX] | {"proximal_strength": 0.01}}
# Where it is printed -> the cell, what is measured there, the printed value and its +-. Tables 4
# and 5 have none, and take that of Table 1.
_PRINTED = {
    "Table 1, unimodal": (_UNI + "/{}", ACCURACY, 94.46, 0.84),
    "Table 1, multimodal": (_MULTI + "/{}", ACCURACY, 91.57, 1.42),
    "Table 2, majority": (_MULTI + "/{}", MAJORITY, 96.63, 0.70),
    "Table 2, minority": (_MULTI + "/{}", MINORITY, 67.40, 11.26),
    "Table 5": (_MULTI + "/{}, E = 10, rate 0.02", ACCURACY, 88.70, 1.42),
    "Table 4, rate 0.02": (_UNI + "/{}, E = 10, rate 0.02", ACCURACY, 92.95, 0.84),
    "Table 4, rate 0.04": (_UNI + "/{}, E = 10, rate 0.04", ACCURACY, 92.95, 0.84),
}
_PLACES = [*_PRINTED]


def _cells(of: settings.Size, name: str = "/{other}", **more: Any) -> tuple[s.Cell, ...]:
    both = ["MNIST/unimodal", "MNIST/multimodal"]
    return settings.cells(of, both, [FED_AVG], name, **more, other=_PIPELINES)


def _accuracy(pipeline: str, place: str) -> s.Measure:
    cell, column, *_ = _PRINTED[place]
    return s.metric(cell.format(pipeline), column)


def _table(title: str, places: list[str]) -> s.Table:
    columns = {f"{place}: {_PRINTED[place][2]} ± {_PRINTED[place][3]}": place for place in places}
    return s.table(title, [*_PIPELINES], columns, _accuracy)


EXPERIMENT = s.Experiment(
    "waffle.baselines",
    "Not in the paper: what FedAvg on MNIST was run with",
    scales=settings.scales(
        _cells(settings.SMOKE),
        s.Scale(_cells(PAPER), 3, "The paper's settings, without Tables 4 and 5."),
        _cells(PAPER)
        + _cells(table4.SIZE, "/{other}, E = 10, rate {rate}", rate=_RATES)
        + settings.cells(PAPER, ["MNIST/unimodal"], [], "/{other}", method=_PROX, other=_PIPELINES),
    ),
    tables=[
        _table("FedAvg, Tables 1 and 2", _PLACES[:4]),
        _table("FedAvg, Tables 4 and 5", _PLACES[4:]),
        s.table(
            "FedProx with mu = 0.01, unimodal",
            [*_PIPELINES],
            {"Last round": ACCURACY},
            lambda pipeline, of: s.metric(f"MNIST/unimodal/{FED_PROX}/{pipeline}", of),
        ),
    ],
)
