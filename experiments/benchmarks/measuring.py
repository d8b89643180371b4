"""What the benchmarks share: the program, random examples, processes and their training."""

import dataclasses
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from experiments.run import command_line
from experiments.study import files
from tff_het import kinds, methods
from tff_het.backend.names import tff
from tff_het.clients import Client, Population
from tff_het.learning.local_training import LocalTraining
from tff_het.learning.process import FederatedProcess
from tff_het.models import architectures, networks
from tff_het.simulation import cohorts, loop

LEARNING_RATE = 0.05
Columns = Mapping[str, np.ndarray]
"""Examples of a client."""


def examples(seed: int, count: int, shape: Sequence[int], dtype: str, classes: int) -> Columns:
    """Returns random x [count, *shape], of type uint8 or float32, and all classes in turn as y."""
    draw, size = np.random.default_rng(seed), (count, *shape)
    x: np.ndarray = draw.standard_normal(size, np.float32)
    if dtype == "uint8":
        x = draw.integers(0, 256, size, np.uint8)
    return {"x": x, "y": np.arange(count, dtype=np.int32) % classes}


@dataclasses.dataclass(frozen=True)
class Workload:
    """A network, and how much data of which form each client trains on, by plain SGD."""

    network: networks.Network
    shape: tuple[int, ...]
    dtype: str
    classes: int
    examples: int
    epochs: int
    batch_size: int

    @property
    def architecture(self) -> architectures.Architecture:
        """For such data."""
        spec = {"x": (np.dtype(self.dtype), self.shape), "y": (np.dtype(np.int32), ())}
        return architectures.make("benchmark", spec, self.classes, self.network)

    def client(self, seed: int) -> Columns:
        """Returns a client's random examples."""
        return examples(seed, self.examples, self.shape, self.dtype, self.classes)

    def process(self, method: str = "fed_avg", **options: Any):
        """Returns the process of a method, given its options."""
        sgd = tff.learning.optimizers.build_sgdm(LEARNING_RATE)
        training = LocalTraining(sgd, self.batch_size, self.epochs)
        return methods.build(method, self.architecture, training, seed=0, **options)


def train(
    of: FederatedProcess,
    clients: Sequence[Columns],
    folder: Path,
    rounds: int,
    on_round: loop.OnRound | None = None,
    cohort: int | None = None,
) -> None:
    """Trains in the loop of `experiments.train`, with a checkpoint after every round.

    All clients take part in each round; or a cohort, and the states of all are on disk. Rounds in
    the folder count. After the last one, one client is evaluated, on two examples.
    """
    nothing, test = ({name: column[:n] for name, column in clients[0].items()} for n in (0, 2))
    population = Population(
        Client(str(k), train=own, validation=nothing, test=test) for k, own in enumerate(clients)
    )
    loop.train(
        of,
        population,
        cohorts.uniform(len(population), cohort or len(population), seed=0),
        loop.Settings(rounds=rounds, seed=0, eval_every=rounds, states_in_memory=cohort is None),
        evaluated=population[:1],
        folder=folder,
        on_round=on_round,
    ).client_states.close()


@dataclasses.dataclass(frozen=True)
class Settings:
    """Settings of this program.

    Attributes:
      only: Which rows of its table. Default: all.
    """

    only: Sequence[str] = ()


def main(
    description: str | None,
    head: str,
    names: Sequence[str],
    measured: Callable[[Sequence[str]], Iterable[tuple[str, Mapping[str, float]]]],
) -> None:
    """Measures the rows that the command line asks for, and prints a table in Markdown.

    Of all rows there are `names`, below `head`. `measured` gives those asked for, which are printed
    as they come: name, and figures by column.
    """
    settings = command_line.settings(Settings, sys.argv[1:], description)
    with command_line.errors_in_one_line():
        chosen = [kinds.Among(names)(name) for name in settings.only or names]
    rows: list[list[str]] = []
    for name, figures in measured(chosen):
        row = [name, *(f"{value:.3f}" for value in figures.values())]
        rows = [*(rows or [[head, *figures]]), row]
        print(f"{name}: {', '.join(map(' '.join, zip(figures, row[1:], strict=True)))}", flush=True)
    print(files.as_table(rows))
