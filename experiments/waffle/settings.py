"""Settings of WAFFLe's tables: data, sub-populations, methods, sizes, printed values."""

import dataclasses
import re
from collections.abc import Iterator, Mapping, Sequence

from experiments.study.experiment import Cell, Printed, Scale, Training
from experiments.study.measures import Measure
from experiments.study.store import Run

MNIST, FMNIST, CIFAR = "MNIST", "FMNIST", "CIFAR-10"
UNIMODAL, MULTIMODAL = "unimodal", "multimodal"
FED_AVG, FED_PROX, Q_FFL, WAFFLE = "FedAvg", "FedProx", "q-FFL", "WAFFLe"
# Row -> flags beside those of the data.
METHODS: dict[str, dict[str, str]] = {
    FED_AVG: {"method": "fed_avg"},
    FED_PROX: {"method": "fed_prox", "proximal_strength": "1.0"},
    Q_FFL: {"method": "q_ffl", "q": "0.001"},
    WAFFLE: {"method": "waffle"},
}
BASELINES = (FED_AVG, FED_PROX, Q_FFL)

ACCURACY = "local_test_accuracy_mean"
MAJORITY, MINORITY = f"{ACCURACY}_majority", f"{ACCURACY}_minority"
GAP, VARIANCE = "local_test_accuracy_gap", "local_test_accuracy_variance"
# Of a client's training examples; the paper does not print it.
_TEST_FRACTION = "0.2"


@dataclasses.dataclass(frozen=True)
class Data:
    """One data set as the paper uses it.

    Attributes:
      flags: Flags of all its runs.
      factors: F of the layers that WAFFLe factorises.
      minority: The classes of the minority.
      sizes: Clients of the majority and of the minority.
    """

    flags: Mapping[str, str]
    factors: str
    minority: str
    sizes: tuple[int, int]


# Appendix B and C. Sub-populations: odd and even digits; footwear (sandal, sneaker, ankle boot) and
# shirts (T-shirt/top, shirt) against the rest; animals and vehicles.
DATA = {
    MNIST: Data(
        {"dataset": "mnist", "model": "mlp", "client_learning_rate": "0.04"},
        "dense_1=120",
        "0,2,4,6,8",
        (100, 20),
    ),
    FMNIST: Data(
        {"dataset": "fashion_mnist", "model": "cnn_16_32", "client_learning_rate": "0.02"},
        "conv_1=25,conv_2=25",
        "0,5,6,7,9",
        (90, 20),
    ),
    CIFAR: Data(
        {"dataset": "cifar10", "model": "cnn_16_16", "client_learning_rate": "0.02"},
        "conv_1=10,conv_2=10,dense_1=80,dense_2=40",
        "0,1,8,9",
        (90, 20),
    ),
}
_CLIENTS = 100  # Unimodal.
_SMOKE = Data(
    {"dataset": "digits", "model": "mlp", "client_learning_rate": "0.1"},
    "dense_1=8",
    "0,2,4,6,8",
    (6, 2),
)


@dataclasses.dataclass(frozen=True)
class Size:
    """Sizes of the runs of one scale.

    Attributes:
      data: By name, what stands for a data set.
      clients: How many there are without sub-populations.
      share: C, of the clients in a round.
      flags: Flags of all runs, over those of the data.
      seconds: About how long FedAvg takes on two cores; WAFFLe twice that.
      num_seeds: As `Cell.num_seeds`.
    """

    data: Mapping[str, Data]
    clients: int
    share: float
    flags: Mapping[str, str]
    seconds: float
    num_seeds: int | None = None

    def changed(self, seconds: float, **flags: str) -> "Size":
        """The same with other flags and another time."""
        return dataclasses.replace(self, flags={**self.flags, **flags}, seconds=seconds)

    def training(self, data: str, setting: str, method: str, **flags: str) -> Training:
        """One run; `flags` are over all others."""
        own = self.data[data]
        if setting == UNIMODAL:
            num_clients = self.clients
            dealt = {"partition": "shards", "single_class": "true"}
        else:
            num_clients = sum(own.sizes)
            dealt = {
                "partition": "multimodal",
                "minority_classes": own.minority,
                "minority_clients": str(own.sizes[1]),
            }
        factors = {"factors": own.factors} if method == WAFFLE else {}
        return Training(
            {
                **own.flags,
                **dealt,
                "bias": "false",
                "num_clients": str(num_clients),
                "shards_per_client": "2",
                "local_test_fraction": _TEST_FRACTION,
                "clients_per_round": str(max(1, round(self.share * num_clients))),
                "batch_size": "10",
                **self.flags,
                **METHODS[method],
                **factors,
                **flags,
            }
        )

    def cells(
        self, data: Sequence[str], setting: str, methods: Sequence[str], **flags: str
    ) -> Iterator[Cell]:
        """Runs by the names `cell_name` gives them."""
        for name in data:
            for method in methods:
                seconds = self.seconds * (2.0 if method == WAFFLE else 1.0)
                work = self.training(name, setting, method, **flags)
                yield Cell(cell_name(name, setting, method), work, seconds, self.num_seeds)


