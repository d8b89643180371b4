"""Our own board: every method with the same number of trials, on the same clients."""

import functools
import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import experiments.study as s
from experiments.boards import differences, pictures
from experiments.boards.tuned import Flags, tuned
from experiments.study import timing


class Tuned(NamedTuple):
    """What is tuned of a method beside its rate: its main parameter, if it has one.

    Attributes:
      name: The parameter.
      first: Its value in three trials, at three rates; the method's default where None.
      other: Its value in the fourth trial, at the best of these rates.
      fixed: Other parameters in all trials.
    """

    name: str = ""
    first: str | None = None
    other: str = ""
    fixed: Mapping[str, str] = {}


# Four trials each: three rates, then another value of the main parameter at the best of them, or,
# where there is none, a rate beyond that one, or near it where it is the middle one. '{0}' and
# '{1}' are the lowest and the middle rate. Methods were tried with one seed on two settings before.
_RATES = {
    "fashion_mnist": ("0.03", "0.1", "0.3"),
    # Inputs are four times as long, so that at 0.3 nearly all of the network's units die.
    "cifar10_embeddings": ("0.01", "0.03", "0.1"),
}
_ORDER = ("lowest", "middle", "highest")
_NEXT_RATES = {
    "fashion_mnist": ("0.01", "0.2", "1"),
    "cifar10_embeddings": ("0.003", "0.06", "0.3"),
}
# The network has no dropout, so that one pass tells what twenty would.
_ONE_PASS = Tuned(fixed={"ensemble_dropout_samples": "1"})
METHODS: Mapping[str, Tuned] = {
    "local_only": Tuned(),
    "fed_avg": Tuned(),
    # The baseline is to be a strong one.
    "fed_avg_ft": Tuned("fine_tuning_rate", "{0}", "{1}", {"fine_tuning_epochs": "5"}),
    "fed_prox": Tuned("proximal_strength", "0.01", "0.1"),
    "q_ffl": Tuned("q", "0.1", "1"),
    "scaffold": Tuned(),
    "fed_dyn": Tuned("proximal_strength", "0.1", "1"),
    "ave_fl": Tuned(),
    "opt_fl": _ONE_PASS,
    "mix_fl": _ONE_PASS,
    "fed_per": Tuned(),
    "fed_rep": Tuned("head_epochs", None, "1"),
    "fed_babu": Tuned("fine_tuning_epochs", None, "1"),
    "fed_recon": Tuned(),
    "lg_fedavg": Tuned(),
    "cgau": Tuned(),
    "waffle": Tuned("posterior_rate", None, "1e4"),
    "per_fed_avg": Tuned("adaptation_steps", "1", "20", {"adaptation_rate": "{0}"}),
    "ditto": Tuned("proximal_strength", "0.1", "1"),
    "p_fed_me": Tuned("proximal_strength", "5", "1"),
    "apfl": Tuned("mixing", None, "0.75"),
    "fed_ala": Tuned("mixing_rate", None, "0.1"),
    "ifca": Tuned("num_clusters", None, "4"),
    "fed_proto": Tuned("prototype_strength", "0.1", "1"),
}
_ON_IID = ("local_only", "fed_avg", "fed_avg_ft", "fed_per", "ditto")
_BASELINES = {"fed_avg_ft": "fine-tuned FedAvg", "local_only": "local training"}
_FMNIST = {"dataset": "fashion_mnist", "model": "mlp"}
_EMBEDDED = {"dataset": "cifar10_embeddings", "model": "mlp"}
_DATA = {"FMNIST": _FMNIST, "CIFAR-10 embeddings": _EMBEDDED}
_SHARDS = {"partition": "shards", "single_class": True}  # 2 for each client.
_DIRICHLET = {"partition": "dirichlet", "dirichlet.alpha": 0.1}
# 120 clients of about 500 examples. Those that train are the first ones; the last 20 join later.
_FEW, _MANY = {"rounds": 50, "clients_per_round": 20}, {"rounds": 100, "clients_per_round": 10}
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


def _trials(method: str, of: Tuned, dataset: str) -> tuple[list[Flags], list[Flags]]:
    """Returns the flags of three trials, and those of the fourth for each of them as the best."""
    rates, following = (r.get(dataset, r["fashion_mnist"]) for r in (_RATES, _NEXT_RATES))

    def own(**values: str) -> dict[str, str]:
        return {f"{method}.{name}": value.format(*rates) for name, value in values.items()}

    first = own(**of.fixed) | (own(**{of.name: of.first}) if of.first else {})
    trials: list[Flags] = [{"client_learning_rate": rate, **first} for rate in rates]
    if of.name:
        return trials, [own(**{of.name: of.other})] * len(trials)
    return trials, [{"client_learning_rate": rate} for rate in following]


