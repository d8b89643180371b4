"""What the figures of edge ensembles share: runs at each scale, measures, tables and pictures.

A run is named ExFy as in the paper: x epochs on every acquired batch, y ensembling steps in its
budget of acquisitions.
"""

import dataclasses
import itertools
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

import experiments.study as s
from experiments.edge_ensembles import observed

Rows = Mapping[str, Mapping[str, s.Measure]]

AVE, OPT, MIX = "AveFL", "OptFL", "MixFL"
METHODS = {AVE: "ave_fl", OPT: "opt_fl", MIX: "mix_fl"}
# The classes of each device (Type I), and their share of the test set.
CLASSES = {"D1": (0, 1), "D2": (2, 3), "D3": (4, 5, 6), "D4": (7, 8, 9)}
DEVICES = tuple(CLASSES)
SHARES = {device: len(own) / 10 for device, own in CLASSES.items()}
EPOCHS = (1, 5, 15, 25, 35, 45)
FREQUENCIES = (10, 5, 2, 1)
BUDGETS = (10, 20)
MOST_EPOCHS, OFTEN, ONCE = EPOCHS[-1], FREQUENCIES[0], FREQUENCIES[-1]
RANDOM, ENTROPY, BALD, RATIOS = "random", "max entropy", "BALD", "variation ratios"
ACQUISITIONS = {name: name.replace(" ", "_").lower() for name in (RANDOM, ENTROPY, BALD, RATIOS)}
INITIAL, ENSEMBLE = "Initial", "Ensemble"
# Devices before the last ensembling and the ensemble after it, as observed metrics name them.
MODELS = {**{device: device for device in DEVICES}, ENSEMBLE: observed.ENSEMBLE}
# Of a run of `experiments.train`, whose model is the ensemble.
TRAINED_ACCURACY = "global_test_accuracy"
TYPE_1, TYPE_2 = "Type I", "Type II"
_PARTITIONS: Mapping[str, Mapping[str, Any]] = {
    TYPE_1: {"partition": "disjoint_classes", "disjoint_classes.classes": tuple(CLASSES.values())},
    TYPE_2: {"partition": "iid"},
}


def run_name(
    epochs: int = MOST_EPOCHS, frequency: int = OFTEN, method: str = AVE, budget: int = BUDGETS[0]
) -> str:
    """The paper's name of a run, such as 'E45F10', with what is not in it."""
    name = f"E{epochs}F{frequency}" + (f" {method}" if method != AVE else "")
    return name if budget == BUDGETS[0] else f"{name}, {budget} acquisitions"


