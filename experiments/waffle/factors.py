"""Settings of Tables 6 and 7: accuracy over alpha and F, in one of two partitions."""

from collections.abc import Iterator, Sequence

from experiments.study.experiment import (
    Cell,
    Check,
    Claim,
    Experiment,
    Grid,
    Position,
    Printed,
    Scale,
)
from experiments.study.measures import Measure, metric
from experiments.waffle import settings
from experiments.waffle.settings import ACCURACY, MNIST, WAFFLE, Size, cell_name

ALPHAS = ("0.4", "0.6", "0.8", "1.0")  # alpha / F
FACTORS = ("80", "100", "150")


def _cell(setting: str, alpha: str, factors: str) -> str:
    return f"{cell_name(MNIST, setting, WAFFLE)}/F={factors}, alpha/F={alpha}"


def _cells(size: Size, setting: str, alphas: Sequence[str], factors: Sequence[str]):
    for alpha in alphas:
        for number in factors:
            work = size.training(
                MNIST, setting, WAFFLE, factors=f"dense_1={number}", alpha_over_factors=alpha
            )
            yield Cell(_cell(setting, alpha, number), work, 2 * size.seconds)


def _row(alpha: str) -> str:
    return f"alpha/F = {alpha}"


def _column(factors: str) -> str:
    return f"F={factors}"


def _claims(setting: str) -> Iterator[Claim]:
    def of(alpha: str, factors: str) -> Measure:
        return metric(_cell(setting, alpha, factors), ACCURACY)

    low, *_, high = ALPHAS
    few, *_, many = FACTORS
    yield Claim(
        "The higher alpha is, the better.",
        tuple(
            Check(
                f"accuracy at alpha/F = {high} - {low}, F={number}",
                of(high, number) - of(low, number),
            )
            for number in (few, many)
        ),
    )
    yield Claim(
        "The higher F is, the better.",
        tuple(
            Check(
                f"accuracy at F={many} - F={few}, alpha/F = {alpha}",
                of(alpha, many) - of(alpha, few),
            )
            for alpha in (low, high)
        ),
    )


def _printed(quotes: dict[str, str], place: str) -> Iterator[Printed]:
    for alpha, quote in quotes.items():
        columns = tuple(map(_column, FACTORS))
        yield from settings.printed(_row(alpha), columns, quote, f"{place}, {_row(alpha)}")


def experiment(number: int, setting: str, quotes: dict[str, str]) -> Experiment:
    """Table 6 or 7.

    Args:
      number: The table's.
      setting: `settings.UNIMODAL` or `MULTIMODAL`.
      quotes: The printed numbers by alpha / F.
    """
    quick = settings.PAPER.changed(20.0, rounds="30")
    positions = tuple(
        Position(_row(alpha), _column(factors), metric(_cell(setting, alpha, factors), ACCURACY))
        for alpha in ALPHAS
        for factors in FACTORS
    )
    corners = ((ALPHAS[0], ALPHAS[-1]), (FACTORS[0], FACTORS[-1]))
    return Experiment(
        paper="waffle",
        name=f"table{number}",
        title=f"Table {number}: alpha and the number of factors, {setting}",
        settings=f"{settings.SETTINGS} Here MNIST, with other alpha and F.",
        scales={
            "smoke": Scale(
                tuple(_cells(settings.SMOKE, setting, ALPHAS, FACTORS)),
                num_seeds=1,
                note=settings.SMOKE_NOTE,
            ),
            "quick": Scale(
                tuple(_cells(quick, setting, *corners)),
                num_seeds=2,
                note="The four corners of the table, 30 rounds instead of 100, 2 seeds.",
            ),
            "paper": Scale(
                tuple(_cells(settings.PAPER, setting, ALPHAS, FACTORS)),
                num_seeds=5,
                note="The paper's settings, 5 seeds.",
            ),
        },
        grids=(Grid(MNIST, positions),),
        printed=tuple(_printed(quotes, f"Table {number}")),
        claims=tuple(_claims(setting)),
        notes=(*settings.NOTES, settings.CONTRADICTION),
    )
