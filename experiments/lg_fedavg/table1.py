"""Table 1 of LG-FedAvg: local test, new test and communication on MNIST and CIFAR-10.

python -m experiments.lg_fedavg.table1 --scale=quick --data_dir=DIR --output_dir=out
"""

import dataclasses
import sys
from collections.abc import Iterator, Mapping

from experiments.harness import program
from experiments.harness.experiment import (
    Cell,
    Check,
    Claim,
    Experiment,
    Form,
    Grid,
    Position,
    Scale,
    Training,
)
from experiments.harness.measures import Measure, difference, metric
from experiments.harness.store import Run

FEDAVG, LOCAL_ONLY, LG = "FedAvg", "Local only", "LG-FedAvg"
_GOAL = "goal"
MNIST, CIFAR10, RELEASED = "MNIST", "CIFAR-10", "MNIST i.i.d., as released"
_DIGITS = "digits"
_LOCAL, _AVERAGE, _VOTE = (
    "local_test_accuracy_mean",
    "new_test_accuracy_average",
    "new_test_accuracy_vote",
)
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
            _GOAL: before,
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
    """What a row's communication is made of."""
    own = cell_name(data, name)
    return (own,) if name == LOCAL_ONLY else (cell_name(data, _GOAL), own)


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
    return metric(cell_name(data, _GOAL), "rounds"), metric(cell_name(data, name), "rounds")


def _positions(data: str) -> Iterator[Position]:
    for name in (FEDAVG, LOCAL_ONLY, LG):
        own, chain = cell_name(data, name), _chain(data, name)
        yield Position(name, "Local Test Acc.", metric(own, _LOCAL))
        yield Position(name, "New Test Acc. (average)", metric(own, _AVERAGE))
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


def _better(data: str, name: str, one: str, other: str) -> Measure:
    return difference(metric(cell_name(data, one), name), metric(cell_name(data, other), name))


# The paper's words "similar" and "far below" as numbers, set before any run.
_SIMILAR, _FAR = 0.05, 0.10


def _claim(data: str) -> Claim:
    """What §3.1 says of a non-i.i.d. setting."""
    fraction = Measure(
        (cell_name(data, LG),),
        lambda runs: (
            0.5
            - runs[cell_name(data, LG)].metrics["parameters_sent"]
            / runs[cell_name(data, LG)].metrics["parameters_total"]
        ),
    )
    return Claim(
        f"{data}: LG-FedAvg's local models outperform FedAvg where they are at home, their "
        "ensemble is similar to FedAvg on new data at a fraction of the parameters; local training "
        "alone is good at home only.",
        (
            Check("Local test, LG-FedAvg - FedAvg", _better(data, _LOCAL, LG, FEDAVG)),
            Check(
                "New test, LG-FedAvg - FedAvg, above -5 points",
                _better(data, _AVERAGE, LG, FEDAVG),
                -_SIMILAR,
            ),
            Check("Half minus the share of parameters that LG-FedAvg sends", fraction),
            Check("Local test, local only - FedAvg", _better(data, _LOCAL, LOCAL_ONLY, FEDAVG)),
            Check(
                "New test, FedAvg - local only, above 10 points",
                _better(data, _AVERAGE, FEDAVG, LOCAL_ONLY),
                _FAR,
            ),
        ),
    )


def _near(name: str, metric_name: str, wanted: float, tolerance: float) -> Check:
    """A number of ours lies within a distance of one in the authors' notebook."""
    cell = cell_name(RELEASED, name)

    def compute(runs: Mapping[str, Run]) -> float:
        return tolerance - abs(100 * runs[cell].metrics[metric_name] - wanted)

    what = {_LOCAL: "local test", _AVERAGE: "new test (average)"}[metric_name]
    return Check(
        f"{tolerance} points - |{name}, {what} - {wanted}|",
        Measure((cell,), compute),
        form=Form(digits=2),
    )


_MNIST_COMMON = {
    "dataset": "mnist",
    "model": "mlp_lg",
    "standardize": "true",
    "num_clients": "100",
    "clients_per_round": "10",
    "local_epochs": "1",
    "batch_size": "10",
    "client_momentum": "0.5",
}
_AS_WRITTEN = {
    **_MNIST_COMMON,
    "partition": "shards",
    "shards_per_client": "2",
    "client_learning_rate": "0.05",
    "validation_fraction": "0.1",
}
# With Keras's own initial weights, larger than those of the authors' PyTorch, FedAvg stays at 10 %
# for hundreds of rounds at this learning rate.
_CIFAR10 = {
    **_AS_WRITTEN,
    "initialization": "fan_in",
    "dataset": "cifar10",
    "model": "lenet5",
    "augment": "true",
    "batch_size": "50",
    "client_learning_rate": "0.1",
    "learning_rate_decay": "0.005",
}
# The two convolutions are global.
_CIFAR10_LOCAL = {"local_layers": "dense_1,dense_2,output"}
_AS_RELEASED = {
    **_MNIST_COMMON,
    "partition": "iid",
    "loss": "cross_entropy_of_softmax",
    "eval_every": "50",
    "checkpoint_every": "50",
}


def _released(*, fed_avg: int, first: int, lg: int, local_only: int, seconds: float) -> Setting:
    rate = {"client_learning_rate": "0.1"}
    return Setting(
        _AS_RELEASED,
        {**rate, "rounds": str(first)},
        {**rate, "rounds": str(fed_avg - first)},
        {
            "client_learning_rate": "0.05",
            "rounds": str(lg),
            "local_layers": "dense_1,dense_2",
        },
        {
            "client_learning_rate": "0.05",
            "rounds": str(local_only),
            "eval_every": str(local_only),
            "checkpoint_every": "5",
        },
        seconds,
    )


