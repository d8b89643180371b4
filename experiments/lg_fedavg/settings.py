"""Settings of the tables on images: FedAvg to a goal, then LG-FedAvg from there."""

import dataclasses
from collections.abc import Iterator, Mapping

from experiments.study.experiment import Cell, Form, Position, Training
from experiments.study.measures import Measure, metric
from experiments.study.store import Run

FEDAVG, LOCAL_ONLY, LG = "FedAvg", "Local only", "LG-FedAvg"
GOAL = "goal"
LOCAL, AVERAGE = "local_test_accuracy_mean", "new_test_accuracy_average"
_VOTE = "new_test_accuracy_vote"
_COUNT, _MILLIONS, _MEGABYTES = Form(digits=1), Form(digits=1, factor=1e-6), Form(1, 1e-6)


@dataclasses.dataclass(frozen=True)
class Setting:
    """One data set at one scale: FedAvg to its goal, and what goes on from there.

    Attributes:
      common: Flags of all its runs.
      first: Flags of FedAvg until the goal, or for the rounds before LG-FedAvg.
      fed_avg: Flags of FedAvg from there on.
      lg: Flags of LG-FedAvg from there on.
      local_only: Flags of local training, from the beginning.
      seconds: Of the longest of them, on two cores.
    """

    common: Mapping[str, str]
    first: Mapping[str, str]
    fed_avg: Mapping[str, str]
    lg: Mapping[str, str]
    local_only: Mapping[str, str]
    seconds: float

    def cells(self, data: str) -> Iterator[Cell]:
        """The runs by the rows' names, and the one that two of them start from."""

        def run(method: str, flags: Mapping[str, str], start: Training | None = None) -> Training:
            return Training({**self.common, "method": method, **flags}, start)

        before = run("fed_avg", self.first)
        tested = {"new_test": "true"}
        for name, work in {
            GOAL: before,
            FEDAVG: run("fed_avg", {**self.fed_avg, **tested}, before),
            LG: run("lg_fedavg", {**self.lg, **tested}, before),
            LOCAL_ONLY: run(
                "local_only", {**self.local_only, **tested, "clients_per_round": self.num_clients}
            ),
        }.items():
            yield Cell(cell_name(data, name), work, self.seconds)

    @property
    def num_clients(self) -> str:
        """All of them: local training needs no cohorts."""
        return self.common["num_clients"]


def cell_name(data: str, name: str) -> str:
    """The cell's name, such as 'MNIST/LG-FedAvg'."""
    return f"{data}/{name}"


def _chain(data: str, name: str) -> tuple[str, ...]:
    """Components of a row's communication."""
    own = cell_name(data, name)
    return (own,) if name == LOCAL_ONLY else (cell_name(data, GOAL), own)


def _sum(cells: tuple[str, ...], *names: str) -> Measure:
    """The sum of these numbers over runs that follow one another."""

    def compute(runs: Mapping[str, Run]) -> float:
        return sum(runs[cell].metrics.get(name, 0.0) for cell in cells for name in names)

    return Measure(cells, compute)


def _rounds(data: str, name: str) -> tuple[Measure | None, Measure | None]:
    """The rounds of FedAvg and of LG-FedAvg."""
    if name == LOCAL_ONLY:
        return None, None
    if name == FEDAVG:
        return _sum(_chain(data, name), "rounds"), None
    return metric(cell_name(data, GOAL), "rounds"), metric(cell_name(data, name), "rounds")


def positions(data: str) -> Iterator[Position]:
    """The table's places, in the paper's order."""
    for name in (FEDAVG, LOCAL_ONLY, LG):
        own, chain = cell_name(data, name), _chain(data, name)
        yield Position(name, "Local Test Acc.", metric(own, LOCAL))
        yield Position(name, "New Test Acc. (average)", metric(own, AVERAGE))
        yield Position(name, "New Test Acc. (vote)", metric(own, _VOTE))
        for column, rounds in zip(
            ("# FedAvg Rounds", "# LG Rounds"), _rounds(data, name), strict=True
        ):
            if rounds is not None:
                yield Position(name, column, rounds, _COUNT)
        # FedAvg's ensemble is one model, which is at the server.
        yield Position(
            name,
            "# Params Communicated (millions)",
            _sum(chain, "parameters_communicated", "new_test_parameters"),
            _MILLIONS,
        )
        yield Position(
            name,
            "MB communicated",
            _sum(chain, "bytes_up_total", "bytes_down_total", "new_test_bytes_up"),
            _MEGABYTES,
        )


MNIST_MLP = {
    "dataset": "mnist",
    "model": "mlp_lg",
    "standardize": "true",
    "num_clients": "100",
    "clients_per_round": "10",
    "local_epochs": "1",
    "batch_size": "10",
    "client_momentum": "0.5",
}
SMOKE = {
    "dataset": "digits",
    "model": "mlp",
    "partition": "shards",
    "num_clients": "4",
    "clients_per_round": "2",
    "local_steps": "2",
    "batch_size": "10",
    "client_learning_rate": "0.1",
    "validation_fraction": "0.1",
}
