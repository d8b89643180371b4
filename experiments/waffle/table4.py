"""Table 4 of WAFFLe: local epochs, without sub-populations; and what Table 5 shares with it."""

from collections.abc import Mapping

import experiments.study as s
from experiments.waffle import settings
from experiments.waffle.settings import DATA, FED_AVG, WAFFLE

_EPOCHS = {f"E={epochs}": {"local_epochs": epochs} for epochs in (10, 20, 30)}
SIZE = settings.size(0.1, {"rounds": 50, "client_learning_rate": 0.02, "eval_every": 5})


def experiment(
    number: int, setting: str, quotes: Mapping[str, tuple[str, str]], num_seeds: int = 5
) -> s.Experiment:
    """Returns Table 4 or 5, 'unimodal' or 'multimodal', with FedAvg's and WAFFLe's printed rows."""

    def cells(size: settings.Size, *data: str) -> tuple[s.Cell, ...]:
        partitions = [f"{name}/{setting}" for name in data]
        return settings.cells(size, partitions, [FED_AVG, WAFFLE], "/{epochs}", epochs=_EPOCHS)

    def accuracy(of: str, epochs: str) -> s.Measure:
        return s.metric(f"{of}/{epochs}", settings.ACCURACY)

    tables, claims, printed, place = [], [], list[s.Printed](), f"Table {number}"
    for data in DATA:
        rows = {f"{data}, {m}": f"{data}/{setting}/{m}" for m in (FED_AVG, WAFFLE)}
        tables.append(s.table(data, rows, list(_EPOCHS), accuracy))
        printed += s.printed(dict(zip(rows, quotes[data], strict=True)), [*_EPOCHS], place)
        fed_avg, waffle = ({e: accuracy(of, e) for e in _EPOCHS} for of in rows.values())
        gains = {f"accuracy of WAFFLe - FedAvg, {e}": waffle[e] - fed_avg[e] for e in _EPOCHS}
        higher = "WAFFLe's local test accuracy is higher than FedAvg's at every E."
        longer = f"({data}) WAFFLe improves with each increase of the local epochs."
        claims += [
            s.claim(f"Ours: ({data}, {setting}) {higher}", gains),
            s.rises(longer, waffle, by="accuracy of WAFFLe"),
        ]
    quick = s.Scale(cells(SIZE, "MNIST"), num_seeds, "MNIST alone, with the paper's settings.")
    return s.Experiment(
        f"waffle.table{number}",
        f"Table {number}: local epochs, {setting}",
        scales=settings.scales(cells(settings.SMOKE, *DATA), quick, cells(SIZE, *DATA)),
        tables=tables,
        printed=printed,
        claims=claims,
    )


EXPERIMENT = experiment(
    4,
    "unimodal",
    {
        "MNIST": ("FedAvg 92.95 93.36 93.55", "WAFFLe 95.10 96.32 96.43"),
        "FMNIST": ("FedAvg 85.32 85.13 85.14", "WAFFLe 87.52 87.07 89.25"),
        "CIFAR-10": ("FedAvg 47.40 47.60 55.39", "WAFFLe 64.18 71.92 74.50"),
    },
)
