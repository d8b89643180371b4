"""PerMFL's Table 1 (2024), on the clients of pFedMe: logistic regression on two classes each."""

from collections.abc import Callable

import experiments.study as s

_DATA = {"MNIST": "mnist", "FMNIST": "fashion_mnist"}
_METHODS = {
    "FedAvg": {"method": "fed_avg"},
    "Per-FedAvg": {"method": "per_fed_avg"},
    "pFedMe (personal)": {"method": "p_fed_me"},
}
_PRINTED = {
    "FedAvg": "FedAvg 84.87 79.80",
    "Per-FedAvg": "Per-FedAvg 94.81 94.75",
    "pFedMe (personal)": "pFedMe (personal) 88.89 91.32",
}
# Not printed.
_RATES = ("0.005", "0.02", "0.1")
_TRAINING = {
    "partition": "p_fed_me_classes",
    "num_clients": 40,
    "merge_test": True,
    "local_test_fraction": 0.25,
    "model": "logistic",
    "initialization": "fan_in",
    "batch_size": 124,
    "local_steps": 20,
    "rounds": 400,
    "eval_every": 5,
}
_SMOKE = {"dataset": "digits", "num_clients": 10, "rounds": 2, "eval_every": 1}
_SMOKE |= {"partition": "niid_bench_classes"}  # Its classes have 180 examples each.
_ACCURACY = "local_test_accuracy_weighted_mean"


def _cells(data: dict[str, dict]) -> tuple[s.Cell, ...]:
    rates = {rate: {"client_learning_rate": rate} for rate in _RATES}
    name = "{data}/{method}/{rate}"
    return s.cells(name, _TRAINING, method=_METHODS, rate=rates, data=data)


def _best(cell: str) -> s.Measure:
    return s.of_curve(cell, _ACCURACY, lambda _, values: max(values))


def _last(cell: str) -> s.Measure:
    return s.metric(cell, _ACCURACY)


def _table(title: str, of: Callable[[str], s.Measure], *, compare: bool) -> s.Table:
    def measure(method: str, data: str) -> s.Measure:
        return s.combined(max, *(of(f"{data}/{method}/{rate}") for rate in _RATES))

    return s.table(title, [*_METHODS], [*_DATA], measure, compare=compare)


EXPERIMENT = s.Experiment(
    "boards.p_fed_me",
    "PerMFL: accuracy of logistic regression with two classes per client",
    scales={
        "smoke": s.Scale(_cells(dict.fromkeys(_DATA, _SMOKE)), 1, "Only to see that it runs."),
        "paper": s.Scale(
            _cells({name: {"dataset": own} for name, own in _DATA.items()}),
            3,
            "The printed settings; the best of three learning rates, by test data.",
        ),
    },
    tables=[
        _table("Best round, chosen by test data, as printed", _best, compare=True),
        _table("Last round", _last, compare=False),
    ],
    printed=[
        value
        for row, quote in _PRINTED.items()
        for value in s.printed(row, [*_DATA], quote, "PerMFL, Table 1")
    ],
)
