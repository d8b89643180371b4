"""Table 4 of LG-FedAvg: representations of census data that hide race and sex."""

from collections.abc import Mapping
from typing import Any

import experiments.study as s
from experiments.lg_fedavg import fair

SETTINGS = {"i.i.d.": "iid", "non-i.i.d.": "shards"}
_FED_AVG = "FedAvg, global adversary"
_WITHOUT, _WITH = "LG-FedAvg, no penalty", "LG-FedAvg, penalty"
_STEP_EACH = {"penalty": 0.0, "adversary_steps": 1, "local_epochs": 1}
_LG: dict[str, Any] = {"method": "lg_fedavg", "rounds": 10, "pretraining": 10, **_STEP_EACH}


def _penalised(penalty: float, steps: int = 5, **more: Any) -> dict[str, Any]:
    """The network makes as many steps as in one pass with a step each."""
    return {**_LG, "penalty": penalty, "adversary_steps": steps, "local_epochs": steps, **more}


_AUTHORS = {**_LG, "penalty": 30.0, "adversary_steps": 0}
_ROWS = {
    _FED_AVG: {"method": "fed_avg", "rounds": 50, "pretraining": 0, **_STEP_EACH},
    _WITHOUT: _penalised(0.0),
    _WITH: _penalised(1.0),
    f"{_WITH}, adversary without dropout": _penalised(1.0, adversary_dropout=0.0),
    f"{_WITH}, lambda 5, 50 steps": _penalised(5.0, 50, num_seeds=3),
    "LG-FedAvg, lambda 30, a step each": {**_LG, "penalty": 30.0},
    "LG-FedAvg, lambda 30, a step of the network after each pass of the adversary": _AUTHORS,
}
_ONE = {"rounds": 1, "penalty": 1.0, "pretraining": 1, "adversary_steps": 1, "local_epochs": 1}
_SMOKE = {
    row: {**course, **{name: min(course[name], one) for name, one in _ONE.items()}}
    for row, course in _ROWS.items()
}
_TRIED = {5: (0.0, 1.0, 2.0, 5.0), 20: (1.0, 5.0), 50: (1.0, 5.0, 10.0, 30.0)}
_CHOOSING = {
    f"lambda {x:g}, {steps} steps, validation": _penalised(x, steps, validation=True)
    for steps, penalties in _TRIED.items()
    for x in penalties
}
_TABLES = {"": _ROWS, ": what lambda and steps are chosen by, on validation examples": _CHOOSING}
_AUC = s.Form(digits=3)
_GUESSERS = {"Adv AUC": "adversary_auc", "New MLP AUC": "mlp_auc", "Logistic AUC": "logistic_auc"}
COLUMNS = {"Class Acc": "class_accuracy", "Class AUC": "class_auc", **_GUESSERS}
COLUMNS |= {f"{g}, {a}": f"{name}_{a}" for g, name in _GUESSERS.items() for a in fair.ATTRIBUTES}
COLUMNS |= {"Diverged": "diverged"}


def _cells(dataset: str, rows: Mapping[str, Mapping[str, Any]], **more: Any) -> list[s.Cell]:
    needed = () if dataset == "made_up" else dataset
    found = []
    for x, partition in SETTINGS.items():
        for row, course in rows.items():
            work = {"dataset": dataset, "partition": partition, **course, **more}
            found.append(s.call(f"{x}/{row}", fair.train, needed, scales_with="rounds", **work))
    return found


def _claims(setting: str) -> tuple[s.Claim, ...]:
    def of(row: str, name: str) -> s.Measure:
        return s.metric(f"{setting}/{row}", name)

    def gap(one: str, other: str, names: Mapping[str, str]) -> dict[str, s.Measure]:
        return {label: of(one, name) - of(other, name) for label, name in names.items()}

    each = {k: n for k, n in COLUMNS.items() if k.endswith(fair.ATTRIBUTES)}
    near = {f"0.05 - |{k} - 0.5|": 0.05 - abs(of(_WITH, n) - 0.5) for k, n in each.items()}
    hidden = gap(_WITHOUT, _WITH, _GUESSERS)
    cost = {
        f"{name}, against {other}": of(_WITH, COLUMNS[name]) - of(other, COLUMNS[name])
        for name in ("Class Acc", "Class AUC")
        for other in (_WITHOUT, _FED_AVG)
    }
    random = "With the penalty the adversary and later classifiers guess race and sex at random"
    harder, small = "race and sex harder to guess", "at most 0.05 of the classifier's accuracy, AUC"
    return (
        s.claim(f"{random}, within 0.05 ({setting}).", near, form=_AUC),
        s.claim(f"Ours ({setting}): the penalty makes {harder}.", hidden, form=_AUC),
        s.claim(f"The penalty costs {small} ({setting}).", cost, -0.05, _AUC),
    )


_QUICK = _cells("adult", _ROWS) + _cells("adult", _CHOOSING, num_seeds=1)

EXPERIMENT = s.Experiment(
    "lg_fedavg.table4",
    "Table 4: fair representations of the Adult data",
    scales={
        "smoke": s.Scale(_cells("made_up", _SMOKE), 1, "Only to see that it runs: made-up data."),
        "quick": s.Scale(_QUICK, 6, "6 seeds instead of 10; one on validation examples."),
        "paper": s.Scale(_cells("adult", {**_ROWS, **_CHOOSING}), 10, "As the paper, 10 seeds."),
    },
    tables=[
        s.table(f"{x}{about}", {row: f"{x}/{row}" for row in rows}, COLUMNS, s.metric, _AUC)
        for about, rows in _TABLES.items()
        for x in SETTINGS
    ],
    claims=[claim for setting in SETTINGS for claim in _claims(setting)],
)
