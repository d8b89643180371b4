"""Table 1 of LG-FedAvg: local test, new test and communication on MNIST and CIFAR-10."""

import dataclasses
from collections.abc import Iterator

import experiments.study as s
from experiments.lg_fedavg import settings
from experiments.lg_fedavg.settings import AVERAGE, DIGITS, FEDAVG, LG, LOCAL

MNIST, CIFAR10 = "MNIST", "CIFAR-10"
# Other readings of the text: shards of the sorted examples have up to two classes each; in the
# released code the decayed rate never reaches the devices.
_SORTED, _CONSTANT = "MNIST, shards across classes", "CIFAR-10, constant rate"
_READINGS = {_SORTED: (MNIST, "single_class=false"), _CONSTANT: (CIFAR10, "learning_rate_decay=0")}
# At 250 rounds in all, FedAvg's accuracy on CIFAR-10 still varies by ten points.
_LONGER = "FedAvg, 250 rounds after the goal"
# Up to the paper's goal, one seed.
_FAR = {"CIFAR-10 to 57 %": "", "CIFAR-10 to 57 %, constant rate": _READINGS[_CONSTANT][1]}
_ON = "FedAvg, 150 rounds after the goal"

_SHARDS = (
    f"{settings.MNIST_MLP} partition=shards shards_per_client=2 single_class=true "
    "client_learning_rate=0.05 validation_fraction=0.1"
)
_FLAGS = {
    DIGITS: settings.SMOKE,
    MNIST: _SHARDS,
    # With Keras's own initial weights, larger than those of the authors' PyTorch, FedAvg stays at
    # 10 % for hundreds of rounds at this learning rate.
    CIFAR10: f"{_SHARDS} initialization=fan_in dataset=cifar10 model=lenet5 augment=true "
    "batch_size=50 client_learning_rate=0.1 learning_rate_decay=0.005",
}
# The two convolutions are global.
_LOCAL_LAYERS = {CIFAR10: "local_layers=dense_1,dense_2,output"}
# Goal, FedAvg's rounds in all, LG-FedAvg's after the goal, epochs of local training, eval_every.
_LENGTHS = {
    "smoke": {DIGITS: (0.9, 2, 2, 2, 1)},
    "quick": {MNIST: (0.95, 300, 100, 10, 10), CIFAR10: (0.35, 250, 150, 20, 10)},
    "paper": {MNIST: (0.975, 1500, 500, 500, 5), CIFAR10: (0.57, 2000, 1200, 1200, 5)},
}


def _cells(scale: str) -> list[s.Cell]:
    found, lengths = [], _LENGTHS[scale]
    read = {data: (of, more) for data, (of, more) in _READINGS.items() if of in lengths}
    for data, (of, more) in ({of: (of, "") for of in lengths} | read).items():
        goal, rounds, own, epochs, every = lengths[of]
        after = {LG: f"method=lg_fedavg rounds={own} {_LOCAL_LAYERS.get(of, '')}"}
        if (scale, data) == ("quick", CIFAR10):
            after[_LONGER] = "rounds=250 eval_every=50"
        common = f"{_FLAGS[of]} {more} eval_every={every} checkpoint_every={every}"
        first, in_all = f"goal_accuracy={goal} rounds={rounds}", f"rounds={rounds}"
        alone = "" if data in read else f"rounds={epochs} eval_every={epochs}"
        found += settings.runs(data, common, first, in_all, after, alone)
    return found


def _far() -> list[s.Cell]:
    """CIFAR-10 up to the paper's goal, and each method from there."""
    goal, rounds, *_, every = _LENGTHS["paper"][CIFAR10]
    after = {LG: f"method=lg_fedavg rounds=150 {_LOCAL_LAYERS[CIFAR10]}", _ON: "rounds=150"}
    first = f"goal_accuracy={goal} rounds={rounds}"
    found = []
    for data, more in _FAR.items():
        common = f"{_FLAGS[CIFAR10]} {more} eval_every={every} checkpoint_every={every}"
        found += settings.runs(data, common, first, f"rounds={rounds}", after)
    here = [cell for cell in found if not cell.name.endswith(f"/{FEDAVG}")]  # An hour each.
    return [dataclasses.replace(cell, num_seeds=1) for cell in here]


_LATER = {_LONGER: f"{CIFAR10}/{_LONGER}"} | {f"{data}: {_ON}": f"{data}/{_ON}" for data in _FAR}
_NEW_TEST = {"New Test Acc. (average)": AVERAGE}
# The authors print FedAvg and LG-FedAvg side by side for MNIST i.i.d. alone, in their notebook: new
# test 97.93 and 97.62. The numbers of Table 1 are lost in our copy.
_SIMILAR = 0.31


def _claims(data: str) -> Iterator[s.Claim]:
    def gap(accuracy: str) -> s.Measure:
        return s.metric(f"{data}/{LG}", accuracy) - s.metric(f"{data}/{FEDAVG}", accuracy)

    sent = {row: settings.total(data, row, *settings.PARAMETERS) for row in (LG, FEDAVG)}
    similar = f"{_SIMILAR} points - |new test, LG-FedAvg - FedAvg|"
    yield s.claim(
        f"{data}: on new data LG-FedAvg's ensemble is similar to FedAvg, and fewer parameters are "
        "sent in all.",
        {
            similar: _SIMILAR / 100 - abs(gap(AVERAGE)),
            "1 - LG-FedAvg's share of FedAvg's parameters": 1 - sent[LG] / sent[FEDAVG],
        },
    )
    # The text says so of CIFAR-10 alone.
    label = data if data == CIFAR10 else f"Ours ({data})"
    text = f"{label}: LG-FedAvg's local models outperform FedAvg on the devices' own test data."
    yield s.claim(text, {"Local test, LG-FedAvg - FedAvg": gap(LOCAL)})


EXPERIMENT = s.Experiment(
    "lg_fedavg.table1",
    "Table 1: accuracy and communication on MNIST and CIFAR-10",
    scales={
        "smoke": s.Scale(_cells("smoke"), 1, settings.SMOKE_NOTE),
        "quick": s.Scale(
            _cells("quick") + _far(), 5, "Lower goals, fewer rounds and epochs; 5 seeds."
        ),
        "paper": s.Scale(_cells("paper"), 10, "10 seeds."),
    },
    tables=[
        settings.table("MNIST, non-i.i.d., as written", MNIST),
        settings.table("CIFAR-10, non-i.i.d., as written", CIFAR10),
        *(settings.table(f"{data}, one seed", data, LG) for data in _FAR),
        s.table("CIFAR-10, FedAvg for longer", _LATER, _NEW_TEST, s.metric, compare=False),
        *(settings.table(read, read, FEDAVG, LG) for read in _READINGS),
        settings.table("Digits", DIGITS, compare=False),
    ],
    claims=[*_claims(MNIST), *_claims(CIFAR10)],
)
