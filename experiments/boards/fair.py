"""Our own board: every method with the same number of trials, on the same clients."""

import functools
import math
from collections.abc import Iterable, Mapping
from typing import Any

import experiments.study as s
from experiments.boards import differences, pictures
from experiments.boards.tuned import tuned

# Four trials each, though not equally long: three rates at the method's defaults, and the middle
# one with another value of its own main parameter, or a fourth rate where there is none.
_RATES, _LOW, _MIDDLE = ("0.03", "0.1", "0.3"), "0.01", "0.1"
METHODS: Mapping[str, dict[str, str]] = {
    "local_only": {},
    "fed_avg": {},
    "fed_avg_ft": {"fine_tuning_epochs": "1"},
    "fed_prox": {"proximal_strength": "0.01"},
    "q_ffl": {"q": "0.1"},
    "scaffold": {},
    "fed_dyn": {"proximal_strength": "0.1"},
    "ave_fl": {},
    "opt_fl": {},
    "mix_fl": {},
    "fed_per": {},
    "fed_rep": {"head_epochs": "1"},
    "fed_babu": {"fine_tuning_epochs": "1"},
    "fed_recon": {},
    "lg_fedavg": {},
    "cgau": {},
    "waffle": {"posterior_rate": "1e4"},
    "per_fed_avg": {"adaptation_rate": "0.01"},
    "ditto": {"proximal_strength": "0.1"},
    "p_fed_me": {"proximal_strength": "5"},
    "apfl": {"mixing": "0.75"},
    "fed_ala": {"mixing_rate": "0.1"},
    "ifca": {"num_clusters": "4"},
    "fed_proto": {"prototype_strength": "0.1"},
}
_ON_IID = ("local_only", "fed_avg", "fed_avg_ft", "fed_per", "ditto")
_BASELINES = {"Above fine-tuned FedAvg": "fed_avg_ft", "Above clients alone": "local_only"}
_FMNIST = {"dataset": "fashion_mnist", "model": "mlp"}
_EMBEDDED = {"dataset": "cifar10_embeddings", "model": "mlp"}
_SHARDS = {"partition": "shards", "single_class": True}  # 2 for each client.
_DIRICHLET = {"partition": "dirichlet", "dirichlet.alpha": 0.1}
# 120 clients of about 500 examples. Those that train are the first ones; the last 20 join later.
_FEW, _MANY = {"rounds": 50}, {"rounds": 100, "clients_per_round": 10}
_IID = "FMNIST, i.i.d., 20 clients"
SETTINGS: Mapping[str, dict[str, Any]] = {
    "FMNIST, at most 2 classes a client, 20 clients": {**_FMNIST, **_SHARDS, **_FEW},
    "FMNIST, Dirichlet .1, 20 clients": {**_FMNIST, **_DIRICHLET, **_FEW},
    "FMNIST, at most 2 classes a client, 10 of 100 clients": {**_FMNIST, **_SHARDS, **_MANY},
    "FMNIST, Dirichlet .1, 10 of 100 clients": {**_FMNIST, **_DIRICHLET, **_MANY},
    "CIFAR-10 embeddings, at most 2 classes a client, 20 clients": {**_EMBEDDED, **_SHARDS, **_FEW},
    "CIFAR-10 embeddings, Dirichlet .1, 20 clients": {**_EMBEDDED, **_DIRICHLET, **_FEW},
    _IID: {**_FMNIST, "partition": "iid", **_FEW},
}
# Only OptFL and MixFL use the server's examples; every method goes without them.
_TRAINING = {
    "num_clients": 120,
    "batch_size": 100,
    "local_epochs": 1,
    "validation_fraction": 0.2,
    "selection_examples": 500,
}
_SMOKE = {"dataset": "digits", "num_clients": 40, "rounds": 1, "selection_examples": 50}


def _trials(method: str, own: Mapping[str, str]) -> list[dict[str, str]]:
    always = {}
    if method == "fed_avg_ft":  # The baseline is to be a strong one.
        always["fed_avg_ft.fine_tuning_epochs"] = "5"
    first = [{"client_learning_rate": rate, **always} for rate in _RATES]
    if method == "per_fed_avg":  # Its default is a fraction of these rates, and would adapt little.
        for one in first:
            one["per_fed_avg.adaptation_rate"] = one["client_learning_rate"]
    last = {f"{method}.{name}": value for name, value in own.items()}
    return [*first, {"client_learning_rate": _MIDDLE if own else _LOW} | last]


