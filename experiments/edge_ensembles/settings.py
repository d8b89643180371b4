"""What the figures of edge ensembles share: runs at each scale, measures, tables and pictures.

A run is named ExFy as in the paper: x epochs on every acquisition, y ensembling steps in its
budget of acquisitions. The paper's epoch goes once "through the mini-batch", an acquisition: it is
one step. Small batches are the other reading.
"""

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import experiments.study as s
from experiments.edge_ensembles import observed

Row = Mapping[str, s.Measure]
Rows = Mapping[str, Row]

AVE, OPT, MIX = "AveFL", "OptFL", "MixFL"
METHODS = {AVE: "ave_fl", OPT: "opt_fl", MIX: "mix_fl"}
# The classes of each device (Type I).
CLASSES = {"D1": (0, 1), "D2": (2, 3), "D3": (4, 5, 6), "D4": (7, 8, 9)}
DEVICES = tuple(CLASSES)
EPOCHS = (1, 5, 15, 25, 35, 45)
FREQUENCIES = (10, 5, 2, 1)
RANDOM, ENTROPY, BALD, RATIOS = "random", "max entropy", "BALD", "variation ratios"
ACQUISITIONS = {name: name.replace(" ", "_").lower() for name in (RANDOM, ENTROPY, BALD, RATIOS)}
FEW_SEEDS = 2  # Of other readings, where no claim asks for them.
FIRST_SEEDS = 3  # Where they decided.
INITIAL, ENSEMBLE, SMALL = "Initial", "Ensemble", "in small batches"
# Devices before the last ensembling and the ensemble after it, as observed metrics name them.
MODELS = {**{device: device for device in DEVICES}, ENSEMBLE: observed.ENSEMBLE}
# Of a run of `experiments.train`, whose model is the ensemble.
TRAINED_ACCURACY = "global_test_accuracy"
INITIAL_ACCURACY = s.metric(INITIAL, TRAINED_ACCURACY)
TYPE_1, TYPE_2 = "Type I", "Type II"
_PARTITIONS: Mapping[str, Mapping[str, Any]] = {
    TYPE_1: {"partition": "disjoint_classes", "disjoint_classes.classes": tuple(CLASSES.values())},
    TYPE_2: {"partition": "iid"},
}
_TRAINING = {"client_learning_rate": 0.01, "client_momentum": 0.9, "num_clients": 4}
_FASHION = {**_TRAINING, "dataset": "fashion_mnist", "validation_fraction": 0.02}
_DIGITS = {**_TRAINING, "dataset": "digits", "validation_fraction": 0.2}
_INITIAL = {"client_learning_rate": 0.05, "client_momentum": 0, "batch_size": 32}
# The paper prints 15 % for Type I alone; Type II trains until it has converged.
_UNTIL: Mapping[str, Mapping[str, Any]] = {
    TYPE_1: {"goal_accuracy": 0.15, "local_steps": 5, "rounds": 100},
    TYPE_2: {"local_epochs": 10, "rounds": 10},
}


def run_name(
    epochs: int = 45, frequency: int = 10, method: str = AVE, budget: int = 10, small: bool = False
) -> str:
    """The paper's name of a run, such as 'E45F10', with what is not in it."""
    name = f"E{epochs}F{frequency}" + f" {method}" * (method != AVE)
    return name + f", {budget} acquisitions" * (budget != 10) + f", {SMALL}" * small