def _written(
    common: Mapping[str, str],
    *,
    goal: str,
    rounds: int,
    more: int,
    local_only: int,
    every: int,
    seconds: float,
    lg: Mapping[str, str] | None = None,
) -> Setting:
    """To the goal, then `more` rounds of either method."""
    common = {**common, "eval_every": str(every), "checkpoint_every": str(every)}
    return Setting(
        common,
        {"goal_accuracy": goal, "rounds": str(rounds)},
        {"rounds": str(more)},
        {"rounds": str(more), **(lg or {})},
        {"rounds": str(local_only), "eval_every": str(local_only)},
        seconds,
    )


_SMOKE = {
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
_SCALES: dict[str, dict[str, Setting]] = {
    "smoke": {
        _DIGITS: _written(_SMOKE, goal="0.9", rounds=2, more=2, local_only=2, every=1, seconds=5.0),
    },
    "quick": {
        RELEASED: _released(fed_avg=815, first=400, lg=100, local_only=10, seconds=200.0),
        MNIST: _written(
            _AS_WRITTEN, goal="0.95", rounds=200, more=100, local_only=10, every=10, seconds=60.0
        ),
        CIFAR10: _written(
            _CIFAR10,
            goal="0.35",
            rounds=200,
            more=50,
            local_only=20,
            every=10,
            seconds=90.0,
            lg=_CIFAR10_LOCAL,
        ),
    },
    "paper": {
        RELEASED: _released(fed_avg=815, first=400, lg=100, local_only=100, seconds=600.0),
        MNIST: _written(
            _AS_WRITTEN, goal="0.975", rounds=1500, more=500, local_only=500, every=5, seconds=3e3
        ),
        CIFAR10: _written(
            _CIFAR10,
            goal="0.57",
            rounds=2000,
            more=1200,
            local_only=1200,
            every=5,
            seconds=6e3,
            lg=_CIFAR10_LOCAL,
        ),
    },
}


def _scale(name: str, num_seeds: int, note: str) -> Scale:
    cells = [cell for data, one in _SCALES[name].items() for cell in one.cells(data)]
    return Scale(tuple(cells), num_seeds, note)


EXPERIMENT = Experiment(
    paper="lg_fedavg",
    name="table1",
    title="Table 1: accuracy and communication on MNIST and CIFAR-10",
    settings="100 devices, 10 of them in each round, 1 local epoch. Sorted by label, the training "
    "examples are cut into 200 shards (of 300, or 250), two for each device, and the test examples "
    "likewise. MNIST: an MLP 784-512-256-256-128-10, batch 10, SGD at 0.05 with momentum 0.5, the "
    "last two layers global. CIFAR-10: LeNet-5, batch 50, SGD at 0.1 with momentum 0.5 and decay "
    "0.005, random crops and mirror images, the two convolutions global. FedAvg until its goal "
    "(97.5 %, 57 %), then LG-FedAvg for 200 to 500 rounds more. Means over 10 runs. The paper's "
    "own numbers are lost from the text that is at hand.",
    scales={
        "smoke": _scale("smoke", 1, "Only to see that it runs: digits, 4 clients."),
        "quick": _scale(
            "quick",
            3,
            "3 seeds. Non-i.i.d.: goals 95 % and 35 %, then 100 and 50 rounds of either method, "
            "local training for 10 and 20 epochs. As released: all of its 815 and 400 + 100 "
            "rounds, local training for 10 epochs of 100.",
        ),
        "paper": _scale(
            "paper",
            10,
            "10 seeds. Both methods go on from the goal for 500 and 1,200 rounds; local training "
            "for as many epochs.",
        ),
    },
    grids=(
        Grid("MNIST, non-i.i.d., as written", tuple(_positions(MNIST))),
        Grid("CIFAR-10, non-i.i.d., as written", tuple(_positions(CIFAR10))),
        Grid(RELEASED, tuple(_positions(RELEASED)), compare=False),
        Grid("Digits", tuple(_positions(_DIGITS)), compare=False),
    ),
    claims=(
        _claim(MNIST),
        _claim(CIFAR10),
        Claim(
            "MNIST i.i.d.: the numbers of the authors' notebook (get_results.ipynb, 10 runs: "
            "FedAvg 97.93 after 815 rounds; LG-FedAvg from round 400, 100 rounds: 97.59, ensemble "
            "97.62).",
            (
                _near(FEDAVG, _LOCAL, 97.9, 0.3),
                _near(LG, _LOCAL, 97.59, 0.5),
                _near(LG, _AVERAGE, 97.62, 0.5),
            ),
        ),
    ),
    notes=(
        "The goal is judged on validation examples, a tenth of each device's training examples; "
        "the paper's authors judge it on test examples, and keep each device's best model by its "
        "test examples, which no run here does: the last round counts.",
        "As released: FedAvg at rate 0.1, a softmax before the cross entropy that takes logits, "
        "the last three layers global, all training examples trained on.",
        "Parameters communicated are counted both ways, from FedAvg's first round on, with one "
        "transfer of all devices' local parts for the ensemble. New test: all devices' models on "
        "all 10,000 test images. Inputs are brought to mean 0 and variance 1 of the training "
        "examples (the authors' code takes ImageNet's for CIFAR-10). Weights begin as in "
        "PyTorch for CIFAR-10: with Keras's larger ones FedAvg stays at 10 % at the printed rate.",
        "The authors' code has a baseline MTL, which the paper does not mention. Its penalty takes "
        "the first ten devices' weights for those of the ten that were drawn, and squares the "
        "elements of the matrix between tasks: it is left out.",
    ),
)


if __name__ == "__main__":
    sys.exit(program.main(EXPERIMENT, __doc__))