def cell_name(data: str, setting: str, method: str) -> str:
    """The cell's name, such as 'MNIST/unimodal/FedAvg'."""
    return f"{data}/{setting}/{method}"


_SECTION_4 = {"rounds": "100", "local_epochs": "5", "eval_every": "4"}
PAPER = Size(DATA, _CLIENTS, 0.1, _SECTION_4, seconds=60.0)
# Convolutions take most of the time: fewer clients train in a round, and there are fewer rounds.
QUICK_CONVOLUTIONS = Size(
    DATA,
    _CLIENTS,
    0.05,
    {"rounds": "30", "local_epochs": "5", "eval_every": "2"},
    seconds=75.0,
    num_seeds=3,
)
SMOKE = Size(
    dict.fromkeys(DATA, _SMOKE),
    8,
    0.25,
    {"rounds": "2", "local_epochs": "1", "eval_every": "1"},
    seconds=4.0,
)
SMOKE_NOTE = "Only to see that everything runs: digits at 8 clients, 2 rounds of an epoch."

SETTINGS = (
    "100 clients with Z = 2 shards of one class each (unimodal); odd digits at 100 clients and "
    "even ones at 20, everything else at 90 and footwear and shirts at 20, animals at 90 and "
    "vehicles at 20 (multimodal). C = 0.1, T = 100 rounds, E = 5 local epochs, batches of 10, SGD "
    "with rate 0.04 (MNIST) or 0.02; mu = 1, q = 0.001. MNIST: 200 hidden units, F = 120. FMNIST: "
    "two 5x5 convolutions with 16 and 32 channels, F = 25. CIFAR-10: two 3x3 convolutions with 16 "
    "channels, 80 and 60 hidden units, F = 10, 10, 80, 40. Each client's data is cut into its own "
    "train and test."
)
NOTES = (
    "What the paper does not print, and what is taken here. The share of a client's examples that "
    "it is tested on: a fifth, as in the paper of FedProx. Which round is evaluated: "
    "the last. Alpha of all tables but 6 and 7: alpha / F = 1. Which classes of FMNIST are "
    "footwear and shirts: sandal, sneaker, ankle boot, T-shirt/top and shirt; with these five the "
    "classes of both groups divide 180 and 40 shards evenly. How many repetitions, and what +- is.",
    "Networks are without biases, as the printed counts have it; only the training examples are "
    "assigned, each class cut into equally many shards. Multimodal shards are all of one size, and "
    "what is left over belongs to nobody. A client that was never drawn is evaluated with the "
    "global parameters alone, as section 2.3 says.",
)
CONTRADICTION = (
    "Algorithm 1 minimises equation 12, which section 2.2 calls a lower bound to be maximised; its "
    "negative is minimised here."
)


def scales(of: Sequence[str], methods: Sequence[str]) -> dict[str, Scale]:
    """The scales of Tables 1 and 2, and of the figures of their runs.

    Args:
      of: `UNIMODAL`, `MULTIMODAL` or both.
      methods: The methods.
    """

    def cells(size: Size, *data: str) -> Iterator[Cell]:
        for setting in of:
            yield from size.cells(data, setting, methods)

    return {
        "smoke": Scale(tuple(cells(SMOKE, *DATA)), num_seeds=1, note=SMOKE_NOTE),
        "quick": Scale(
            (*cells(PAPER, MNIST), *cells(QUICK_CONVOLUTIONS, FMNIST, CIFAR)),
            num_seeds=5,
            note="MNIST as in the paper, 5 seeds. Not the paper's settings for FMNIST and "
            "CIFAR-10: 3 seeds, and 30 rounds instead of 100, in which 5 % of the clients train "
            "instead of 10 %.",
        ),
        "paper": Scale(
            tuple(cells(PAPER, *DATA)), num_seeds=5, note="The paper's settings, 5 seeds."
        ),
    }


def last_rounds(cell: str, column: str = ACCURACY, count: int = 10) -> Measure:
    """The mean over what was measured in the last `count` rounds."""

    def compute(runs: Mapping[str, Run]) -> float:
        rounds, values = runs[cell].curve(column)
        kept = [v for n, v in zip(rounds, values, strict=True) if n > rounds[-1] - count]
        return sum(kept) / len(kept)

    return Measure((cell,), compute)


_NUMBER = re.compile(r"(\d[\d,]*\.?\d*)(?:\s*(?:±|\\pm)\s*(\d+\.?\d*))?")


def printed(
    row: str,
    columns: Sequence[str],
    quote: str,
    place: str,
    notes: Mapping[str, str] | None = None,
) -> Iterator[Printed]:
    """The values of one printed row.

    Args:
      row: The row in our table.
      columns: The columns, in the order of the numbers.
      quote: The paper's words, with these numbers, each possibly with its +-, and no others.
      place: Where it stands.
      notes: What a value contradicts, by column.
    """
    for column, number in zip(columns, _NUMBER.finditer(quote), strict=True):
        value, interval = number.groups()
        yield Printed(
            row,
            column,
            float(value.replace(",", "")),
            # Up to the value: the next one may be a misprint away from it.
            quote[: number.end()],
            place,
            None if interval is None else float(interval),
            (notes or {}).get(column, ""),
        )