@dataclasses.dataclass(frozen=True)
class Size:
    """Sizes of the runs of one scale."""

    num_seeds: int
    note: str
    flags: Mapping[str, Any]  # Of all runs.
    initial_examples: Mapping[str, int]  # By type.
    images: int  # That a device trains on in an acquisition.
    kept_per_class: int  # Of these, Type II.
    pool_size: int
    passes: int  # With dropout.
    small_batch: int  # Examples in a step, where an epoch goes through an acquisition in batches.
    fewer_epochs: int = 1  # Divides the epochs that a run's name says.

    def but(self, **flags: Any) -> "Size":
        """This size with other flags of all runs."""
        return dataclasses.replace(self, flags={**self.flags, **flags})

    def start(self, kind: str = TYPE_1, until: str = "") -> s.Training:
        """The server's initial training, by default until what the paper says of the type."""
        own = {"method": "centralized", "pooled": "server", **_INITIAL, **_UNTIL[until or kind]}
        own["rounds"] = max(1, own["rounds"] // self.fewer_epochs)
        return s.Training({**self._flags(kind), **own})

    def run(
        self,
        name: str = "",
        *,
        active: str = "",
        method: str = AVE,
        epochs: int = 45,
        frequency: int = 10,
        budget: int = 10,
        small: bool = False,
        until: str = "",
        observe: Callable[..., dict[str, float]] | None = observed.last_round,
        num_seeds: int | None = None,
        **flags: Any,
    ) -> s.Cell:
        """A run in small batches or whole acquisitions; `observe` measures its last round, or none.

        `active` makes it Type II; `until` is as of `start`.
        """
        kind, acquisition = (TYPE_2, active) if active else (TYPE_1, RANDOM)
        course = {
            "method": METHODS[method],
            "acquisition": ACQUISITIONS[acquisition],
            "acquisition_size": self.images - 10 * self.kept_per_class * (kind == TYPE_2),
            "kept_per_class": self.kept_per_class if active else None,
            "pool_size": self.pool_size,
            "local_epochs": max(1, epochs // self.fewer_epochs),
            "rounds": frequency,
            "acquisitions_per_round": budget // frequency,
            "ensemble_dropout_samples": None if method == AVE else self.passes,
            "dropout_samples": None if acquisition == RANDOM else self.passes,
            "batch_size": self.small_batch if small else self.images,
            "weight_decay": 0.0001 if active else None,
            **flags,
        }
        given = {flag: value for flag, value in course.items() if value is not None}
        run = s.Training({**self._flags(kind), **given}, self.start(kind, until))
        name = name or run_name(epochs, frequency, method, budget, small)
        if observe is None:
            return s.Cell(name, run, num_seeds)
        texts = {"flags": dict(run.flags)}
        call = s.Call(observe, texts, run.data_sets, run.start, scales_with="flags")
        return s.Cell(name, call, num_seeds)

    def _flags(self, kind: str) -> dict[str, Any]:
        return {**self.flags, **_PARTITIONS[kind], "initial_examples": self.initial_examples[kind]}


# Nothing of a pool is acquired twice. The budget takes seven eighths of the paper's 4,000 images:
# by then, random and active devices have had the same ones. So the pool is twice as large.
PAPER = Size(
    num_seeds=5,
    note="The paper's settings, as far as it prints them, with twice its pool.",
    flags={**_FASHION, "model": "cnn_edge", "selection_examples": 1000},
    initial_examples={TYPE_1: 400, TYPE_2: 1000},
    images=400,
    kept_per_class=5,
    pool_size=8000,
    passes=20,
    small_batch=32,
)
QUICK = dataclasses.replace(
    PAPER,
    num_seeds=FIRST_SEEDS,
    note="The network, acquisitions and pools are smaller than the paper's.",
    flags={**_FASHION, "model": "cnn_edge_small", "selection_examples": 400},
    images=50,
    kept_per_class=1,
    pool_size=1000,
    passes=10,
    small_batch=10,
)
SMOKE = dataclasses.replace(
    QUICK,
    num_seeds=1,
    note="Only a test that everything runs: digits, 12 images an acquisition, 1/15 of the epochs.",
    flags={**_DIGITS, "model": "cnn_edge_digits", "selection_examples": 20},
    initial_examples={TYPE_1: 40, TYPE_2: 60},
    images=12,
    pool_size=240,
    passes=2,
    small_batch=5,
    fewer_epochs=15,
)
SIZES = {"smoke": SMOKE, "quick": QUICK, "paper": PAPER}


def scales(
    cells: Callable[[Size], Iterable[s.Cell]], quick_seeds: int = QUICK.num_seeds
) -> dict[str, s.Scale]:
    """Returns the scales of a figure, from its cells at a size.

    `quick_seeds` was fixed after earlier ones: after three, half as many again as their variance
    said would decide the figure's open claims, those that take at most 30; later that number.
    """
    seeds = {name: size.num_seeds for name, size in SIZES.items()} | {"quick": quick_seeds}
    return {n: s.Scale(tuple(cells(z)), seeds[n], z.note) for n, z in SIZES.items()}


def accuracies(cell: str, models: Iterable[str] = tuple(MODELS)) -> dict[str, s.Measure]:
    """On the whole test set: of devices and of the ensemble, all by default."""
    return {of: s.metric(cell, f"{MODELS[of]}_accuracy") for of in models}


def ensemble(cell: str) -> s.Measure:
    """Accuracy of the ensemble."""
    return s.metric(cell, f"{observed.ENSEMBLE}_accuracy")


def correct(cell: str, model: str = ENSEMBLE) -> list[s.Measure]:
    """Test images of each class that a model classifies correctly."""
    return [s.metric(cell, f"{MODELS[model]}_correct_{label}") for label in range(10)]


def unlike(one: str, other: str) -> s.Measure:
    """Total variation between the classes of what the ensembles of two runs classify correctly."""
    a, b = correct(one), correct(other)
    gaps = (abs(x / s.total(a) - y / s.total(b)) for x, y in zip(a, b, strict=True))
    return s.total(gaps) / 2


def table(title: str, rows: Rows, form: s.Form = s.PERCENT) -> s.Table:
    """Returns a table: row -> column -> measure."""
    places = (s.Place(r, c, m, form) for r, row in rows.items() for c, m in row.items())
    return s.Table(title, tuple(places))


def minus(text: str, one: Row, other: Row) -> dict[str, s.Measure]:
    """Returns checks: differences of what has the same name."""
    return {f"{text}, {name}": measure - other[name] for name, measure in one.items()}


def bars(panels: Rows, paper_shows: str, columns: int = 3, title: str = "") -> s.Figure:
    """Returns bars of accuracies: panel -> model -> measure."""
    drawn = {panel: {"accuracy": models} for panel, models in panels.items()}
    title, y = title or "Accuracy of four devices and of their ensemble", "test accuracy (%)"
    return s.bars(title, paper_shows, drawn, xlabel="model", ylabel=y, columns=columns)
