"""The runs of edge ensembles' figures, and how large they are at each scale."""

import dataclasses
from collections.abc import Callable, Iterable, Mapping

from experiments.edge_ensembles import observed
from experiments.edge_ensembles.settings import (
    ACQUISITIONS,
    AVE,
    BUDGET,
    CLASSES,
    DEVICES,
    INITIAL,
    LARGE_BUDGET,
    METHODS,
    MOST_EPOCHS,
    NUM_CLASSES,
    OFTEN,
    ONCE,
    RANDOM,
)
from experiments.study.experiment import Call, Cell, Scale, Training

_START_SECONDS = 10.0  # Reading data, tracing, and the first round's compilation.
_JUDGING, _SCORING = 1.5, 2.0  # How much longer it takes to judge models, or to score pools.
_WEIGHT_DECAY = "0.0001"


@dataclasses.dataclass(frozen=True)
class Size:
    """Sizes of the runs of one scale.

    Attributes:
      flags: Of all runs: data, network, local training.
      normalised: The same network with batch normalisation.
      images: In one acquisition (Type I).
      pool: Images in a pool (Type II).
      kept: Of each class, images that are kept (Type II), a part of `images`.
      at_server: Flags of what the server holds, without the images of the initial training.
      initial: Images of the initial training, of Type I and Type II.
      initial_flags: Of the initial training.
      passes: With dropout, over the pool (Type II) and over what the server evaluates on.
      seconds: About how long E = 45 takes with a budget of 10 on two cores.
      fewer_passes: Divides the passes that a run's name says, where nobody looks at numbers.
    """

    flags: Mapping[str, str]
    normalised: str
    images: int
    pool: int
    kept: int
    at_server: Mapping[str, str]
    initial: tuple[int, int]
    initial_flags: Mapping[str, str]
    passes: int
    seconds: float
    fewer_passes: int = 1

    @property
    def _type_1(self) -> dict[str, str]:
        classes = (",".join(map(str, own)) for own in CLASSES.values())
        return {
            **self.flags,
            **self.at_server,
            "partition": "disjoint_classes",
            "disjoint_classes.classes": ";".join(classes),
            "initial_examples": str(self.initial[0]),
        }

    @property
    def _type_2(self) -> dict[str, str]:
        return {**self.flags, **self.at_server, "partition": "iid"} | {
            "initial_examples": str(self.initial[1])
        }

    def initial_cell(self, *, type_2: bool = False) -> Cell:
        """The model that all devices start from."""
        return Cell(INITIAL, self._initial(self._type_2 if type_2 else self._type_1), 20.0)

    def _initial(self, flags: Mapping[str, str]) -> Training:
        own = {"method": "centralized", "pooled": "server"}
        return Training({**flags, **own, **self.initial_flags})

    def biased(
        self,
        name: str,
        *,
        method: str = AVE,
        epochs: str = MOST_EPOCHS,
        frequency: str = OFTEN,
        budget: int = BUDGET,
        network: Mapping[str, str] | None = None,
        **flags: str,
    ) -> Cell:
        """A run of Type I: each class is at one device, which draws images at random.

        Args:
          name: Of the cell.
          method: One of `METHODS`.
          epochs: Passes over each acquired batch.
          frequency: Ensembling steps in the budget.
          budget: Acquisitions.
          network: Flags of another network, for the initial training as well.
          **flags: Further ones.
        """
        common = {**self._type_1, **(network or {})}
        training = {
            **common,
            "method": METHODS[method],
            "acquisition": "random",
            "acquisition_size": str(self.images),
            # Nothing is drawn twice, however large the budget.
            "pool_size": str(LARGE_BUDGET * self.images),
            **self._course(epochs, frequency, budget),
            **flags,
        }
        seconds = self._seconds(epochs, budget)
        if method != AVE:
            training["ensemble_dropout_samples"] = str(self.passes)
            seconds *= _JUDGING
        return Cell(name, self._observed(training, self._initial(common)), seconds)

    def judged_by_test_set(self, name: str, method: str) -> Cell:
        """A run of Type I in which the server chooses by the test set, as in the paper.

        A training of `experiments.train`, so that its results are marked.

        Args:
          name: Of the cell.
          method: `OPT` or `MIX`.
        """
        holding_nothing = dataclasses.replace(self, at_server={})
        cell = holding_nothing.biased(name, method=method, ensemble_selection="test")
        assert isinstance(cell.work, Call)
        return dataclasses.replace(
            cell, work=Training(cell.work.arguments["flags"], cell.work.start)
        )

    def sequential(self, name: str) -> Cell:
        """One model that is trained on the devices one after another, with the whole budget each.

        Args:
          name: Of the cell.
        """
        cell = self.biased(name, frequency=ONCE)
        assert isinstance(cell.work, Call)
        turns = {"sampling": "in_turn", "clients_per_round": "1", "rounds": str(len(DEVICES))}
        return dataclasses.replace(
            cell, work=Training({**cell.work.arguments["flags"], **turns}, cell.work.start)
        )

    def active(
        self, name: str, function: str, frequency: str = OFTEN, epochs: str = MOST_EPOCHS
    ) -> Cell:
        """A run of Type II: each device chooses from its private pool.

        Args:
          name: Of the cell.
          function: One of `ACQUISITIONS`.
          frequency: Ensembling steps in the budget; the last one is observed where there is one
            alone, since the devices then never met another's model.
          epochs: Passes over each acquired batch.
        """
        training = {
            **self._type_2,
            "method": METHODS[AVE],
            "acquisition": ACQUISITIONS[function],
            "acquisition_size": str(self.images - NUM_CLASSES * self.kept),
            "kept_per_class": str(self.kept),
            "pool_size": str(self.pool),
            "weight_decay": _WEIGHT_DECAY,
            **self._course(epochs, frequency, BUDGET),
        }
        seconds = self._seconds(epochs, BUDGET)
        if function != RANDOM:
            training["dropout_samples"] = str(self.passes)
            seconds *= _SCORING
        start = self._initial(self._type_2)
        if frequency == ONCE:
            return Cell(name, self._observed(training, start), seconds)
        return Cell(name, Training(training, start), seconds)

    def _course(self, epochs: str, frequency: str, budget: int) -> dict[str, str]:
        return {
            "local_epochs": str(max(1, int(epochs) // self.fewer_passes)),
            "rounds": frequency,
            "acquisitions_per_round": str(budget // int(frequency)),
        }

    def _observed(self, flags: Mapping[str, str], start: Training) -> Call:
        return Call(observed.last_round, {"flags": dict(flags)}, start.data_sets, start)

    def _seconds(self, epochs: str, budget: int) -> float:
        share = int(epochs) / int(MOST_EPOCHS) * budget / BUDGET
        return _START_SECONDS + self.seconds * share


_TRAINING = {"client_learning_rate": "0.01", "client_momentum": "0.9", "num_clients": "4"}
_FASHION = {**_TRAINING, "dataset": "fashion_mnist", "validation_fraction": "0.02"}
PAPER = Size(
    flags={**_FASHION, "model": "cnn_edge", "batch_size": "32"},
    normalised="cnn_edge_bn",
    images=400,
    pool=4000,
    kept=5,
    at_server={"selection_examples": "1000"},
    initial=(400, 1000),
    initial_flags={
        "batch_size": "32",
        "client_learning_rate": "0.05",
        "client_momentum": "0",
        "goal_accuracy": "0.15",
        "local_steps": "5",
        "rounds": "100",
    },
    passes=20,
    seconds=1200.0,
)
QUICK = dataclasses.replace(
    PAPER,
    flags={**_FASHION, "model": "cnn_edge_small", "batch_size": "10"},
    normalised="cnn_edge_small_bn",
    images=50,
    pool=500,
    kept=1,
    at_server={"selection_examples": "400"},
    passes=10,
    seconds=20.0,
)
SMOKE = Size(
    flags={**_TRAINING, "dataset": "digits", "model": "cnn_edge_digits", "batch_size": "10"}
    | {"validation_fraction": "0.2"},
    normalised="cnn_edge_digits_bn",
    images=12,
    pool=80,
    kept=1,
    at_server={"selection_examples": "20"},
    initial=(40, 60),
    initial_flags={"goal_accuracy": "0.15", "local_steps": "1", "rounds": "3"},
    passes=2,
    seconds=2.0,
    fewer_passes=15,
)
SIZES = {"smoke": SMOKE, "quick": QUICK, "paper": PAPER}
_SEEDS = {"smoke": 1, "quick": 3, "paper": 5}
_DIFFERENCES = {
    "smoke": "Only to see that everything runs: digits, 12 images in an acquisition, and a "
    "fifteenth of the passes that the names of runs say.",
    "quick": "Not the paper's settings: a network a quarter to a half as wide, acquisitions of 50 "
    "images instead of 400 (Type II: 40 and 10 that are kept) and pools of 500 instead of 4,000, "
    "batches of 10, 10 passes with dropout, 400 images that models are evaluated on; 3 seeds.",
    "paper": "The paper's settings as far as they are printed, 5 seeds.",
}


def scales(
    cells: Callable[[Size], Iterable[Cell]], of: Iterable[str] = tuple(SIZES)
) -> dict[str, Scale]:
    """The scales of a figure.

    Args:
      cells: Its runs at a size.
      of: The scales' names.
    """
    return {name: Scale(tuple(cells(SIZES[name])), _SEEDS[name], _DIFFERENCES[name]) for name in of}
