"""Settings of Figures 2a and 2b and Table 1: clustered clients and the methods compared."""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure as Drawing

from experiments.study import statistics
from experiments.study.experiment import (
    PERCENT,
    Cell,
    Check,
    Form,
    Grid,
    Position,
    Training,
)
from experiments.study.measures import Measure, metric
from experiments.study.sections import values
from experiments.study.store import Results

SHUFFLED = ("0.0", "0.2", "0.4", "0.6", "0.8", "1.0")
CGAU, AVERAGED, BASELINE = "CGAU", "CGAU, conditioning averaged", "Baseline (ReLU)"
METHODS: dict[str, dict[str, str]] = {
    CGAU: {"method": "cgau"},
    AVERAGED: {"method": "cgau", "cgau.variant": "shared_one_hot"},
    BASELINE: {"method": "fed_avg"},
}
_START_SECONDS = 8.0  # Reading data, clusters, tracing, and the first round's compilation.

SCHEME = (
    "10 clients, all of them in each round: per class, KMeans with 10 clusters on the first two "
    "principal components of the training points; cluster k of every class is client k's; a share "
    "of the points is then shuffled among clients. FedAvg with 10 local steps of batch 32, or one "
    "pass where that is less; SGD with momentum, its state new in each round, as the paper's "
    "footnote says it was. Two hidden layers. The round with the lowest loss on all clients' "
    "validation examples is the one that is tested. From the authors' code: momentum 0.9, dropout "
    "0.5 before each hidden layer, and which cluster of a class is whose."
)
NOTES = (
    "Points go to the clusters of their own class, test points too, as in the authors' code. "
    "CGAU keeps the conditioning at the client; with 'conditioning averaged' the client is a "
    "one-hot input whose weights are averaged like all others, as in the authors' code. Unlike "
    "there, the conditioning starts at 0 and has no bias of its own, the output layer is not "
    "conditioned (nor is it in the text), clients are weighted by all of their examples rather "
    "than those seen in a round, and the learning rate's decay, reset in each round, is left out.",
)


@dataclasses.dataclass(frozen=True)
class Size:
    """One data set at one scale.

    Attributes:
      common: Flags of all its runs.
      shuffled: The levels of shuffling.
      seconds: Of a run's rounds, on two cores.
    """

    common: Mapping[str, str]
    shuffled: Sequence[str]
    seconds: float

    def cells(self, data: str) -> Iterator[Cell]:
        """The runs: each method at each level."""
        for level in self.shuffled:
            for name, flags in METHODS.items():
                yield Cell(
                    cell_name(data, level, name),
                    Training({**self.common, **flags, "shuffle_fraction": level}),
                    _START_SECONDS + self.seconds,
                )


COMMON = {
    "partition": "clusters",
    "num_clients": "10",
    "allow_empty_test": "true",
    "local_steps": "10",
    "at_most_one_pass": "true",
    "batch_size": "32",
    "client_momentum": "0.9",
}
SMOKE = {
    **COMMON,
    "dataset": "digits",
    "num_clients": "3",
    "model": "mlp_two_layers",
    "client_learning_rate": "0.1",
    "local_steps": "2",
    "positive_label": "0",
    "class_weights": "1,50",
    "validation_fraction": "0.1",
    "rounds": "2",
}


def cell_name(data: str, level: str, method: str) -> str:
    """The cell's name, such as 'cough/0.2/CGAU'."""
    return f"{data}/{level}/{method}"


def column(level: str) -> str:
    """A level's column."""
    return f"shuffled {level}"


def grid(data: str, title: str, name: str, form: Form, *, compare: bool = True) -> Grid:
    """A number of all runs on a data set: methods by levels of shuffling."""
    positions = tuple(
        Position(method, column(level), metric(cell_name(data, level, method), name), form)
        for method in METHODS
        for level in SHUFFLED
    )
    return Grid(title, positions, compare)


def gain(data: str, level: str, name: str, method: str = CGAU, over: str = BASELINE) -> Measure:
    """By how much a method is better than another, in a number of their runs."""
    return metric(cell_name(data, level, method), name) - metric(cell_name(data, level, over), name)


def check(data: str, level: str, name: str, form: Form = PERCENT) -> Check:
    """CGAU is better than the baseline."""
    return Check(f"CGAU - baseline, {column(level)}", gain(data, level, name), form=form)


def draw(results: Results, data: str, name: str, label: str) -> Drawing | None:
    """A line for each method over the levels of shuffling, with 95 % intervals over seeds."""
    figure = Drawing(figsize=(7, 4.5), layout="constrained")
    ax = figure.subplots()
    for number, method in enumerate(METHODS):
        points = []
        for level in SHUFFLED:
            found = values(metric(cell_name(data, level, method), name), results)
            if found:
                points.append((float(level), statistics.estimate(found)))
        if not points:
            continue
        x, estimates = zip(*points, strict=True)
        mean = np.array([estimate.mean for estimate in estimates])
        bars = None  # One seed has no interval.
        if all(e.low is not None and e.high is not None for e in estimates):
            bars = np.abs(np.array([(e.low, e.high) for e in estimates]).T - mean)
        # Side by side, so that bars do not hide one another.
        beside = (number - 1) * 0.012
        ax.errorbar(
            np.array(x) + beside,
            mean,
            yerr=bars,
            capsize=3,
            marker="o",
            color=f"C{number}",
            label=method,
        )
    if not ax.has_data():
        return None
    ax.set(xlabel="proportion of shuffled points", ylabel=f"{label}, mean and 95 % interval")
    ax.grid(alpha=0.3)
    ax.legend()
    return figure
