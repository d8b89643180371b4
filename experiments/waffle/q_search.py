"""Searches q-FFL's exponent q on validation examples, as WAFFLe's paper does."""

from collections.abc import Iterable, Sequence

import experiments.study as s
from experiments.waffle import settings

_MNIST = "MNIST/unimodal"


def search(
    name: str,
    title: str,
    method: str,
    flag: str,
    values: Sequence[str],
    few: Sequence[str],
    claim: str,
) -> s.Experiment:
    """Returns a search over a flag; the claim is that the first of the few beats the last."""

    def cells(size: settings.Size, of: Iterable[str], searched: Iterable[str]):
        flags = {value: {flag: value, "validation_fraction": 0.1} for value in searched}
        return settings.cells(size, of, [method], f"/{flag}={{value}}", value=flags)

    def accuracy(value: str, of: str = _MNIST) -> s.Measure:
        return s.metric(f"{of}/{method}/{flag}={value}", "local_validation_accuracy_mean")

    note = f"Unimodal MNIST, {len(few)} of {len(values)} values, 30 rounds instead of 100, 2 seeds."
    rows = {f"{flag} = {value}": value for value in values}
    title_of = "{}: accuracy on validation examples".format
    best, *_, worst = few
    gain = f"validation accuracy of {flag} = {best} - {flag} = {worst}"
    return s.Experiment(
        f"waffle.{name}",
        title,
        scales=settings.scales(
            cells(settings.SMOKE, [_MNIST], values),
            s.Scale(cells(settings.SHORT, [_MNIST], few), 2, note),
            cells(settings.PAPER, settings.PAPER, values),
            "The paper's settings, all values, 5 seeds.",
        ),
        tables=[
            s.table(title_of(of.replace("/", ", ")), rows, {"Validation accuracy": of}, accuracy)
            for of in settings.PAPER
        ],
        claims=[s.claim(claim, {gain: accuracy(best) - accuracy(worst)})],
    )


EXPERIMENT = search(
    "q_search",
    "Section 4.1: the search for q",
    settings.Q_FFL,
    "q",
    ("0.001", "0.005", "0.01", "0.1", "1", "3", "5"),
    ("0.001", "0.1", "1", "5"),
    "(MNIST, unimodal) q = 0.001 is better than the largest q.",
)
