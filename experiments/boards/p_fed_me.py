"""PerMFL's comparison (2024): logistic regression on clients of two classes, by pFedMe's code."""

from typing import Any

import experiments.study as s

_DATA = {"MNIST": "mnist", "FMNIST": "fashion_mnist"}
_METHODS = {"FedAvg": "fed_avg", "Per-FedAvg": "per_fed_avg", "pFedMe": "p_fed_me"}
_PRINTED = {
    "FedAvg": "FedAvg 84.87 79.80",
    "Per-FedAvg": "Per-FedAvg 94.81 94.75",
    "pFedMe": "pFedMe (personal) 88.89 91.32",
}
# Not printed.
_RATES = ("0.005", "0.02", "0.1")
_ROWS = {f"{m}, rate {rate}": (m, rate) for m in _METHODS for rate in _RATES}
_TRAINING = {
    "partition": "p_fed_me_classes",
    "num_clients": 40,
    "merge_test": True,
    "local_test_fraction": 0.25,
    "standardize": True,
    "model": "logistic",
    "initialization": "fan_in",
    "batch_size": 124,
    "local_steps": 20,
    "rounds": 400,
}
# A digit has 180 images.
_SMOKE = {"dataset": "digits", "num_clients": 10, "rounds": 2}
_ACCURACY = "local_test_accuracy_weighted_mean"


def _flags(method: str, rate: str) -> dict[str, Any]:
    # A step of Per-FedAvg's adaptation is as long as one of its training.
    own = {"adaptation_rate": rate} if method == "Per-FedAvg" else {}
    return {"method": _METHODS[method], "client_learning_rate": rate, **own}


def _cells(data: dict[str, dict[str, Any]]) -> tuple[s.Cell, ...]:
    rows = {row: _flags(*of) for row, of in _ROWS.items()}
    return s.cells("{data}/{row}", _TRAINING, row=rows, data=data)


def _best(row: str, data: str) -> s.Measure:
    return s.best_round(f"{data}/{row}", _ACCURACY)


def _last(row: str, data: str) -> s.Measure:
    return s.metric(f"{data}/{row}", _ACCURACY)


EXPERIMENT = s.Experiment(
    "boards.p_fed_me",
    "PerMFL: accuracy of logistic regression with two classes per client",
    scales={
        "smoke": s.Scale(_cells(dict.fromkeys(_DATA, _SMOKE)), 1, "Only to see that it runs."),
        "paper": s.Scale(
            _cells({name: {"dataset": own} for name, own in _DATA.items()}),
            3,
            "PerMFL's settings as its repository quotes them. Rates and the methods' own "
            "parameters are not printed: three rates, our defaults else. Inputs are standardised, "
            "not scaled to [-1, 1]. Per-FedAvg adapts on training examples and weights clients "
            "equally.",
        ),
    },
    tables=[
        s.table(
            "Best round on test data, as PerMFL reports it", [*_ROWS], [*_DATA], _best, judged=_ROWS
        ),
        s.table("Last round", [*_ROWS], [*_DATA], _last, compare=False),
    ],
    printed=[
        value
        for row, (method, _) in _ROWS.items()
        for value in s.printed(row, [*_DATA], _PRINTED[method], "as PerMFL's repository quotes it")
    ],
)
