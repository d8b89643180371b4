"""Settings of Tables 3 and 4 and Figures 2 and 3: three partitions, two methods, their runs."""

import dataclasses
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

import experiments.study as s

# As the paper names them -> the method here, in the order of its tables.
METHODS = {"HDAFL": "hdafl", "FedAvg": "fed_avg"}
IID, NON_IID, DISJOINT = "i.i.d", "non-i.i.d", "Disjoint"
# Setting -> clients selected in a round (C), as the paper prints them.
SELECTED = {IID: (10, 20, 50), NON_IID: (10, 20, 50), DISJOINT: (10, 20, 31)}
# C = 31 stands below C = 50 in the paper's table.
COLUMNS = {"C = 10": 0, "C = 20": 1, "C = 50 (31)": 2}
# FEMNIST with LEAF's network, and with one whose size fits the megabytes of Table 4.
FEMNIST, FEMNIST_SMALL = "FEMNIST", "FEMNIST, small CNN"
STAND_IN, OMNIGLOT = "stand-in", "Omniglot"
CLAIMED = (FEMNIST, FEMNIST_SMALL, STAND_IN)
# Data -> the title of their table.
TITLES = {FEMNIST: FEMNIST, FEMNIST_SMALL: FEMNIST_SMALL}
TITLES |= {STAND_IN: "Stand-in for FEMNIST; in Disjoint, clients share classes"}
TITLES |= {OMNIGLOT: "Omniglot, without a claim"}
ACCURACY = "local_test_accuracy_mean"
Flags = Mapping[str, Any]


def run(data: str, setting: str, selected: int, method: str) -> str:
    """The cell's name, such as 'stand-in/Disjoint/C=20/hdafl'; `selected` is the paper's C."""
    return f"{data}/{setting}/C={selected}/{METHODS[method]}"


def places(
    data: str, measure: Callable[[str, str], s.Measure], among: Iterable[str] = SELECTED
) -> tuple[s.Place, ...]:
    """The places of a measure of the accuracy: settings and methods by C."""
    of = [NON_IID] if data == OMNIGLOT else among
    return s.places(
        {f"{setting}, {method}": (setting, method) for setting in of for method in METHODS},
        COLUMNS,
        lambda row, column: measure(run(data, row[0], SELECTED[row[0]][column], row[1]), ACCURACY),
    )


_WRITERS = {"partition": "groups", "groups.column": "writer", "num_clients": 100}
_FEMNIST = {
    IID: {"partition": "iid", "num_clients": 100},
    NON_IID: {**_WRITERS, "max_groups": 2000},
    DISJOINT: {"partition": "disjoint_classes", "num_clients": 31},
}
# 100 clients would leave too few images for 300 each at this skew.
_SKEWED = {"partition": "dirichlet", "dirichlet.alpha": 0.3, "dirichlet.min_examples": 300}
_STAND_IN = {
    IID: {"partition": "iid", "num_clients": 50},
    NON_IID: {**_SKEWED, "num_clients": 50},
    DISJOINT: {"partition": "shards", "shards_per_client": 2, "num_clients": 31},
}
_DIGITS = {"dataset": "digits", "model": "digits_cnn", "dirichlet.min_examples": None}
_SMOKE = {**_DIGITS, "num_clients": 5, "rounds": 2, "local_steps": 2}
_FASHION = {"dataset": "fashion_mnist", "model": "small_cnn"}
_QUICK = {**_FASHION, "num_clients": 20, "rounds": 30, "local_steps": 10, "eval_every": 3}
_QUICK_SELECTED = {IID: (4, 8, 20), NON_IID: (4, 8, 20), DISJOINT: (6, 13, 20)}
OMNIGLOT_FLAGS = {"dataset": "omniglot", "model": "small_cnn", "batch_size": 10, "eval_every": 10}
# With an epoch a round, 30 rounds leave it at chance.
_QUICK_OMNIGLOT = {**OMNIGLOT_FLAGS, "rounds": 60, "local_epochs": 5}
_PAPER = {"dataset": "femnist", "rounds": 400, "local_epochs": 1, "eval_every": 1}


def runs(
    data: str, flags: Flags, partitions: Mapping[str, Flags], selected: Flags = SELECTED
) -> tuple[s.Cell, ...]:
    """The runs of some settings; `selected` are the clients that stand for the paper's C."""
    return s.cells(
        f"{data}/{{selected}}/{{method}}",
        {"batch_size": 32, "client_learning_rate": 0.05},
        selected={
            f"{setting}/C={c}": {**own, **flags, "clients_per_round": number}
            for setting, own in partitions.items()
            for c, number in zip(SELECTED[setting], selected[setting], strict=True)
        },
        method={method: {"method": method} for method in METHODS.values()},
    )


def scales(among: Collection[str] = tuple(SELECTED)) -> dict[str, s.Scale]:
    """The scales of the tables and figures that these runs make, with the runs of some settings."""
    stand_in, femnist = ({k: of[k] for k in among} for of in (_STAND_IN, _FEMNIST))
    writers = {NON_IID: _WRITERS} if NON_IID in among else {}
    omniglot = runs(OMNIGLOT, _QUICK_OMNIGLOT, writers, {NON_IID: (5, 10, 20)})
    smoke = runs(STAND_IN, _SMOKE, stand_in, dict.fromkeys(SELECTED, (1, 2, 5)))
    return {
        "smoke": s.Scale(smoke, 1, "Only to see that it runs: digits, 5 clients, 2 rounds."),
        "quick": s.Scale(
            [
                *runs(STAND_IN, _QUICK, stand_in, _QUICK_SELECTED),
                *(dataclasses.replace(cell, num_seeds=6) for cell in omniglot),
            ],
            num_seeds=22,  # By the spread of 6, as many as decide four claims, and two.
            note="Not the paper's settings. Stand-in: 20 clients, 30 rounds of 10 steps. Omniglot: "
            "100 clients, 60 rounds of 5 epochs.",
        ),
        "paper": s.Scale(
            runs(FEMNIST, {**_PAPER, "model": "femnist_cnn"}, femnist)
            + runs(FEMNIST_SMALL, {**_PAPER, "model": "hdafl_small"}, femnist)
            + runs(STAND_IN, {**_PAPER, **_FASHION}, stand_in)
            + runs(OMNIGLOT, {**_PAPER, **OMNIGLOT_FLAGS}, writers),
            num_seeds=6,
            note="The paper's settings on FEMNIST, with LEAF's network and with a small one. The "
            "stand-in has 50 clients instead of 100 in i.i.d and non-i.i.d.",
        ),
    }
