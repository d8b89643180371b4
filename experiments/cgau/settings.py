"""Clustered clients, and the methods that Figures 2a and 2b compare on them."""

from collections.abc import Callable, Iterable, Mapping

import experiments.study as s

SHUFFLED = ("0.0", "0.2", "0.4", "0.6", "0.8", "1.0")
SOME = ("0.0", "0.4", "1.0")
COLUMNS = {f"shuffled {level}": level for level in SHUFFLED}
CGAU, BASELINE = "CGAU", "Baseline (ReLU)"
# The text assigns points to the nearest cluster of any class, the authors' code of their own class.
_NEAREST = {"clusters.assignment": "nearest"}
_METHODS = {
    CGAU: {"method": "cgau"},
    "CGAU, conditioning averaged": {"method": "cgau", "cgau.variant": "shared_one_hot"},
    "CGAU, as released": {"method": "cgau", "cgau.variant": "as_released"},
    BASELINE: {"method": "fed_avg"},
    "CGAU, nearest clusters": {"method": "cgau", **_NEAREST},
    "Baseline, nearest clusters": {"method": "fed_avg", **_NEAREST},
}
ROWS = tuple(_METHODS)

# Texts throughout, since calls of functions take them as well.
Flags = Mapping[str, str]
_CLIENTS = {"partition": "clusters", "num_clients": "10", "allow_empty_test": "true"}
_STEPS = {"local_steps": "10", "at_most_one_pass": "true", "batch_size": "32"}
COMMON = {**_CLIENTS, **_STEPS, "client_momentum": "0.9", "model": "mlp_two_layers"}
_CIFAR = {"dataset": "cifar10_embeddings", "model": "mlp_two_layers_128"}
CIFAR = {**COMMON, **_CIFAR, "client_learning_rate": "0.01"}
_ZEROS = {"dataset": "digits", "positive_label": "0", "class_weights": "1,50", "num_clients": "3"}
_BRIEF = {"rounds": "2", "local_steps": "2", "client_learning_rate": "0.1"}
SMOKE = {**COMMON, **_ZEROS, **_BRIEF, "validation_fraction": "0.1"}
SMOKE_NOTE = "Only to see that it runs: zeros among digits, 3 clients, 2 rounds of 2 steps."
PAPER_NOTE = "The paper's settings, with the data that the folder holds."
SELDOM = {"eval_every": "10", "checkpoint_every": "50"}

# For the lead of CGAU, five seeds were too few: their variance said that 33 would decide it on
# CIFAR-10, and 29 that 41 would in cough detection.
FEW_SEEDS = 5

# Gives a number of a data set's runs with a method at a level of shuffling.
Measured = Callable[[str, str], s.Measure]


def cells(
    data: str,
    flags: Flags,
    shuffled: Iterable[str] = SHUFFLED,
    methods: Iterable[str] = ROWS,
    num_seeds: int | None = None,
) -> tuple[s.Cell, ...]:
    """Each method at each level of shuffling, such as 'cough/0.2/CGAU'."""
    levels = {level: {"shuffle_fraction": level} for level in shuffled}
    chosen = {method: _METHODS[method] for method in methods}
    name = f"{data}/{{level}}/{{method}}"
    return s.cells(name, flags, num_seeds=num_seeds, level=levels, method=chosen)


def judged_cells(data: str, flags: Flags, rest_seeds: int = 12) -> tuple[s.Cell, ...]:
    """All seeds of what claims compare at three levels, some at others; five of other methods."""
    judged, rest = [CGAU, BASELINE], [level for level in SHUFFLED if level not in SOME]
    others = [method for method in ROWS if method not in judged]
    return (
        *cells(data, flags, SOME, judged),
        *cells(data, flags, rest, judged, num_seeds=rest_seeds),
        *cells(data, flags, SOME, others, num_seeds=FEW_SEEDS),
    )


def measured(data: str, name: str) -> Measured:
    """A number of all runs on a data set, by its name in their metrics."""
    return lambda method, level: s.metric(f"{data}/{level}/{method}", name)


def lines(number: str, of: Measured, paper_shows: str) -> s.Figure:
    """A line for each method over the levels of shuffling."""
    x = "proportion of shuffled points"
    drawn = {method: {float(level): of(method, level) for level in SHUFFLED} for method in ROWS}
    title = f"{number} over the {x}"
    return s.lines(title, paper_shows, drawn, xlabel=x, ylabel=number, dodge=0.012)