def cells(
    methods: Mapping[str, Tuned],
    settings: Iterable[str] = tuple(SETTINGS),
    is_brief: bool = False,
    **more: Any,
) -> list[s.Cell]:
    """Returns what is run of methods in settings by name; briefly, without a fourth trial.

    `more` are flags that win over those of the settings.
    """
    found = []
    for setting in settings:
        flags = {**_TRAINING, **SETTINGS[setting], **more}
        flags["eval_every"] = flags["rounds"]
        clients = 20 if flags["clients_per_round"] == 20 else 100
        for method, own in _of(setting, methods).items():
            # Clients that train alone all do so in each round: nobody waits for them.
            alone = {"clients_per_round": clients} if method == "local_only" else {}
            trials, last = _trials(method, own, flags["dataset"])
            cell = s.call(
                f"{setting}/{method}",
                tuned,
                flags["dataset"],
                scales_with="flags",
                flags={**flags, **alone, "method": method},
                trials=trials,
                last_trial=() if is_brief else last,
                trial_rounds=math.ceil(0.4 * flags["rounds"]),
                clients=clients,
                new_clients=20,
                # These make what they predict with anew, whatever they kept.
                joining_epochs=0 if method in ("fed_babu", "fed_recon") else 5,
            )
            found.append(cell)
    return found


def _of(setting: str, methods: Mapping[str, Tuned]) -> Mapping[str, Tuned]:
    """The methods that a setting runs; the i.i.d. setting leaves most of ours out."""
    left_out = {*METHODS} - {*_ON_IID} if setting == _IID else set()
    return {name: own for name, own in methods.items() if name not in left_out}


def tables(
    methods: Mapping[str, Tuned], settings: Iterable[str] = tuple(SETTINGS)
) -> list[s.Table]:
    """Returns tables of differences to the baselines, then one of each setting."""
    groups = {
        "Where clients differ": [setting for setting in settings if setting != _IID],
        "Where they do not": [setting for setting in settings if setting == _IID],
    }
    return [
        *(_above(where, b, methods, of) for where, of in groups.items() if of for b in _BASELINES),
        *(_table(setting, _of(setting, methods)) for setting in settings),
        *(_chosen(methods, of) for of in groups.values() if of and _IID not in of),
    ]


def _table(setting: str, methods: Iterable[str]) -> s.Table:
    columns: dict[str, Any] = {
        "Accuracy, %": "accuracy",
        "Weighted by examples": "accuracy_by_example",
        "Worst 10 % of clients": "worst_decile",
        "New clients": "new_clients",
        "MB per client and round, both ways": ("bytes", s.Form(2, 1e-6)),
        "Of four trials, diverged": ("diverged", s.Form(1)),
    }
    return s.table(setting, {m: f"{setting}/{m}" for m in methods}, columns, s.metric)


def _chosen(methods: Iterable[str], settings: Iterable[str]) -> s.Table:
    def share(method: str, trial: int) -> s.Measure:
        found = [s.metric(f"{setting}/{method}", "trial") for setting in settings]
        return s.combined(lambda *of: of.count(trial) / len(of), *found)

    trials = {**{f"{rate} rate": k for k, rate in enumerate(_ORDER, start=1)}, "the fourth": 4}
    title = "How often each trial was chosen, %, where clients differ"
    return s.table(title, [*methods], trials, share, s.Form(0, 100.0))


def _above(
    where: str, baseline: str, methods: Mapping[str, Tuned], settings: Iterable[str]
) -> s.Table:
    def measure(method: str, setting: str) -> s.Measure | None:
        if method == baseline or method not in _of(setting, methods):
            return None
        ours, theirs = (s.metric(f"{setting}/{m}", "accuracy") for m in (method, baseline))
        return ours - theirs

    title = f"{where}: accuracy above {_BASELINES[baseline]}, in points, paired by seed; p-values "
    title += "corrected within a column (Holm)"
    places = s.places([*methods], [*settings], measure, s.Form(1, 100.0))
    return s.Table(title, places, notes=functools.partial(differences.p_values, places))


def _timed() -> Iterator[s.Cell]:
    sizes = {"num_clients": 20, "clients_per_round": 20}
    more = {**sizes, **_ONE_PASS.fixed, "client_learning_rate": 0.1}
    for name, data in _DATA.items():
        own: dict = {"flags": {**_TRAINING, **_SHARDS, **data, **more}, "methods": [*METHODS]}
        own |= {"rounds": 10, "num_seeds": 1, "scales_with": "rounds"}
        yield s.call(name, timing.round_times, data["dataset"], alone=True, **own)


_SECONDS = s.table(
    "Seconds of a round of 20 clients, with default parameters, nothing else at work",
    [*METHODS],
    [*_DATA],
    lambda method, data: s.metric(data, f"{method}_seconds"),
    s.Form(2),
)


def figures(methods: Mapping[str, Tuned], settings: Iterable[str]) -> list[s.Figure]:
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
            "Colour: mean lead of the row over the column; number: settings with a significant one",
            accuracy,
        ),
    ]


EXPERIMENT = s.Experiment(
    "boards.fair",
    "Our own board: each method tuned by four trials on validation examples",
    scales={
        "smoke": s.Scale(
            cells(METHODS, [_IID], is_brief=True, **_SMOKE), 1, "Only to see that it runs."
        ),
        "paper": s.Scale(
            [*cells(METHODS), *_timed()],
            5,
            "5 seeds, which draw the partition and the initial weights. 120 clients of about 500 "
            "examples, of which 20 or 100 train and 20 others join later; 50 rounds, 100 where 10 "
            "of 100 clients take part in each. Local training takes place in every round.",
        ),
    },
    tables=[*tables(METHODS), _SECONDS],
    figures=figures(METHODS, SETTINGS),
)
