"""Searches q-FFL's exponent q on validation examples, as WAFFLe's paper does."""

from collections.abc import Iterable, Sequence

import experiments.study as s
from experiments.waffle import settings

_MNIST = "MNIST/unimodal"
_ACCURACY = "local_validation_accuracy_mean"
_NOTE = "The paper's settings, all values, 5 seeds."


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

    def rows(of: str, searched: Iterable[str]) -> dict[str, str]:
        return {f"{flag} = {value}": f"{of}/{method}/{flag}={value}" for value in searched}

    note = f"Unimodal MNIST, {len(few)} of {len(values)} values, 30 rounds instead of 100, 2 seeds."
    columns = {"Validation accuracy": _ACCURACY}
    (best, first), *_, (worst, last) = rows(_MNIST, few).items()
    gain = s.metric(first, _ACCURACY) - s.metric(last, _ACCURACY)
    title_of = "{}: accuracy on validation examples".format
    return s.Experiment(
        f"waffle.{name}",
        title,
        scales={
            "smoke": s.Scale(cells(settings.SMOKE, [_MNIST], values), 1, settings.SMOKE_NOTE),
            "quick": s.Scale(cells(settings.SHORT, [_MNIST], few), 2, note),
            "paper": s.Scale(cells(settings.PAPER, settings.PAPER, values), 5, _NOTE),
        },
        tables=[
            s.table(title_of(of.replace("/", ", ")), rows(of, values), columns, s.metric)
            for of in settings.PAPER
        ],
        claims=[s.claim(claim, {f"validation accuracy of {best} - {worst}": gain})],
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

if __name__ == "__main__":
    s.main(EXPERIMENT, __doc__)
