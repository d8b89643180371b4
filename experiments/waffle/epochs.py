"""Settings of Tables 4 and 5: accuracy over local epochs, in one of two partitions."""

from collections.abc import Iterator, Mapping

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
from experiments.waffle.settings import (
    ACCURACY,
    CIFAR,
    FED_AVG,
    FMNIST,
    MNIST,
    WAFFLE,
    Size,
    cell_name,
)

EPOCHS = ("10", "20", "30")
_METHODS = (FED_AVG, WAFFLE)
_DATA = (MNIST, FMNIST, CIFAR)
# FedAvg's seconds for MNIST at T = 50, for each local epoch.
_SECONDS_AN_EPOCH = 6.0


def _cell(data: str, setting: str, method: str, epochs: str) -> str:
    return f"{cell_name(data, setting, method)}/E={epochs}"


def _cells(size: Size, data: tuple[str, ...], setting: str, seconds: float) -> Iterator[Cell]:
    """`seconds` are those of a local epoch in all rounds."""
    for name in data:
        for method in _METHODS:
            for epochs in EPOCHS:
                work = size.training(name, setting, method, local_epochs=epochs)
                length = seconds * int(epochs) * (2 if method == WAFFLE else 1)
                yield Cell(_cell(name, setting, method, epochs), work, length)


def _row(data: str, method: str) -> str:
    return f"{data}, {method}"


def _column(epochs: str) -> str:
    return f"E={epochs}"


def _claims(setting: str) -> Iterator[Claim]:
    def of(data: str, method: str, epochs: str) -> Measure:
        return metric(_cell(data, setting, method, epochs), ACCURACY)

    for data in _DATA:
        yield Claim(
            f"({data}) WAFFLe's local test accuracy is higher than FedAvg's at every E.",
            tuple(
                Check(
                    f"accuracy of {WAFFLE} - {FED_AVG}, E={epochs}",
                    of(data, WAFFLE, epochs) - of(data, FED_AVG, epochs),
                )
                for epochs in EPOCHS
            ),
        )
        few, *_, many = EPOCHS
        yield Claim(
            f"({data}) WAFFLe improves with more local epochs.",
            (
                Check(
                    f"accuracy of {WAFFLE}, E={many} - E={few}",
                    of(data, WAFFLE, many) - of(data, WAFFLE, few),
                ),
            ),
        )


def _printed(quotes: Mapping[tuple[str, str], str], place: str) -> Iterator[Printed]:
    for (data, method), quote in quotes.items():
        columns = tuple(map(_column, EPOCHS))
        yield from settings.printed(_row(data, method), columns, quote, place)


def experiment(number: int, setting: str, quotes: Mapping[tuple[str, str], str]) -> Experiment:
    """Table 4 or 5.

    Args:
      number: The table's.
      setting: `settings.UNIMODAL` or `MULTIMODAL`.
      quotes: The printed numbers by data set and method.
    """
    paper = settings.PAPER.changed(60.0, rounds="50", client_learning_rate="0.02", eval_every="5")
    grids = tuple(
        Grid(
            data,
            tuple(
                Position(
                    _row(data, method),
                    _column(epochs),
                    metric(_cell(data, setting, method, epochs), ACCURACY),
                )
                for method in _METHODS
                for epochs in EPOCHS
            ),
        )
        for data in _DATA
    )
    return Experiment(
        paper="waffle",
        name=f"table{number}",
        title=f"Table {number}: local epochs, {setting}",
        settings=f"{settings.SETTINGS} Here T = 50 rounds with rate 0.02, and E = 10, 20 or 30.",
        scales={
            "smoke": Scale(
                tuple(_cells(settings.SMOKE, _DATA, setting, 0.4)),
                num_seeds=1,
                note=f"{settings.SMOKE_NOTE} Here of 10, 20 and 30 epochs.",
            ),
            "quick": Scale(
                tuple(_cells(paper, (MNIST,), setting, _SECONDS_AN_EPOCH)),
                num_seeds=2,
                note="MNIST alone, with the paper's settings, 2 seeds.",
            ),
            "paper": Scale(
                tuple(_cells(paper, _DATA, setting, _SECONDS_AN_EPOCH)),
                num_seeds=5,
                note="The paper's settings, 5 seeds.",
            ),
        },
        grids=grids,
        printed=tuple(_printed(quotes, f"Table {number}")),
        claims=tuple(_claims(setting)),
        notes=(
            *settings.NOTES,
            'The text reduces T to 50 and the rate to 0.02 "for all methods in multimodal '
            'non-i.i.d. scenario"; it can be read as said of Table 5 alone, or of its last words '
            "only. Here both tables have both.",
        ),
    )
