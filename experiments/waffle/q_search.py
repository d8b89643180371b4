"""Searches q-FFL's exponent q on validation examples, as WAFFLe's paper does."""

import experiments.study as s
from experiments.waffle import settings

_VALUES = {f"q = {value}": value for value in ("0.001", "0.005", "0.01", "0.1", "1", "3", "5")}
_BEST, *_OTHERS = _VALUES
_MNIST, _MEASURED = "MNIST/unimodal", "local_validation_accuracy_mean"
_CLAIM = "(MNIST, unimodal) q = 0.001 is the best of the values searched."


def _cells(size: settings.Size) -> tuple[s.Cell, ...]:
    flags = {value: {"q": value, "validation_fraction": 0.1} for value in _VALUES.values()}
    return settings.cells(size, [_MNIST], [settings.Q_FFL], "/q={value}", value=flags)


def _accuracy(value: str, of: str = _MEASURED) -> s.Measure:
    return s.metric(f"{_MNIST}/{settings.Q_FFL}/q={_VALUES[value]}", of)


_QUICK = s.Scale(_cells(settings.SHORT), 30, "30 rounds instead of 100, all values, 30 seeds.")

EXPERIMENT = s.Experiment(
    "waffle.q_search",
    "Section 4.1: the search for q",
    scales=settings.scales(_cells(settings.SMOKE), _QUICK, _cells(settings.PAPER)),
    tables=[s.table("MNIST, unimodal", [*_VALUES], {"Validation accuracy": _MEASURED}, _accuracy)],
    claims=[s.better(_CLAIM, _accuracy, _BEST, _OTHERS, by="validation accuracy")],
)
