"""Which inputs and momentum, which the paper does not print, give FedAvg's printed accuracies."""

import experiments.study as s
from experiments.waffle import settings, table1, table2, table4, table5
from experiments.waffle.settings import ACCURACY, FED_AVG, FED_PROX, PAPER, SMOKE

# Flags over those of Table 1; None takes the flag away.
_PIPELINES = {
    inputs + (f", momentum {momentum}" if momentum else ""): flags | {"client_momentum": momentum}
    for inputs, flags in {"raw inputs": {}, "standardised inputs": {"standardize": True}}.items()
    for momentum in (None, 0.5, 0.9)
}
_UNI, _MULTI, _E10 = "MNIST/unimodal", "MNIST/multimodal", ", E = 10, rate {rate}"
_RATES = {rate: {"client_learning_rate": rate, "local_epochs": 10} for rate in ("0.02", "0.04")}
_PROX = {FED_PROX: settings.METHODS[FED_PROX] | {"proximal_strength": 0.01}}
_P1, _P2, _P4, _P5 = (
    {p.column: p for p in table.EXPERIMENT.printed if p.row == "MNIST, FedAvg"}
    for table in (table1, table2, table4, table5)
)
# Where it is printed -> the cell but for the pipeline, what it measures, value and spread. Tables 4
# and 5 have no spread, and take that of Table 1.
_PRINTED = {
    "Table 1, unimodal": (_UNI, "", ACCURACY, _P1["Unimodal"], _P1["Unimodal"]),
    "Table 1, multimodal": (_MULTI, "", ACCURACY, _P1["Multimodal"], _P1["Multimodal"]),
    "Table 2, majority": (_MULTI, "", settings.MAJORITY, _P2["Majority"], _P2["Majority"]),
    "Table 2, minority": (_MULTI, "", settings.MINORITY, _P2["Minority"], _P2["Minority"]),
    "Table 5": (_MULTI, _E10.format(rate="0.02"), ACCURACY, _P5["E=10"], _P1["Multimodal"]),
    **{
        f"Table 4, rate {r}": (_UNI, _E10.format(rate=r), ACCURACY, _P4["E=10"], _P1["Unimodal"])
        for r in _RATES
    },
}
_STANDARDISED = {pipeline: _PIPELINES[pipeline] for pipeline in ["standardised inputs"]}
_FOUR, (*_REST, _LOWER, _HIGHER) = [*_PRINTED][:4], [*_PRINTED][4:]
_JOINT = {
    "Tables 1 and 2": _FOUR,
    "Tables 1, 2, 4 and 5": [*_FOUR, *_REST, _LOWER],
    "Tables 1, 2, 4 (at rate 0.04) and 5": [*_FOUR, *_REST, _HIGHER],
}


def _cells(size: settings.Size) -> tuple[s.Cell, ...]:
    return settings.cells(size, [_UNI, _MULTI], [FED_AVG], "/{other}", other=_PIPELINES)


def _longer(of: str, *rates: str) -> tuple[s.Cell, ...]:
    more = {"other": _PIPELINES, "rate": {rate: _RATES[rate] for rate in rates}}
    return settings.cells(table4.SIZE, [of], [FED_AVG], "/{other}" + _E10, **more)


_ALL = (
    *_cells(PAPER),
    *_longer(_UNI, *_RATES),
    *_longer(_MULTI, "0.02"),
    *settings.cells(PAPER, [_UNI], [], "/{other}", method=_PROX, other=_PIPELINES),
    *settings.cells(PAPER, ["CIFAR-10/unimodal"], [FED_AVG], "/{other}", other=_STANDARDISED),
)
_OF_CIFAR = {pipeline: f"CIFAR-10/unimodal/{FED_AVG}/{pipeline}" for pipeline in _STANDARDISED}
_OF_PROX = {pipeline: f"{_UNI}/{FED_PROX}/{pipeline}" for pipeline in _PIPELINES}


def _accuracy(pipeline: str, place: str) -> s.Measure:
    of, more, column, *_ = _PRINTED[place]
    return s.metric(f"{of}/{FED_AVG}/{pipeline}{more}", column)


def _table(title: str, places: list[str]) -> s.Table:
    columns = {f"{p}: {v.value} ± {w.interval}": p for p in places for *_, v, w in [_PRINTED[p]]}
    return s.table(title, [*_PIPELINES], columns, _accuracy)


def _claim(pipeline: str, tables: str, places: list[str]) -> s.Claim:
    checks = {}
    for place in places:
        *_, value, spread = _PRINTED[place]
        off = _accuracy(pipeline, place) - value.value / 100
        checks[f"{place}: above {value.value} - {spread.interval}"] = off + spread.interval / 100
        checks[f"{place}: below {value.value} + {spread.interval}"] = spread.interval / 100 - off
    text = f"FedAvg's accuracies in {tables} come out within the printed spread"
    return s.claim(f"Ours: ({pipeline}) {text}", checks)


EXPERIMENT = s.Experiment(
    "waffle.baselines",
    "Not in the paper: what FedAvg on MNIST was run with",
    scales=settings.scales(_cells(SMOKE), s.Scale(_ALL, 3, "The paper's settings, 3 seeds."), _ALL),
    tables=[
        _table("FedAvg, Tables 1 and 2", _FOUR),
        _table("FedAvg, Tables 4 and 5", [*_REST, _LOWER, _HIGHER]),
        s.table("FedProx with mu = 0.01, unimodal", _OF_PROX, {"Last round": ACCURACY}, s.metric),
        s.table("FedAvg on CIFAR-10, unimodal", _OF_CIFAR, {"Last round": ACCURACY}, s.metric),
    ],
    claims=[_claim(pipeline, *of) for of in _JOINT.items() for pipeline in _PIPELINES],
)