def cells(
    methods: Mapping[str, Mapping[str, str]],
    settings: Iterable[str] = tuple(SETTINGS),
    num_trials: int = 4,
    **more: Any,
) -> list[s.Cell]:
    """Returns what is run of methods, each with its own main parameter, in settings by name.

    `more` are flags that win over those of the settings.
    """
    found = []
    for setting in settings:
        flags = {**_TRAINING, **SETTINGS[setting], **more}
        flags["eval_every"] = flags["rounds"]
        for method, own in _of(setting, methods).items():
            # Clients that train alone all do so in each round: nobody waits for them.
            alone = {"clients_per_round": None} if method == "local_only" else {}
            cell = s.call(
                f"{setting}/{method}",
                tuned,
                flags["dataset"],
                scales_with="flags",
                flags={k: v for k, v in {**flags, **alone, "method": method}.items() if v},
                trials=_trials(method, own)[:num_trials],
                trial_rounds=math.ceil(0.4 * flags["rounds"]),
                clients=100 if "clients_per_round" in flags else 20,
                new_clients=20,
                # Its classifier stays as drawn until it is tuned to predict.
                joining_epochs=0 if method == "fed_babu" else 5,
            )
            found.append(cell)
    return found


def _of(setting: str, methods: Mapping[str, Mapping[str, str]]) -> Mapping[str, Mapping[str, str]]:
    """The methods that a setting runs; the i.i.d. setting leaves most of ours out."""
    left_out = {*METHODS} - {*_ON_IID} if setting == _IID else set()
    return {name: own for name, own in methods.items() if name not in left_out}


def tables(
    methods: Mapping[str, Mapping[str, str]], settings: Iterable[str] = tuple(SETTINGS)
) -> list[s.Table]:
    """Returns two tables for each setting: of methods, and of differences to the baselines."""
    made = (_table, _above)
    return [make(setting, _of(setting, methods)) for setting in settings for make in made]


def _table(setting: str, methods: Iterable[str]) -> s.Table:
    def measure(method: str, of: str) -> s.Measure:
        cell = f"{setting}/{method}"
        if of == "seconds":
            return s.of_run(cell, lambda run: run.record["seconds"])
        return s.metric(cell, of)

    columns: dict[str, Any] = {
        "Accuracy": "accuracy",
        "Worst tenth of the clients": "worst_decile",
        "New clients, after 5 epochs": "new_clients",
        "MB a client and round": ("bytes", s.Form(2, 1e-6)),
        "Seconds, trials included": ("seconds", s.Form(0)),
        "Trials that diverged": ("diverged", s.Form(1)),
    }
    return s.table(setting, [*methods], columns, measure)


def _above(setting: str, methods: Iterable[str]) -> s.Table:
    def measure(method: str, baseline: str) -> s.Measure | None:
        if method == baseline:
            return None
        ours, theirs = (s.metric(f"{setting}/{m}", "accuracy") for m in (method, baseline))
        return ours - theirs

    title = f"{setting}: paired by seed, each with its own interval; p-values corrected within a "
    title += "column (Holm)"
    places = s.places([*methods], _BASELINES, measure)
    return s.Table(title, places, notes=functools.partial(differences.p_values, places))


def figures(methods: Mapping[str, Mapping[str, str]], settings: Iterable[str]) -> list[s.Figure]:
    """Returns pictures of methods in settings by name."""

    def board(of: str) -> pictures.Board:
        # Where all trials diverged there is no accuracy.
        return {
            x: {m: s.metric(f"{x}/{m}", of, math.nan) for m in _of(x, methods)} for x in settings
        }

    accuracy = board("accuracy")
    return [
        pictures.ranks("Mean ranks by accuracy", accuracy),
        pictures.against_bytes("Accuracy against bytes", accuracy, board("bytes")),
        pictures.above(
            "Wins of each method over each other, corrected within a setting (Holm)", accuracy
        ),
    ]


EXPERIMENT = s.Experiment(
    "boards.fair",
    "Our own board: each method tuned by four trials on validation examples",
    scales={
        "smoke": s.Scale(cells(METHODS, [_IID], 2, **_SMOKE), 1, "Only to see that it runs."),
        "paper": s.Scale(
            cells(METHODS),
            5,
            "5 seeds; 120 clients of about 500 examples, of which 20 or 100 train and 20 others "
            "join later; 50 rounds, 100 where 10 of 100 clients take part in each; trials of 0.4 "
            "times as many, which favours what learns fast. Clients alone train in every round. "
            "Seconds are those of runs beside others.",
        ),
    },
    tables=tables(METHODS),
    figures=figures(METHODS, SETTINGS),
)