@dataclasses.dataclass(frozen=True)
class Size:
    """Sizes of the runs of one scale."""

    num_seeds: int
    note: str
    flags: Mapping[str, Any]  # Of all runs.
    initial_examples: Mapping[str, int]  # By type.
    initial_flags: Mapping[str, Any]
    acquiring: Mapping[str, Mapping[str, int]]  # Flags by type.
    passes: int  # With dropout.
    fewer_epochs: int = 1  # Divides the epochs that a run's name says.

    def but(self, **flags: Any) -> "Size":
        """This size with other flags of all runs; None takes a flag away."""
        merged = {**self.flags, **flags}
        return dataclasses.replace(self, flags={k: v for k, v in merged.items() if v is not None})

    def start(self, kind: str = TYPE_1) -> s.Training:
        """The server's initial training."""
        own = {"method": "centralized", "pooled": "server", **self.initial_flags}
        return s.Training({**self._data(kind), **own})

    def run(
        self,
        name: str = "",
        *,
        active: str = "",
        method: str = AVE,
        epochs: int = MOST_EPOCHS,
        frequency: int = OFTEN,
        budget: int = BUDGETS[0],
        observe: bool = True,
        **flags: Any,
    ) -> s.Cell:
        """A run whose last round is observed, or not; `active` makes it Type II."""
        kind, acquisition = (TYPE_2, active) if active else (TYPE_1, RANDOM)
        course: dict[str, Any] = {
            "method": METHODS[method],
            "acquisition": ACQUISITIONS[acquisition],
            "local_epochs": max(1, epochs // self.fewer_epochs),
            "rounds": frequency,
            "acquisitions_per_round": budget // frequency,
        }
        if method != AVE:
            course["ensemble_dropout_samples"] = self.passes
        if acquisition != RANDOM:
            course["dropout_samples"] = self.passes
        if active:
            course["weight_decay"] = 0.0001
        all_flags = {**self._data(kind), **self.acquiring[kind], **course, **flags}
        run = s.Training(all_flags, self.start(kind))
        name = name or run_name(epochs, frequency, method, budget)
        if not observe:
            return s.Cell(name, run)
        texts = {"flags": dict(run.flags)}
        call = s.Call(observed.last_round, texts, run.data_sets, run.start, scales_with="flags")
        return s.Cell(name, call)

    def _data(self, kind: str) -> dict[str, Any]:
        return {**self.flags, **_PARTITIONS[kind], "initial_examples": self.initial_examples[kind]}


_TRAINING = {"client_learning_rate": 0.01, "client_momentum": 0.9, "num_clients": 4}
_FASHION = {**_TRAINING, "dataset": "fashion_mnist", "validation_fraction": 0.02}
_DIGITS = {**_TRAINING, "dataset": "digits", "validation_fraction": 0.2}
_INITIAL = {"client_learning_rate": 0.05, "client_momentum": 0, "goal_accuracy": 0.15}
# A pool of Type I has 20 acquisitions, so that nothing is drawn twice.
PAPER = Size(
    num_seeds=5,
    note="The paper's settings, as far as it prints them.",
    flags={**_FASHION, "model": "cnn_edge", "batch_size": 32, "selection_examples": 1000},
    initial_examples={TYPE_1: 400, TYPE_2: 1000},
    initial_flags={**_INITIAL, "batch_size": 32, "local_steps": 5, "rounds": 100},
    acquiring={
        TYPE_1: {"acquisition_size": 400, "pool_size": 8000},
        TYPE_2: {"acquisition_size": 350, "kept_per_class": 5, "pool_size": 4000},
    },
    passes=20,
)
QUICK = dataclasses.replace(
    PAPER,
    num_seeds=3,
    note="Smaller than the paper's: network, acquisitions, pools, batches (see Settings).",
    flags={**_FASHION, "model": "cnn_edge_small", "batch_size": 10, "selection_examples": 400},
    acquiring={
        TYPE_1: {"acquisition_size": 50, "pool_size": 1000},
        TYPE_2: {"acquisition_size": 40, "kept_per_class": 1, "pool_size": 500},
    },
    passes=10,
)
SMOKE = Size(
    num_seeds=1,
    note="Only a test that everything runs: digits, 12 images an acquisition, 1/15 of the epochs.",
    flags={**_DIGITS, "model": "cnn_edge_digits", "batch_size": 10, "selection_examples": 20},
    initial_examples={TYPE_1: 40, TYPE_2: 60},
    initial_flags={"goal_accuracy": 0.15, "local_steps": 1, "rounds": 3},
    acquiring={
        TYPE_1: {"acquisition_size": 12, "pool_size": 240},
        TYPE_2: {"acquisition_size": 2, "kept_per_class": 1, "pool_size": 80},
    },
    passes=2,
    fewer_epochs=15,
)
SIZES = {"smoke": SMOKE, "quick": QUICK, "paper": PAPER}


def scales(cells: Callable[[Size], Iterable[s.Cell]]) -> dict[str, s.Scale]:
    """Returns the scales of a figure, from its cells at a size."""
    return {n: s.Scale(tuple(cells(z)), z.num_seeds, z.note) for n, z in SIZES.items()}


def accuracies(cell: str, models: Iterable[str] = tuple(MODELS)) -> dict[str, s.Measure]:
    """On the whole test set: of devices and of the ensemble, all by default."""
    return {of: s.metric(cell, f"{MODELS[of]}_accuracy") for of in models}


def table(title: str, rows: Rows, form: s.Form = s.PERCENT) -> s.Table:
    """Returns a table: row -> column -> measure."""
    places = (s.Place(r, c, m, form) for r, row in rows.items() for c, m in row.items())
    return s.Table(title, tuple(places))


def leads(
    name: str, rows: Rows, pairs: Iterable[tuple[str, str]], columns: Iterable[str] = (ENSEMBLE,)
) -> dict[str, s.Measure]:
    """Returns checks of pairs of rows; their names may hold {one}, {other} and {of}, the column."""
    return {
        name.format(one=one, other=other, of=column): rows[one][column] - rows[other][column]
        for (one, other), column in itertools.product(pairs, columns)
    }


def bars(panels: Rows, paper_shows: str, columns: int = 3, title: str = "") -> s.Figure:
    """Returns bars of accuracies: panel -> model -> measure."""
    drawn = {panel: {"accuracy": models} for panel, models in panels.items()}
    title, y = title or "Accuracy of four devices and of their ensemble", "test accuracy (%)"
    return s.bars(title, paper_shows, drawn, xlabel="model", ylabel=y, columns=columns)


def arrays(results: s.Results, panels: Mapping[str, tuple[str, str]]) -> dict[str, np.ndarray]:
    """Returns what the first seed's runs left: panel -> cell, name of an array."""
    return {
        panel: np.load(run.file(observed.ARRAYS))[name]
        for panel, (cell, name) in panels.items()
        for run in results.of(cell)[:1]
    }
