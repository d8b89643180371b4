"""Table 4 of WAFFLe: local epochs, without sub-populations; and what Table 5 shares with it."""

from collections.abc import Iterable, Mapping

import experiments.study as s
from experiments.waffle import settings
from experiments.waffle.settings import DATA, FED_AVG, WAFFLE

_EPOCHS = {f"E={epochs}": {"local_epochs": epochs} for epochs in (10, 20, 30)}
_FEW, _, _MANY = _EPOCHS
_NOTE = "MNIST alone, with the paper's settings."
_SIZE = settings.size(0.1, {"rounds": 50, "client_learning_rate": 0.02, "eval_every": 5})


def experiment(number: int, setting: str, quotes: Mapping[str, str]) -> s.Experiment:
    """Returns Table 4 or 5, 'unimodal' or 'multimodal', with the printed rows."""

    def cells(size: settings.Size, data: Iterable[str] = DATA) -> tuple[s.Cell, ...]:
        partitions = [f"{name}/{setting}" for name in data]
        return settings.cells(size, partitions, [FED_AVG, WAFFLE], "/{epochs}", epochs=_EPOCHS)

    def accuracy(of: str, epochs: str) -> s.Measure:
        return s.metric(f"{of}/{epochs}", settings.ACCURACY)

    tables, claims = [], []
    for data in DATA:
        fed_avg, waffle = (f"{data}/{setting}/{method}" for method in (FED_AVG, WAFFLE))
        rows = {f"{data}, {FED_AVG}": fed_avg, f"{data}, {WAFFLE}": waffle}
        tables.append(s.table(data, rows, list(_EPOCHS), accuracy))
        name = "accuracy of WAFFLe - FedAvg, {}".format
        gains = {name(e): accuracy(waffle, e) - accuracy(fed_avg, e) for e in _EPOCHS}
        ends = {epochs: accuracy(waffle, epochs) for epochs in (_FEW, _MANY)}
        higher = f"({data}) WAFFLe's local test accuracy is higher than FedAvg's at every E."
        longer = f"({data}) WAFFLe improves with more local epochs."
        claims += [s.claim(higher, gains), s.rises(longer, ends, by="accuracy of WAFFLe")]
    return s.Experiment(
        f"waffle.table{number}",
        f"Table {number}: local epochs, {setting}",
        scales={
            "smoke": s.Scale(cells(settings.SMOKE), 1, settings.SMOKE_NOTE),
            "quick": s.Scale(cells(_SIZE, ["MNIST"]), 2, _NOTE),
            "paper": s.Scale(cells(_SIZE), 5, settings.PAPER_NOTE),
        },
        tables=tables,
        printed=settings.printed(quotes, list(_EPOCHS), f"Table {number}"),
        claims=claims,
    )


EXPERIMENT = experiment(
    4,
    "unimodal",
    {
        "MNIST, FedAvg": "FedAvg 92.95 93.36 93.55",
        "MNIST, WAFFLe": "WAFFLe 95.10 96.32 96.43",
        "FMNIST, FedAvg": "FedAvg 85.32 85.13 85.14",
        "FMNIST, WAFFLe": "WAFFLe 87.52 87.07 89.25",
        "CIFAR-10, FedAvg": "FedAvg 47.40 47.60 55.39",
        "CIFAR-10, WAFFLe": "WAFFLe 64.18 71.92 74.50",
    },
)

if __name__ == "__main__":
    s.main(EXPERIMENT, __doc__)
