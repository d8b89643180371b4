"""Searches q-FFL's exponent q on validation examples, as WAFFLe's paper does."""

from collections.abc import Iterable

import experiments.study as s
from experiments.waffle import settings

_VALUES = ("0.001", "0.005", "0.01", "0.1", "1", "3", "5")
_BEST, *_OTHERS = _VALUES
_MNIST = "MNIST/unimodal"


def _cells(size: settings.Size, of: Iterable[str]) -> tuple[s.Cell, ...]:
    flags = {value: {"q": value, "validation_fraction": 0.1} for value in _VALUES}
    return settings.cells(size, of, [settings.Q_FFL], "/q={value}", value=flags)


def _accuracy(value: str, of: str = _MNIST) -> s.Measure:
    return s.metric(f"{of}/{settings.Q_FFL}/q={value}", "local_validation_accuracy_mean")


_NOTE = "Unimodal MNIST, all values, 30 rounds instead of 100, 2 seeds."

EXPERIMENT = s.Experiment(
    "waffle.q_search",
    "Section 4.1: the search for q",
    scales=settings.scales(
        _cells(settings.SMOKE, [_MNIST]),
        s.Scale(_cells(settings.SHORT, [_MNIST]), 2, _NOTE),
        _cells(settings.PAPER, settings.PAPER),
        "The paper's settings, all values, 5 seeds.",
    ),
    tables=[
        s.table(
            f"{of.replace('/', ', ')}: accuracy on validation examples",
            {f"q = {value}": value for value in _VALUES},
            {"Validation accuracy": of},
            _accuracy,
        )
        for of in settings.PAPER
    ],
    claims=[
        s.better(
            "(MNIST, unimodal) q = 0.001 is the best of the values searched.",
            _accuracy,
            {f"q = {_BEST}": _BEST},
            {f"q = {value}": value for value in _OTHERS},
            by="validation accuracy",
        )
    ],
)
