"""Settings of Tables 3 and 4 and Figures 2 and 3: three partitions, two methods, their runs.

The same flags give the same run, so what one table has run the others find done.
"""

import dataclasses
from collections.abc import Collection, Iterator, Mapping

from experiments.study.experiment import Cell, Scale, Training

# As the paper names them -> the method here, in the order of its tables.
METHODS = {"HDAFL": "hdafl", "FedAvg": "fed_avg"}
IID, NON_IID, DISJOINT = "i.i.d", "non-i.i.d", "Disjoint"
# Clients selected in a round (C), by setting, as the paper prints them.
SELECTED = {IID: (10, 20, 50), NON_IID: (10, 20, 50), DISJOINT: (10, 20, 31)}
# FEMNIST with LEAF's network, and with one whose size fits the megabytes of Table 4.
FEMNIST, FEMNIST_SMALL = "FEMNIST", "FEMNIST, small CNN"
STAND_IN, OMNIGLOT = "stand-in", "Omniglot"

SETTINGS = (
    "FEMNIST, 2,000 writers. i.i.d: all data mixed and assigned to 100 clients. non-i.i.d: 100 "
    "clients of several writers each. Disjoint: 31 clients with two classes each that no other "
    "has. Two convolutional and two fully connected layers; HDAFL keeps the last one at the "
    "client. E = 1 local epoch, 400 rounds, 6 repetitions, both methods with the same clients in "
    "each round. Batch size and learning rate are not printed; ours are 32 and 0.05. Accuracy is "
    "the mean over clients of each one's accuracy on its own test data."
)

NOTES = (
    "Where FEMNIST cannot be had, claims are checked on a stand-in, Fashion-MNIST: non-i.i.d is "
    "Dirichlet(0.3) label skew with at least 300 training images a client; Disjoint assigns two "
    "shards of one class each to a client, so that a client has two classes at most, which others "
    "may have as well, since 10 classes do not suffice for 31 clients.",
    "Omniglot has real writers, but each drew the characters of one alphabet, once: it is printed "
    "without a claim.",
)


@dataclasses.dataclass(frozen=True)
class Size:
    """One data set at one scale.

    Attributes:
      common: Flags of all its runs.
      settings: Flags of each setting that it has, by the setting's name.
      selected: Setting -> the paper's C -> ours.
      seconds: Of a round and selected client, on two cores.
    """

    common: Mapping[str, str]
    settings: Mapping[str, Mapping[str, str]]
    selected: Mapping[str, Mapping[int, int]]
    seconds: float

    def cells(self, data: str) -> Iterator[Cell]:
        """The runs: each method in each setting with each C."""
        for setting, flags in self.settings.items():
            for printed, ours in self.selected[setting].items():
                for method in METHODS.values():
                    chosen = {"clients_per_round": str(ours), "method": method}
                    seconds = int(self.common["rounds"]) * ours * self.seconds + _START_SECONDS
                    yield Cell(
                        cell_name(data, setting, printed, method),
                        Training({**self.common, **flags, **chosen}),
                        seconds,
                    )


def cell_name(data: str, setting: str, selected: int, method: str) -> str:
    """The cell's name, such as 'stand-in/Disjoint/C=20/hdafl'; `selected` is the paper's C."""
    return f"{data}/{setting}/C={selected}/{method}"


_START_SECONDS = 6.0  # Reading data, tracing, and the first round's compilation.
_TRAINING = {"batch_size": "32", "client_learning_rate": "0.05"}
_AS_PRINTED = {setting: {c: c for c in printed} for setting, printed in SELECTED.items()}

_SMOKE = Size(
    common={
        **_TRAINING,
        "dataset": "digits",
        "model": "digits_cnn",
        "num_clients": "5",
        "rounds": "2",
        "local_steps": "2",
    },
    settings={
        IID: {"partition": "iid"},
        NON_IID: {"partition": "dirichlet", "dirichlet.alpha": "0.3"},
        DISJOINT: {"partition": "shards", "shards_per_client": "2"},
    },
    selected={
        setting: dict(zip(printed, (1, 2, 5), strict=True)) for setting, printed in SELECTED.items()
    },
    seconds=0.02,
)

_FASHION_SETTINGS = {
    IID: {"partition": "iid"},
    NON_IID: {
        "partition": "dirichlet",
        "dirichlet.alpha": "0.3",
        "dirichlet.min_examples": "300",
    },
    DISJOINT: {"partition": "shards", "shards_per_client": "2"},
}
_FASHION = {**_TRAINING, "dataset": "fashion_mnist", "model": "small_cnn"}

