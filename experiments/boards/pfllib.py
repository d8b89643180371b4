"""PFLlib's own board (Zhang et al.): the best round of each method where clients differ in labels.

The published numbers are those of 2,000 rounds, four hours of two cores for FedAvg and one seed.
Scale `quick` has 60 rounds of one setting, and six methods. There is no verdict.
"""

from collections.abc import Callable, Collection, Mapping
from typing import Any

import experiments.study as s

# Strengths and second rates of FedProx, Ditto and pFedMe are not published: these are our choice.
_METHODS: Mapping[str, dict[str, Any]] = {
    "FedAvg": {"method": "fed_avg"},
    "FedProx": {"method": "fed_prox", "proximal_strength": 0.1},
    "FedAvg, fine-tuned": {"method": "fed_avg_ft", "fine_tuning_epochs": 1, "eval_every": 20},
    "Per-FedAvg": {"method": "per_fed_avg", "adaptation_rate": 0.005, "adaptation_steps": 1},
    "pFedMe": {"method": "p_fed_me", "personal_rate": 0.01, "proximal_strength": 15},
    "Ditto": {"method": "ditto", "proximal_strength": 1},
    "APFL": {"method": "apfl", "mixing": 1},
    "FedPer": {"method": "fed_per"},
    "FedRep": {"method": "fed_rep", "head_epochs": 1, "body_epochs": 1},
    "FedBABU": {"method": "fed_babu", "fine_tuning_epochs": 10, "eval_every": 50},
    "FedALA": {"method": "fed_ala"},
    "FedProto": {"method": "fed_proto"},
}
_TWO = "FMNIST, 2 classes"
_SETTINGS: Mapping[str, dict[str, Any]] = {
    _TWO: {"partition": "pfllib_classes"},
    "FMNIST, Dirichlet .1": {
        "partition": "dirichlet",
        "dirichlet.alpha": 0.1,
        "dirichlet.capped": True,
        "dirichlet.min_examples": 40,
    },
}
_PRINTED = {
    "FedAvg": "FedAvg 80.41 ± 0.08 85.85 ± 0.19",
    "FedProx": "FedProx 78.08 ± 0.15 85.63 ± 0.57",
    "Per-FedAvg": "Per-FedAvg 99.18 ± 0.08 95.10 ± 0.10",
    "pFedMe": "pFedMe 99.35 ± 0.14 97.25 ± 0.17",
    "Ditto": "Ditto 99.44 ± 0.06 97.47 ± 0.04",
    "APFL": "APFL 99.41 ± 0.02 97.25 ± 0.08",
    "FedPer": "FedPer 99.47 ± 0.03 97.44 ± 0.06",
    "FedRep": "FedRep 99.56 ± 0.03 97.56 ± 0.04",
    "FedBABU": "FedBABU 99.41 ± 0.05 97.46 ± 0.07",
    "FedALA": "FedALA 99.57 ± 0.01 97.66 ± 0.02",
    "FedProto": "FedProto 99.49 ± 0.04 97.40 ± 0.02",
}
_TRAINING = {
    "dataset": "fashion_mnist",
    "num_clients": 20,
    "merge_test": True,
    "local_test_fraction": 0.25,
    "model": "cnn_pfllib",
    "initialization": "fan_in",
    "batch_size": 10,
    "client_learning_rate": 0.005,
    "rounds": 2000,
    "eval_every": 5,
}
_SMOKE = {"dataset": "digits", "model": "digits_cnn", "rounds": 2}
_SMOKE |= {"num_clients": 5, "partition": "iid"}
_ACCURACY = "local_test_accuracy_weighted_mean"
_NOTE = (
    "one seed, our own draw of the partition's sizes. Measured every 5 rounds, fine-tuned methods "
    "every 20 (FedBABU 50). The last batch of an epoch is kept where it is short; PFLlib drops it."
)


# The others come last: they take about as long as these six together.
_QUICK = ("FedAvg", "FedProx", "FedAvg, fine-tuned", "Per-FedAvg", "Ditto", "FedPer")


def _cells(
    settings: Mapping[str, dict[str, Any]], methods: Collection[str] = tuple(_METHODS)
) -> tuple[s.Cell, ...]:
    chosen = {name: _METHODS[name] for name in methods}
    return s.cells("{setting}/{method}", _TRAINING, setting=settings, method=chosen)


def _table(title: str, of: Callable[[str, str], s.Measure], *, compare: bool) -> s.Table:
    def measure(row: str, setting: str) -> s.Measure:
        return of(f"{setting}/{row}", _ACCURACY)

    return s.table(title, [*_METHODS], [*_SETTINGS], measure, compare=compare)


EXPERIMENT = s.Experiment(
    "boards.pfllib",
    "PFLlib: accuracy of personal models, as its benchmark prints it",
    scales={
        "smoke": s.Scale(_cells(dict.fromkeys(_SETTINGS, _SMOKE)), 1, "Only to see that it runs."),
        "quick": s.Scale(
            _cells({_TWO: {**_SETTINGS[_TWO], "rounds": 60}}, _QUICK),
            1,
            f"60 rounds instead of 2,000, {_NOTE}",
        ),
        "paper": s.Scale(_cells(_SETTINGS), 1, f"The published settings, {_NOTE}"),
    },
    tables=[
        _table("Best round on test data", s.best_round, compare=True),
        _table("Last round", s.metric, compare=False),
    ],
    printed=s.printed(_PRINTED, [*_SETTINGS], "PFLlib's benchmark, best of 2,000 rounds"),
    figures=[
        s.curves(
            "Accuracy over rounds",
            "no curves; the table has the best of 2,000 rounds.",
            {
                f"{x}, {of}": {row: (f"{x}/{row}", _ACCURACY) for row in rows}
                for x in _SETTINGS
                for of, rows in {
                    "one model": [*_METHODS][:2],
                    "own models": [*_METHODS][2:],
                }.items()
            },
        )
    ],
)
