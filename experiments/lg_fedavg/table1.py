"""Table 1 of LG-FedAvg: local test, new test and communication on MNIST and CIFAR-10.

python -m experiments.lg_fedavg.table1 --scale=quick --data_dir=DIR --output_dir=out
"""

import dataclasses
import sys
from collections.abc import Mapping

from experiments.lg_fedavg import settings
from experiments.lg_fedavg.settings import (
    AVERAGE,
    FEDAVG,
    LG,
    LOCAL,
    LOCAL_ONLY,
    Setting,
    cell_name,
    positions,
)
from experiments.study import program
from experiments.study.experiment import Check, Claim, Experiment, Grid, Position, Scale
from experiments.study.measures import Measure, metric

MNIST, CIFAR10, _DIGITS = "MNIST", "CIFAR-10", "digits"


def _better(data: str, name: str, one: str, other: str) -> Measure:
    return metric(cell_name(data, one), name) - metric(cell_name(data, other), name)


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
            Check("Local test, LG-FedAvg - FedAvg", _better(data, LOCAL, LG, FEDAVG)),
            Check(
                "New test, LG-FedAvg - FedAvg, above -5 points",
                _better(data, AVERAGE, LG, FEDAVG),
                -_SIMILAR,
            ),
            Check("Half minus the share of parameters that LG-FedAvg sends", fraction),
            Check("Local test, local only - FedAvg", _better(data, LOCAL, LOCAL_ONLY, FEDAVG)),
            Check(
                "New test, FedAvg - local only, above 10 points",
                _better(data, AVERAGE, FEDAVG, LOCAL_ONLY),
                _FAR,
            ),
        ),
    )


_AS_WRITTEN = {
    **settings.MNIST_MLP,
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


_SCALES: dict[str, dict[str, Setting]] = {
    "smoke": {
        _DIGITS: _written(
            settings.SMOKE, goal="0.9", rounds=2, more=2, local_only=2, every=1, seconds=5.0
        ),
    },
    "quick": {
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


# Fifty rounds after the goal leave FedAvg's accuracy on CIFAR-10 swinging by ten points.
_LONGER = "FedAvg, 250 rounds after the goal"


def _scale(name: str, num_seeds: int, note: str) -> Scale:
    cells = [cell for data, one in _SCALES[name].items() for cell in one.cells(data)]
    if name == "quick":
        cells += [
            dataclasses.replace(cell, name=cell_name(CIFAR10, _LONGER), seconds=5 * cell.seconds)
            for cell in dataclasses.replace(
                _SCALES[name][CIFAR10], fed_avg={"rounds": "250", "eval_every": "50"}
            ).cells(CIFAR10)
            if cell.name == cell_name(CIFAR10, FEDAVG)
        ]
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
            5,
            "5 seeds. Non-i.i.d.: goals 95 % and 35 %, then 100 and 50 rounds of either method, "
            "local training for 10 and 20 epochs. Three seeds had been planned; the other two were "
            "added when three left claims undecided. FedAvg went on for 250 rounds on CIFAR-10 "
            "when five still did.",
        ),
        "paper": _scale(
            "paper",
            10,
            "10 seeds. Both methods go on from the goal for 500 and 1,200 rounds; local training "
            "for as many epochs.",
        ),
    },
    grids=(
        Grid("MNIST, non-i.i.d., as written", tuple(positions(MNIST))),
        Grid("CIFAR-10, non-i.i.d., as written", tuple(positions(CIFAR10))),
        Grid(
            "CIFAR-10, FedAvg for longer",
            (
                Position(
                    _LONGER,
                    "New Test Acc. (average)",
                    metric(cell_name(CIFAR10, _LONGER), AVERAGE),
                ),
            ),
            compare=False,
        ),
        Grid("Digits", tuple(positions(_DIGITS)), compare=False),
    ),
    claims=(
        _claim(MNIST),
        _claim(CIFAR10),
        Claim(
            "Ours, CIFAR-10: when FedAvg has gone on for 250 rounds, local training alone is far "
            "below it on new data.",
            (
                Check(
                    "New test, FedAvg - local only, above 10 points",
                    _better(CIFAR10, AVERAGE, _LONGER, LOCAL_ONLY),
                    _FAR,
                ),
            ),
        ),
    ),
    notes=(
        "The goal is evaluated on validation examples, a tenth of each device's training examples; "
        "the paper's authors evaluate it on test examples, and keep each device's best model by "
        "its test examples, which no run here does: the last round counts.",
        "The authors' settings and their notebook's numbers are in another table, for MNIST i.i.d.",
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
