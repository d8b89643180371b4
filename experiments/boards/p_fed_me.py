"""PerMFL's comparison (2024): logistic regression on clients of two classes, by pFedMe's code."""

import functools
from typing import Any

import experiments.study as s
from experiments.boards.leaking import best_and_last

_DATA = {"MNIST": "mnist", "FMNIST": "fashion_mnist"}
_METHODS = {"FedAvg": "fed_avg", "Per-FedAvg": "per_fed_avg", "pFedMe": "p_fed_me"}
_PRINTED = {
    "FedAvg": "FedAvg 84.87 79.80",
    "Per-FedAvg": "Per-FedAvg 94.81 94.75",
    "pFedMe": "pFedMe (personal) 88.89 91.32",
}
# Not printed.
_RATES = ("0.005", "0.02", "0.1")
_LEAKING = "Per-FedAvg, as released"
_OURS = (*_METHODS, _LEAKING, "pFedMe, as released")
_ROWS = {f"{method}, rate {rate}": (method, rate) for method in _OURS for rate in _RATES}
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


def _cells(data: dict[str, dict[str, Any]]) -> list[s.Cell]:
    found = []
    for name, own in data.items():
        for row, (method, rate) in _ROWS.items():
            flags = {**_TRAINING, **own, **_flags(method, rate)}
            if method == _LEAKING:
                data_set = own["dataset"]
                leaky: dict = {"flags": flags, "adapts_on_test": True}
                cell = f"{name}/{row}"
                found.append(s.call(cell, best_and_last, data_set, scales_with="flags", **leaky))
            else:
                found += s.cells(f"{name}/{row}", flags)
    return found


def _flags(method: str, rate: str) -> dict[str, Any]:
    known, _, released = method.partition(", ")
    flags: dict[str, Any] = {"method": _METHODS[known], "client_learning_rate": rate}
    if known == "Per-FedAvg":
        # A step of its adaptation is as long as one of its training; the released code takes two.
        flags |= {"adaptation_rate": rate, "adaptation_steps": 2 if released else 1}
    if known == "pFedMe" and released:
        flags |= {"predict_with": "u"}
    return flags


def _measured(row: str, data: str, *, best: bool) -> s.Measure:
    cell = f"{data}/{row}"
    if _ROWS[row][0] == _LEAKING:
        return s.metric(cell, "best" if best else "last")
    return s.best_round(cell, _ACCURACY) if best else s.metric(cell, _ACCURACY)


_best, _last = (functools.partial(_measured, best=best) for best in (True, False))


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
            "not scaled to [-1, 1]. 'As released': Per-FedAvg's clients take two steps on the "
            "labelled test examples, pFedMe's predict with their copy of the shared model, as the "
            "code that PerMFL compares with does; here clients count equally, there by examples.",
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
        for value in s.printed(
            row, [*_DATA], _PRINTED[method.partition(", ")[0]], "as PerMFL's repository quotes it"
        )
    ],
)
