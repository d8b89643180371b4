"""What others' defaults and habits add to a method's gain.

PFLlib releases Ditto and FedProx with a proximal weight (`--mu`) of 0, and many suites report the
best round on test data and compare with FedAvg that nobody fine-tuned. Each of these is looked at
by itself: the networks and clients of our own board, no examples held out, nothing tuned. FedProx
with weight 0 is FedAvg.
"""

from typing import Any

import experiments.study as s
from experiments.boards.fair import SETTINGS
from experiments.boards.leaking import best_and_last

_SETTINGS = ("FMNIST, at most 2 classes a client, 20 clients", "FMNIST, Dirichlet .1, 20 clients")
_AVG, _DITTO, _PROX = "FedAvg", "Ditto", "FedProx"
_ALONE = "Ditto, weight 0 (local training alone)"
_FT_1, _FT_5 = "fine-tuned FedAvg, 1 epoch", "fine-tuned FedAvg, 5 epochs"
_METHODS: dict[str, dict[str, Any]] = {
    _AVG: {"method": "fed_avg"},
    _FT_1: {"method": "fed_avg_ft", "fine_tuning_epochs": 1},
    _FT_5: {"method": "fed_avg_ft", "fine_tuning_epochs": 5},
    _DITTO: {"method": "ditto", "proximal_strength": 1},
    _ALONE: {"method": "ditto", "proximal_strength": 0},
    _PROX: {"method": "fed_prox", "proximal_strength": 1},
}
# Row -> whose accuracy is compared with whose.
_GAPS = {
    "Ditto above FedAvg": (_DITTO, _AVG),
    "Fine-tuned FedAvg (1 epoch) above FedAvg": (_FT_1, _AVG),
    "Fine-tuned FedAvg (5 epochs) above FedAvg": (_FT_5, _AVG),
    "Ditto above fine-tuned FedAvg (5 epochs)": (_DITTO, _FT_5),
    "Local training above fine-tuned FedAvg (5 epochs)": (_ALONE, _FT_5),
    "Ditto with weight 0 above weight 1": (_ALONE, _DITTO),
    "FedProx with weight 0 above weight 1": (_AVG, _PROX),
}
# Of 120 clients, as on our board, the first 20 train.
_TRAINING = {"client_learning_rate": 0.1, "batch_size": 100, "local_epochs": 1, "num_clients": 120}
_SMOKE = {"dataset": "digits", "num_clients": 40, "rounds": 2, "partition": "iid"}


def _cells(is_smoke: bool = False) -> list[s.Cell]:
    found = []
    for setting in _SETTINGS:
        flags = {**SETTINGS[setting], **_TRAINING, "eval_every": 1}
        if is_smoke:
            flags = {**_TRAINING, **_SMOKE}
        for row, method in _METHODS.items():
            own: dict = {"flags": {**flags, **method}, "clients": 20, "scales_with": "flags"}
            found.append(s.call(f"{setting}/{row}", best_and_last, flags["dataset"], **own))
    return found


def _last(method: str, setting: str) -> s.Measure:
    return s.metric(f"{setting}/{method}", "last")


def _best(method: str, setting: str) -> s.Measure:
    return s.metric(f"{setting}/{method}", "best")


def _gap(row: str, setting: str) -> s.Measure:
    one, other = _GAPS[row]
    return _last(one, setting) - _last(other, setting)


def _gap_by_best(row: str, setting: str) -> s.Measure:
    one, other = _GAPS[row]
    return _best(one, setting) - _best(other, setting)


def _added(method: str, setting: str) -> s.Measure:
    return _best(method, setting) - _last(method, setting)


EXPERIMENT = s.Experiment(
    "boards.as_released",
    "What others' defaults and habits add",
    scales={
        "smoke": s.Scale(_cells(is_smoke=True), 1, "Only to see that it runs: digits."),
        "paper": s.Scale(_cells(), 5, "50 rounds, 5 seeds, rate 0.1 for all."),
    },
    tables=[
        s.table("Accuracy after the last round, %", [*_METHODS], [*_SETTINGS], _last),
        s.table("Differences after the last round, in points", [*_GAPS], [*_SETTINGS], _gap),
        s.table(
            "The same, each method in its best round on test data, in points",
            [*_GAPS],
            [*_SETTINGS],
            _gap_by_best,
        ),
        s.table(
            "What the best round on test data adds to a method's accuracy, in points",
            [*_METHODS],
            [*_SETTINGS],
            _added,
        ),
    ],
)
