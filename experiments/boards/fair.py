"""Our own board: every method with the same number of trials, on the same clients."""

import itertools
from collections.abc import Iterable, Mapping
from typing import Any

import experiments.study as s
from experiments.boards.tuned import tuned

# A method's rates; two of them where it has a parameter of its own to choose as well.
_RATES, _TWO_RATES = ("0.01", "0.03", "0.1", "0.3"), ("0.03", "0.1")
_OWN: Mapping[str, tuple[str, tuple[str, str]] | None] = {
    "local_only": None,
    "fed_avg": None,
    "fed_avg_ft": ("fine_tuning_epochs", ("1", "5")),
    "fed_prox": ("proximal_strength", ("0.01", "0.1")),
    "q_ffl": ("q", ("0.001", "0.1")),
    "scaffold": None,
    "fed_dyn": ("proximal_strength", ("0.01", "0.1")),
    "ave_fl": None,
    "opt_fl": None,
    "mix_fl": None,
    "fed_per": None,
    "fed_rep": ("head_epochs", ("1", "5")),
    "fed_babu": ("fine_tuning_epochs", ("1", "5")),
    "fed_recon": None,
    "lg_fedavg": None,
    "cgau": None,
    "waffle": ("posterior_rate", ("1e4", "1e5")),
    "per_fed_avg": ("adaptation_rate", ("0.01", "0.1")),
    "ditto": ("proximal_strength", ("0.1", "1")),
    "p_fed_me": ("proximal_strength", ("5", "15")),
    "apfl": ("mixing", ("0.25", "0.75")),
    "fed_ala": ("mixing_rate", ("0.1", "1")),
    "ifca": ("num_clusters", ("2", "4")),
    "fed_proto": ("prototype_strength", ("0.1", "1")),
}
_ON_IID = ("local_only", "fed_avg", "fed_avg_ft", "fed_per", "ditto")
_FMNIST = {"dataset": "fashion_mnist", "model": "mlp"}
_EMBEDDED = {"dataset": "cifar10_embeddings", "model": "mlp"}
_SHARDS = {"partition": "shards", "single_class": True}  # 2 for each client.
_DIRICHLET = {"partition": "dirichlet", "dirichlet.alpha": 0.1}
# Clients that join after training are not among the 20 and 100 of the titles.
_FEW = {"num_clients": 25}
_MANY = {"num_clients": 120, "clients_per_round": 10}
_IID = "FMNIST, i.i.d., 20 clients"
SETTINGS: Mapping[str, dict[str, Any]] = {
    "FMNIST, 2 classes a client, 20 clients": {**_FMNIST, **_SHARDS, **_FEW},
    "FMNIST, Dirichlet .1, 20 clients": {**_FMNIST, **_DIRICHLET, **_FEW},
    "FMNIST, 2 classes a client, 10 of 100 clients": {**_FMNIST, **_SHARDS, **_MANY},
    "FMNIST, Dirichlet .1, 10 of 100 clients": {**_FMNIST, **_DIRICHLET, **_MANY},
    "CIFAR-10 embeddings, 2 classes a client, 20 clients": {**_EMBEDDED, **_SHARDS, **_FEW},
    "CIFAR-10 embeddings, Dirichlet .1, 20 clients": {**_EMBEDDED, **_DIRICHLET, **_FEW},
    _IID: {**_FMNIST, "partition": "iid", **_FEW},
}
_TRAINING = {
    "batch_size": 50,
    "local_steps": 20,
    "rounds": 50,
    "eval_every": 50,
    "validation_fraction": 0.2,
}
_SMOKE = {"dataset": "digits", "num_clients": 12, "local_steps": 1, "rounds": 1}


def _trials(method: str) -> list[dict[str, str]]:
    if (own := _OWN[method]) is None:
        return [{"client_learning_rate": rate} for rate in _RATES]
    pairs = itertools.product(_TWO_RATES, own[1])
    return [{"client_learning_rate": rate, f"{method}.{own[0]}": x} for rate, x in pairs]


def _cells(
    settings: Iterable[str] = tuple(SETTINGS), num_trials: int = 4, **more: Any
) -> list[s.Cell]:
    found = []
    for setting in settings:
        flags = {**_TRAINING, **SETTINGS[setting], **more}
        for method in _ON_IID if setting == _IID else _OWN:
            at_server = {"selection_examples": 500} if method in ("opt_fl", "mix_fl") else {}
            cell = s.call(
                f"{setting}/{method}",
                tuned,
                flags["dataset"],
                scales_with="flags",
                flags={**flags, **at_server, "method": method},
                trials=_trials(method)[:num_trials],
                new_clients=20 if flags["num_clients"] > 100 else 5,
                joining_rounds=5,
            )
            found.append(cell)
    return found


def _table(setting: str) -> s.Table:
    def measure(method: str, of: str) -> s.Measure:
        return s.metric(f"{setting}/{method}", of)

    columns: dict[str, Any] = {
        "Accuracy": "accuracy",
        "Worst tenth of the clients": "worst_decile",
        "New clients": "new_clients",
        "MB a client and round": ("bytes", s.Form(2, 1e-6)),
        "Trial": ("trial", s.Form(1)),
        "Diverged": ("diverged", s.Form(1)),
    }
    return s.table(setting, _ON_IID if setting == _IID else [*_OWN], columns, measure)


EXPERIMENT = s.Experiment(
    "boards.fair",
    "Our own board: each method tuned by four trials on validation examples",
    scales={
        "smoke": s.Scale(_cells([_IID], 2, **_SMOKE), 1, "Only to see that it runs: digits."),
        "paper": s.Scale(_cells(), 5, "5 seeds, 50 rounds of 20 steps; see Settings."),
    },
    tables=[_table(setting) for setting in SETTINGS],
)
