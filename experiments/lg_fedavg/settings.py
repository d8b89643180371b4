"""Settings of the tables on images: FedAvg to a goal, then LG-FedAvg from there."""

from collections.abc import Mapping

import experiments.study as s

FEDAVG, LOCAL_ONLY, LG = "FedAvg", "Local only", "LG-FedAvg"
LOCAL, AVERAGE = "local_test_accuracy_mean", "new_test_accuracy_average"
DIGITS = "digits"
SMOKE = (
    "dataset=digits model=mlp partition=shards num_clients=4 clients_per_round=2 local_steps=2 "
    "batch_size=10 client_learning_rate=0.1 validation_fraction=0.1"
)
SMOKE_NOTE = "Only to see that it runs: digits, 4 clients."
MNIST_MLP = (
    "dataset=mnist model=mlp_lg standardize=true num_clients=100 clients_per_round=10 "
    "local_epochs=1 batch_size=10 client_momentum=0.5"
)
# FedAvg's ensemble is one model, which the server has.
PARAMETERS = ("parameters_communicated", "new_test_parameters")
_GOAL = "goal"
_COUNT, _MILLIONS = s.Form(digits=1), s.Form(digits=1, factor=1e-6)


def flags(text: str) -> dict[str, str]:
    """Returns flags by name, such as 'dataset=mnist rounds=10'; the last of a name counts."""
    return dict(flag.split("=", 1) for flag in text.split())


def runs(
    data: str, common: str, first: str, in_all: str, after: Mapping[str, str], alone: str = ""
) -> list[s.Cell]:
    """Returns the runs on one data set by row, and FedAvg's to the goal.

    Beside the common flags, `first` are those of FedAvg up to the goal, `in_all` those of FedAvg
    for all of its rounds; `after`, by row, from the goal on, of FedAvg unless they name a method;
    `alone`, unless empty, those of local training from the beginning.
    """
    start = s.Training(flags(f"{common} method=fed_avg {first}"))
    tested = flags(f"{common} method=fed_avg new_test=true")
    works = {_GOAL: start, FEDAVG: s.Training(tested | flags(in_all))}
    works |= {row: s.Training(tested | flags(more), start) for row, more in after.items()}
    if alone:
        # All clients: local training needs no cohorts.
        alone = f"method=local_only clients_per_round={tested['num_clients']} {alone}"
        works[LOCAL_ONLY] = s.Training(tested | flags(alone))
    return [s.Cell(f"{data}/{row}", work) for row, work in works.items()]


def total(data: str, row: str, *names: str) -> s.Measure:
    """Returns the sum of numbers over the runs that a row consists of."""
    chain = [_GOAL, LG] if row == LG else [row]
    return s.total(s.metric(f"{data}/{run}", name, 0.0) for run in chain for name in names)


def table(title: str, data: str, *rows: str, compare: bool = True) -> s.Table:
    """Returns the paper's columns of one data set; all rows unless some are named."""
    sent = ("bytes_up_total", "bytes_down_total", "new_test_bytes_up")
    rounds = {FEDAVG: total(data, FEDAVG, "rounds"), LG: s.metric(f"{data}/{_GOAL}", "rounds")}
    columns = {
        "Local Test Acc.": lambda row: s.metric(f"{data}/{row}", LOCAL),
        "New Test Acc. (average)": lambda row: s.metric(f"{data}/{row}", AVERAGE),
        "New Test Acc. (vote)": lambda row: s.metric(f"{data}/{row}", "new_test_accuracy_vote"),
        "# FedAvg Rounds": (rounds.get, _COUNT),
        "# Params Communicated (millions)": (lambda row: total(data, row, *PARAMETERS), _MILLIONS),
        "MB communicated": (lambda row: total(data, row, *sent), _MILLIONS),
        "# LG Rounds": ({LG: s.metric(f"{data}/{LG}", "rounds")}.get, _COUNT),
    }
    rows = rows or (FEDAVG, LOCAL_ONLY, LG)
    return s.table(title, rows, columns, lambda row, of: of(row), compare=compare)