_QUICK = Size(
    common={
        **_FASHION,
        "num_clients": "20",
        "rounds": "30",
        "local_steps": "10",
        "eval_every": "3",
    },
    settings=_FASHION_SETTINGS,
    selected={
        IID: {10: 4, 20: 8, 50: 20},
        NON_IID: {10: 4, 20: 8, 50: 20},
        DISJOINT: {10: 6, 20: 13, 31: 20},
    },
    seconds=0.05,
)

# 100 clients would leave too few images for 300 each at this skew.
_FIFTY, _THIRTY_ONE = {"num_clients": "50"}, {"num_clients": "31"}
_PAPER_STAND_IN = Size(
    common={**_FASHION, "rounds": "400", "local_epochs": "1", "eval_every": "1"},
    settings={
        IID: {**_FASHION_SETTINGS[IID], **_FIFTY},
        NON_IID: {**_FASHION_SETTINGS[NON_IID], **_FIFTY},
        DISJOINT: {**_FASHION_SETTINGS[DISJOINT], **_THIRTY_ONE},
    },
    selected=_AS_PRINTED,
    seconds=0.25,
)

_PAPER = Size(
    common={
        **_TRAINING,
        "dataset": "femnist",
        "model": "femnist_cnn",
        "rounds": "400",
        "local_epochs": "1",
        "eval_every": "1",
    },
    settings={
        IID: {"partition": "iid", "num_clients": "100"},
        NON_IID: {
            "partition": "groups",
            "groups.column": "writer",
            "max_groups": "2000",
            "num_clients": "100",
        },
        DISJOINT: {"partition": "disjoint_classes", "num_clients": "31"},
    },
    selected=_AS_PRINTED,
    seconds=20.0,
)

_PAPER_SMALL = dataclasses.replace(
    _PAPER, common={**_PAPER.common, "model": "hdafl_small"}, seconds=1.0
)


def _omniglot(rounds: str, local_epochs: str, selected: Mapping[int, int], seconds: float) -> Size:
    return Size(
        common={
            **_TRAINING,
            "dataset": "omniglot",
            "model": "small_cnn",
            "batch_size": "10",
            "num_clients": "100",
            "rounds": rounds,
            "local_epochs": local_epochs,
            "eval_every": "10",
        },
        settings={NON_IID: {"partition": "groups", "groups.column": "writer"}},
        selected={NON_IID: selected},
        seconds=seconds,
    )


def scales(of: Collection[str] = tuple(SELECTED)) -> dict[str, Scale]:
    """The scales of the tables and figures that these runs make, with the runs of some settings."""
    return {
        name: dataclasses.replace(
            scale, cells=tuple(cell for cell in scale.cells if cell.name.split("/")[1] in of)
        )
        for name, scale in _all_scales().items()
    }


def _all_scales() -> dict[str, Scale]:
    smoke = tuple(_SMOKE.cells(STAND_IN))
    # With an epoch a round, 30 rounds leave it at chance.
    omniglot_quick = _omniglot("60", "5", {10: 5, 20: 10, 50: 20}, 0.02)
    quick = (*_QUICK.cells(STAND_IN), *omniglot_quick.cells(OMNIGLOT))
    paper = (
        *_PAPER.cells(FEMNIST),
        *_PAPER_SMALL.cells(FEMNIST_SMALL),
        *_PAPER_STAND_IN.cells(STAND_IN),
        *_omniglot("400", "1", _AS_PRINTED[NON_IID], 0.012).cells(OMNIGLOT),
    )
    return {
        "smoke": Scale(
            smoke,
            num_seeds=1,
            note="Only to see that everything runs: 5 clients, 2 rounds of 2 steps on digits.",
        ),
        "quick": Scale(
            quick,
            num_seeds=6,
            note="Not the paper's settings. Stand-in: 20 clients, 30 rounds of 10 steps of 32 "
            "images instead of an epoch; for C = 10, 20, 50 we select 4, 8, 20, and for 10, 20, "
            "31 in Disjoint 6, 13, 20: more than the paper's share, since a client has fewer "
            "rounds to take part in. Omniglot: 160 writers on 100 clients, of which we select 5, "
            "10, 20; 60 rounds of 5 epochs. 6 seeds, as many as the paper has repetitions.",
        ),
        "paper": Scale(
            paper,
            num_seeds=6,
            note="The paper's settings on FEMNIST, with LEAF's network of 6.6 million parameters "
            "and with one of 8,492, which fits Table 4's megabytes. The stand-in has 50 clients "
            "instead of 100 in i.i.d and non-i.i.d, and the network small_cnn; Omniglot has 160 "
            "writers.",
        ),
    }
