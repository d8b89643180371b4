"""What WAFFLe's tables share: data, partitions, methods, sizes of runs, attacks."""

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import experiments.study as s

MNIST, FMNIST, CIFAR = "MNIST", "FMNIST", "CIFAR-10"
FED_AVG, FED_PROX, Q_FFL, WAFFLE = "FedAvg", "FedProx", "q-FFL", "WAFFLe"
AS_WRITTEN = "WAFFLe, one learning rate"
BASELINES = (FED_AVG, FED_PROX, Q_FFL)
METHODS: dict[str, dict[str, Any]] = {
    FED_AVG: {"method": "fed_avg", "factors": None},
    FED_PROX: {"method": "fed_prox", "proximal_strength": 1.0, "factors": None},
    Q_FFL: {"method": "q_ffl", "q": 0.001, "factors": None},
    WAFFLE: {"method": "waffle"},
    AS_WRITTEN: {"method": "waffle", "posterior_rate": 1.0},
}
ACCURACY = "local_test_accuracy_mean"
MAJORITY, MINORITY = f"{ACCURACY}_majority", f"{ACCURACY}_minority"


class Data(NamedTuple):
    """A data set as the paper uses it."""

    dataset: str
    model: str
    client_learning_rate: float
    factors: str  # F by layer.
    minority: str  # Its classes.
    clients: tuple[int, int, int]  # Without sub-populations; in the majority; in the minority.


# Appendix B and C. Sub-populations: odd and even digits; footwear (sandal, sneaker, ankle boot) and
# shirts (T-shirt/top, shirt) against the rest; animals and vehicles.
_FMNIST, _CIFAR = "conv_1=25,conv_2=25", "conv_1=10,conv_2=10,dense_1=80,dense_2=40"
DATA = {
    MNIST: Data("mnist", "mlp", 0.04, "dense_1=120", "0,2,4,6,8", (100, 100, 20)),
    FMNIST: Data("fashion_mnist", "cnn_16_32", 0.02, _FMNIST, "0,5,6,7,9", (100, 90, 20)),
    CIFAR: Data("cifar10", "cnn_16_16", 0.02, _CIFAR, "0,1,8,9", (100, 90, 20)),
}
_DIGITS = Data("digits", "mlp", 0.1, "dense_1=8", "0,2,4,6,8", (8, 6, 2))

Size = Mapping[str, dict[str, Any]]
"""Partition, such as 'MNIST/unimodal' -> flags of runs on it, with WAFFLe's factors."""


def size(share: float, flags: Mapping[str, Any], data: Mapping[str, Data] = DATA) -> Size:
    """Returns the flags of runs with this share of clients in a round; `flags` are over others."""
    found = {}
    fixed = {"bias": False, "shards_per_client": 2, "local_test_fraction": 0.2, "batch_size": 10}
    for name, own in data.items():
        of_data = own._asdict()
        classes, (clients, majority, minority) = of_data.pop("minority"), of_data.pop("clients")
        unimodal = {"partition": "shards", "single_class": True, "num_clients": clients}
        multimodal = {"partition": "multimodal", "num_clients": majority + minority}
        multimodal |= {"minority_classes": classes, "minority_clients": minority}
        for setting, partition in {"unimodal": unimodal, "multimodal": multimodal}.items():
            sampled = {"clients_per_round": max(1, round(share * partition["num_clients"]))}
            found[f"{name}/{setting}"] = {**fixed, **of_data, **partition, **sampled, **flags}
    return found


PAPER = size(0.1, {"rounds": 100, "local_epochs": 5, "eval_every": 4})
SHORT = size(0.1, {"rounds": 30, "local_epochs": 5, "eval_every": 4})
# Convolutions take most of the time: fewer clients train in a round, and there are fewer rounds.
CONVOLUTIONS = size(0.05, {"rounds": 30, "local_epochs": 5, "eval_every": 2})
SMOKE = size(0.25, {"rounds": 2, "local_epochs": 1, "eval_every": 1}, dict.fromkeys(DATA, _DIGITS))
SMOKE_NOTE = "Only to see that everything runs: digits at 8 clients, 2 rounds."


def cells(
    of: Size, partitions: Iterable[str], methods: Iterable[str], name: str = "", **more: Any
) -> tuple[s.Cell, ...]:
    """Returns runs 'partition/method', and `name` with further axes in braces; see `s.cells`."""
    first = {"partition": {p: of[p] for p in partitions}}
    first["method"] = {method: METHODS[method] for method in methods}
    return s.cells("{partition}/{method}" + name, {}, **(first | more))


def scales(smoke: Sequence[s.Cell], quick: s.Scale, full: Sequence[s.Cell]) -> dict[str, s.Scale]:
    """Returns the scales of cells of size `SMOKE`, of some, and of the paper's."""
    paper = s.Scale(full, 5, "The paper's settings, 5 seeds.")
    return {"smoke": s.Scale(smoke, 1, SMOKE_NOTE), "quick": quick, "paper": paper}


def main_scales(settings: Iterable[str], methods: Iterable[str]) -> dict[str, s.Scale]:
    """Returns the scales of Tables 1 and 2, and of the figures of their runs."""

    def of(which: Size, *data: str) -> tuple[s.Cell, ...]:
        partitions = [f"{name}/{setting}" for setting in settings for name in data]
        return cells(which, partitions, methods)

    # By their spread, as many seeds as decide claims that fewer left undecided, at most 30.
    numbers = {AS_WRITTEN: 8, FMNIST: 18, CIFAR: 30, MNIST: 20}
    quick = [
        dataclasses.replace(cell, num_seeds=next(n for of, n in numbers.items() if of in cell.name))
        for cell in of(PAPER, MNIST) + of(CONVOLUTIONS, FMNIST, CIFAR)
    ]
    note = "MNIST as in the paper. Others: 30 rounds, 5 % of the clients in each."
    most = max(cell.num_seeds or 0 for cell in quick)
    return scales(of(SMOKE, *DATA), s.Scale(quick, most, note), of(PAPER, *DATA))


def by_place(printed: Iterable[s.Printed]) -> dict[tuple[str, str], s.Printed]:
    """Returns printed values by row and column."""
    return {(value.row, value.column): value for value in printed}


# Over the arguments of attacks, for scale `smoke`.
BRIEF = {"dataset": "digits", "model": "mlp", "num_examples": 20, "rounds": 2, "local_epochs": 2}
BRIEF |= {"factors": {"dense_1": 10}}
BRIEF_NOTE = "Only to see that everything runs: digits, two rounds."


def attacks(
    attack: Callable[..., Mapping[str, float]], course: dict[str, Any], methods: Mapping[str, str]
) -> list[s.Cell]:
    """Returns attacks of three clients; `course` as `attacking.prepare`, and WAFFLe's factors."""
    own = {**course, "num_clients": 3}
    data, options = own["dataset"], {"waffle": {"factors": own.pop("factors")}}
    more = {"scales_with": "rounds", **own}
    return [
        s.call(cell, attack, data, method=method, options=options.get(method, {}), **more)
        for cell, method in methods.items()
    ]
