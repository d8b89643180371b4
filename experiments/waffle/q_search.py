"""Searches q-FFL's exponent q on validation examples, as WAFFLe's paper does."""

from collections.abc import Iterable

import experiments.study as s
from experiments.waffle import settings

_VALUES = {f"q = {value}": value for value in ("0.001", "0.005", "0.01", "0.1", "1", "3", "5")}
_BEST, *_OTHERS = _VALUES
_MNIST = "MNIST/unimodal"
# Where q is searched, as it is called, and the partition; scale `quick` has the first one alone.
_WHERE = {of.replace("/", ", "): of for of in settings.PAPER}


def _cells(size: settings.Size, of: Iterable[str]) -> tuple[s.Cell, ...]:
    flags = {value: {"q": value, "validation_fraction": 0.1} for value in _VALUES.values()}
    return settings.cells(size, of, [settings.Q_FFL], "/q={value}", value=flags)


def _accuracy(value: str, of: str) -> s.Measure:
    return s.metric(f"{of}/{settings.Q_FFL}/q={_VALUES[value]}", "local_validation_accuracy_mean")


def _claim(where: str, of: str) -> s.Claim:
    text = f"({where}) q = 0.001 is the best of the values searched."
    return s.better(text, lambda q: _accuracy(q, of), _BEST, _OTHERS, by="validation accuracy")


_MEASURED = "accuracy on validation examples"
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
        s.table(f"{where}: {_MEASURED}", [*_VALUES], {"Validation accuracy": of}, _accuracy)
        for where, of in _WHERE.items()
    ],
    claims=[_claim(*of) for of in _WHERE.items()],
)
