"""Table 3 of WAFFLe: who was among a client's training examples, of what the client sends?"""

from collections.abc import Iterator

import experiments.study as s
from experiments.waffle.attacking import infer_membership
from experiments.waffle.settings import BRIEF, BRIEF_NOTE, FED_AVG, WAFFLE, attacks
from tff_het.attacks.attacker import FITTED, INITIAL, PRIVATE
from tff_het.attacks.federations import BROADCAST, UPDATE

_TRAINING = {"local_epochs": 10, "batch_size": 20, "learning_rate": 0.02, "momentum": 0.9}
_QUICK = {**_TRAINING, "dataset": "cifar10", "model": "lenet5", "num_examples": 400, "rounds": 5}
# The shares of outputs that Appendix C has: 10 of 16 (twice), 80 of 80, 40 of 60.
_QUICK |= {"factors": {"conv_1": 4, "conv_2": 10, "dense_1": 120, "dense_2": 67}}
_PAPER, _PAPER_NOTE = _QUICK | {"num_examples": 1000}, "1,000 examples a client, 10 seeds."
_NOTE = "400 examples per client instead of 1,000; FedAvg, WAFFLe, HDAFL and LG-FedAvg only."
_METHODS = {FED_AVG: "fed_avg", WAFFLE: "waffle", "HDAFL": "hdafl", "LG-FedAvg": "lg_fedavg"}
# Attack -> title: what the attacker does.
_TITLES = {
    f"{UPDATE}_{FITTED}": "has a client's update, and fits local variables on own data",
    f"{UPDATE}_{PRIVATE}": "also has the client's local variables",
    f"{UPDATE}_{INITIAL}": "uses every client's initial local variables",
    f"{BROADCAST}_{FITTED}": "has what the server sends to the next clients, and fits missing "
    "variables",
}
_MEMORISED = "Memorisation: accuracy of the clients' own models"
_ACCURACIES = {"On their training examples": "members_accuracy", "On others": "others_accuracy"}
_PRINTED = {FED_AVG: "FedAvg 83.85 ± 1.62 83.72 ± 2.19", WAFFLE: "WAFFLe 56.20 ± 1.40 54.39 ± 1.85"}
# The lower end of FedAvg's printed accuracy, and the upper end of WAFFLe's.
_HIGH, _MODERATE = 0.8385 - 0.0162, 0.5620 + 0.0140


def _tables() -> Iterator[s.Table]:
    """The first is the paper's."""
    for attack, title in _TITLES.items():
        columns = {
            "Accuracy": f"{attack}_accuracy",
            "F1-score": f"{attack}_f1",
            "AUC": (f"{attack}_auc", s.Form(digits=3)),
            "TPR at 1 % FPR": f"{attack}_true_positives",
        }
        found = [r for r in _METHODS if FITTED in attack or r != FED_AVG]
        compare = attack == f"{UPDATE}_{FITTED}"
        yield s.table(f"The attacker {title}", found, columns, s.metric, compare=compare)
    yield s.table(_MEMORISED, [*_METHODS], _ACCURACIES, s.metric)


def _accuracy(row: str, local: str = FITTED) -> s.Measure:
    return s.metric(row, f"{UPDATE}_{local}_accuracy")


_FED_AVG, _WAFFLE = _accuracy(FED_AVG), _accuracy(WAFFLE)
_KNOWN, _INITIAL = _accuracy(WAFFLE, PRIVATE), _accuracy(WAFFLE, INITIAL)
_CLAIMS = {
    "The attack has a high success rate on FedAvg: the printed 83.85 ± 1.62 % or more": {
        "FedAvg - 82.23 %": _FED_AVG - _HIGH
    },
    "It is significantly harder to identify the training data of WAFFLe": {
        "FedAvg - WAFFLe": _FED_AVG - _WAFFLE
    },
    "The attack on WAFFLe succeeds only moderately more often than chance (50 %): not more often "
    "than the printed 56.20 ± 1.40 %": {
        "WAFFLe - 50 %": _WAFFLE - 0.5,
        "57.60 % - WAFFLe": _MODERATE - _WAFFLE,
    },
    "The attack is weak because the identity of the active factors is private: with the local "
    "variables it infers more, and is no longer only moderately better than chance": {
        "accuracy of WAFFLe, local variables known - not known": _KNOWN - _WAFFLE,
        "WAFFLe, local variables known - 57.60 %": _KNOWN - _MODERATE,
    },
    "Ours, added when the runs had been seen: without the client's own local variables no attacker "
    "exceeds 60 %, even with the initial local variables": {
        "60 % - WAFFLe, initial variables": 0.6 - _INITIAL
    },
    "Ours: an attacker with local variables finds members of WAFFLe less often than FedAvg's": {
        "FedAvg - WAFFLe, local variables": _FED_AVG - _KNOWN
    },
}

EXPERIMENT = s.Experiment(
    "waffle.table3",
    "Table 3: membership inference",
    scales={
        "smoke": s.Scale(attacks(infer_membership, _QUICK | BRIEF, _METHODS), 1, BRIEF_NOTE),
        "quick": s.Scale(attacks(infer_membership, _QUICK, _METHODS), 10, _NOTE),
        "paper": s.Scale(attacks(infer_membership, _PAPER, _METHODS), 10, _PAPER_NOTE),
    },
    tables=[*_tables()],
    printed=s.printed(_PRINTED, ["Accuracy", "F1-score"], "Table 3"),
    claims=[s.claim(text, checks) for text, checks in _CLAIMS.items()],
)
