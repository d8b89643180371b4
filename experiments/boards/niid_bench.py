"""Flower's `niid_bench` baseline: one model for all, where clients differ in their labels."""

from collections.abc import Callable, Mapping
from typing import Any

import experiments.study as s

_PLUGIN = "experiments.boards.theirs"
_METHODS: Mapping[str, dict[str, Any]] = {
    "FedAvg": {"method": "fed_avg", "client_momentum": 0.9},
    "SCAFFOLD": {
        "plugin": f"{_PLUGIN},experiments.boards.flower_scaffold",
        "method": "flower_scaffold",
        "client_momentum": 0.9,
    },
    # The printed value is the best of four strengths, up to 1, chosen by test data.
    "FedProx": {"method": "fed_prox", "client_momentum": 0.9, "proximal_strength": 0.01},
}
_DATA = {"MNIST": "mnist", "FMNIST": "fashion_mnist"}
_PARTITIONS: Mapping[str, dict[str, Any]] = {
    "Dirichlet .5": {"partition": "flower_dirichlet"},
    "2 classes a client": {"partition": "flower_classes"},
}
_COLUMNS = {f"{data}, {of}": f"{of}/{data}" for data in _DATA for of in _PARTITIONS}
_PRINTED = {
    "FedAvg": "FedAvg 98.89 ± 0.07 96.86 ± 0.30 88.09 ± 0.29 78.10 ± 2.51",
    "SCAFFOLD": "SCAFFOLD 99.07 ± 0.06 96.92 ± 0.52 88.44 ± 0.25 33.80 ± 41.22",
    "FedProx": "FedProx 99.02 ± 0.02 96.85 ± 0.15 88.15 ± 0.42 78.05 ± 0.99",
}
_TRAINING = {
    "plugin": _PLUGIN,
    "num_clients": 10,
    "model": "lenet5_84",
    "initialization": "fan_in",
    "batch_size": 64,
    "client_learning_rate": 0.01,
    "weight_decay": 1e-5,
    "rounds": 50,
    "local_epochs": 10,
}
_DIGITS = {"dataset": "digits", "model": "digits_cnn", "rounds": 2, "local_epochs": 1}
_ACCURACY = "global_test_accuracy"


def _cells(data: Mapping[str, dict[str, Any]]) -> tuple[s.Cell, ...]:
    name = "{partition}/{data}/{method}"
    axes: dict[str, Any] = {"partition": _PARTITIONS, "data": data}
    return s.cells(name, _TRAINING, **axes, method=_METHODS)


def _table(title: str, of: Callable[[str, str], s.Measure], *, compare: bool) -> s.Table:
    def measure(method: str, column: str) -> s.Measure:
        return of(f"{column}/{method}", _ACCURACY)

    return s.table(title, [*_PRINTED], _COLUMNS, measure, compare=compare, judged=_PRINTED)


EXPERIMENT = s.Experiment(
    "boards.niid_bench",
    "NIID-Bench: accuracy of the global model, as Flower's baseline prints it",
    scales={
        "smoke": s.Scale(_cells(dict.fromkeys(_DATA, _DIGITS)), 1, "Only to see that it runs."),
        "paper": s.Scale(
            _cells({name: {"dataset": own} for name, own in _DATA.items()}),
            3,
            "The baseline's settings and its one partition, without CIFAR-10. SCAFFOLD is the "
            "baseline's, with momentum and weights by examples. FedProx has strength 0.01; the "
            "baseline has the best of 0.001, 0.01, 0.1 and 1 on test data.",
        ),
    },
    tables=[
        _table("Best round on test data, as the baseline reports it", s.best_round, compare=True),
        _table("Last round", s.metric, compare=False),
    ],
    printed=s.printed(_PRINTED, [*_COLUMNS], "Flower's niid_bench"),
)
