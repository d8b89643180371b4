"""Times a round of WAFFLe against one of FedAvg on the same network."""

import experiments.study as s
from experiments.study.timing import round_times
from experiments.waffle import settings
from experiments.waffle.settings import CIFAR, DATA, FMNIST, MNIST

_COLUMNS = {
    "FedAvg, s": lambda data: s.metric(data, "fed_avg_seconds"),
    "WAFFLe, s": lambda data: s.metric(data, "waffle_seconds"),
    "WAFFLe / FedAvg": lambda data: 1 + s.metric(data, "waffle_more"),
}
_TITLE = "Median time of alternating rounds"
_TWICE = "Ours: ({}) a round of WAFFLe takes at most twice as long as one of FedAvg."
_LESS = {data: {"2 - WAFFLe / FedAvg": 1 - s.metric(data, "waffle_more")} for data in DATA}


def _cell(size: settings.Size, data: str, rounds: int) -> s.Cell:
    flags = dict(s.Training(size[f"{data}/unimodal"] | {"method": "waffle"}).flags)
    del flags["method"]
    own: dict = {"flags": flags, "methods": ("waffle", "fed_avg"), "rounds": rounds}
    return s.call(data, round_times, flags["dataset"], alone=True, scales_with="rounds", **own)


_OTHERS = [_cell(settings.CONVOLUTIONS, data, 6) for data in (FMNIST, CIFAR)]
_NOTE = "MNIST: 20 rounds per method. Others: half as many clients, 6 rounds. 5 seeds."

EXPERIMENT = s.Experiment(
    "waffle.cost",
    "Not in the paper: what a round costs",
    scales=settings.scales(
        [_cell(settings.SMOKE, data, 1) for data in DATA],
        s.Scale([_cell(settings.PAPER, MNIST, 20), *_OTHERS], 5, _NOTE),
        [_cell(settings.PAPER, data, 20) for data in DATA],
    ),
    tables=[s.table(_TITLE, [*DATA], _COLUMNS, lambda data, of: of(data), s.Form())],
    claims=[s.claim(_TWICE.format(data), less, form=s.Form()) for data, less in _LESS.items()],
)
