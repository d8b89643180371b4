"""What others' defaults and habits add to a method's gain: switches "as released elsewhere".

Some suites release Ditto and FedProx with a proximal weight of 0, report the best round on test
data, and compare with FedAvg that nobody fine-tuned. Each of these is set here by itself, with
the networks, data and training of our own board at one learning rate.
"""

import experiments.study as s
from experiments.boards.fair import SETTINGS

_SETTINGS = ("FMNIST, 2 classes a client, 20 clients", "FMNIST, Dirichlet .1, 20 clients")
_AVG, _TUNED, _DITTO, _PROX = "FedAvg", "fine-tuned FedAvg", "Ditto", "FedProx"
_ZERO = ", weight 0"
_METHODS = {
    _AVG: {"method": "fed_avg"},
    _TUNED: {"method": "fed_avg_ft"},
    _DITTO: {"method": "ditto"},
    _DITTO + _ZERO: {"method": "ditto", "proximal_strength": 0},
    _PROX: {"method": "fed_prox"},
    _PROX + _ZERO: {"method": "fed_prox", "proximal_strength": 0},
}
_TRAINING = {"client_learning_rate": 0.1, "batch_size": 100, "local_epochs": 1, "num_clients": 20}
_SMOKE = {"dataset": "digits", "num_clients": 5, "rounds": 2, "partition": "iid"}
_ACCURACY = "local_test_accuracy_mean"


def _cells(smoke: bool = False) -> tuple[s.Cell, ...]:
    own = {x: {**SETTINGS[x], **_TRAINING, "eval_every": 1} for x in _SETTINGS}
    if smoke:
        own = dict.fromkeys(_SETTINGS, _TRAINING | _SMOKE)
    return s.cells("{setting}/{method}", {}, setting=own, method=_METHODS)


def _last(method: str, setting: str) -> s.Measure:
    return s.metric(f"{setting}/{method}", _ACCURACY)


def _by_best_round(method: str, setting: str) -> s.Measure:
    return s.best_round(f"{setting}/{method}", _ACCURACY) - _last(method, setting)


def _gap(setting: str, one: str, other: str) -> s.Measure:
    return _last(one, setting) - _last(other, setting)


def _effect(row: str, setting: str) -> s.Measure:
    kind, *methods = _EFFECTS[row]
    return _by_best_round(*methods, setting) if kind == "best" else _gap(setting, *methods)


# Row -> what it is, and of which methods.
_EFFECTS = {
    **{f"{m}: best round on test data instead of the last": ("best", m) for m in _METHODS},
    "Ditto: weight 0 instead of 1": ("gap", _DITTO + _ZERO, _DITTO),
    "FedProx: weight 0 instead of 1": ("gap", _PROX + _ZERO, _PROX),
    "Ditto's gain over FedAvg": ("gap", _DITTO, _AVG),
    "of it, what fine-tuning alone gains": ("gap", _TUNED, _AVG),
    "of it, Ditto above fine-tuned FedAvg": ("gap", _DITTO, _TUNED),
}

EXPERIMENT = s.Experiment(
    "boards.as_released",
    "What others' defaults and habits add",
    scales={
        "smoke": s.Scale(_cells(smoke=True), 1, "Only to see that it runs: digits."),
        "paper": s.Scale(_cells(), 5, "50 rounds, 5 seeds, rate 0.1 for all."),
    },
    tables=[
        s.table("Accuracy after the last round", [*_METHODS], [*_SETTINGS], _last),
        s.table("Effects in points, paired by seed", [*_EFFECTS], [*_SETTINGS], _effect),
    ],
)
