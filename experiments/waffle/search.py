"""A search over one number of a method, on validation examples."""

from collections.abc import Iterator, Sequence

from experiments.study.experiment import Cell, Claim, Experiment, Grid, Position, Scale
from experiments.study.measures import Measure, metric
from experiments.waffle import settings
from experiments.waffle.settings import CIFAR, FMNIST, MNIST, MULTIMODAL, UNIMODAL, Size, cell_name

_VALIDATION = "local_validation_accuracy_mean"
_DATA = (MNIST, FMNIST, CIFAR)


def _cell(data: str, setting: str, method: str, flag: str, value: str) -> str:
    return f"{cell_name(data, setting, method)}/{flag}={value}"


def accuracy(data: str, setting: str, method: str, flag: str, value: str) -> Measure:
    """The clients' mean accuracy on validation examples."""
    return metric(_cell(data, setting, method, flag, value), _VALIDATION)


def experiment(
    *,
    name: str,
    title: str,
    about: str,
    method: str,
    flag: str,
    values: Sequence[str],
    few: Sequence[str],
    claims: Sequence[Claim],
    note: str,
) -> Experiment:
    """The experiment of a search.

    Args:
      name: Its name.
      title: Its title.
      about: What is searched.
      method: A row of `settings.METHODS`.
      flag: The flag whose values are compared.
      values: All of them.
      few: Those that scale `quick` has.
      claims: What is claimed of them.
      note: What the page says of the search.
    """

    def cells(
        size: Size, data: Sequence[str], of: Sequence[str], searched: Sequence[str]
    ) -> Iterator[Cell]:
        for name in data:
            for setting in of:
                for value in searched:
                    flags = {flag: value, "validation_fraction": "0.1"}
                    work = size.training(name, setting, method, **flags)
                    yield Cell(_cell(name, setting, method, flag, value), work, size.seconds)

    both = (UNIMODAL, MULTIMODAL)
    return Experiment(
        paper="waffle",
        name=name,
        title=title,
        settings=f"{settings.SETTINGS} {about}",
        scales={
            "smoke": Scale(
                tuple(cells(settings.SMOKE, (MNIST,), (UNIMODAL,), values)),
                num_seeds=1,
                note=settings.SMOKE_NOTE,
            ),
            "quick": Scale(
                tuple(cells(settings.PAPER.changed(20.0, rounds="30"), (MNIST,), (UNIMODAL,), few)),
                num_seeds=2,
                note=f"MNIST without sub-populations alone, {len(few)} of {len(values)} values, 30 "
                "rounds instead of 100, 2 seeds.",
            ),
            "paper": Scale(
                tuple(cells(settings.PAPER, _DATA, both, values)),
                num_seeds=5,
                note="The paper's settings, all values, 5 seeds.",
            ),
        },
        grids=tuple(
            Grid(
                f"{data}, {setting}: accuracy on validation examples",
                tuple(
                    Position(
                        f"{flag} = {value}",
                        "Validation accuracy",
                        accuracy(data, setting, method, flag, value),
                    )
                    for value in values
                ),
            )
            for data in _DATA
            for setting in both
        ),
        claims=tuple(claims),
        notes=(*settings.NOTES, note),
    )
