"""What the benchmarks share: the program, random examples, processes and their training."""

import dataclasses
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np

from experiments.run import command_line
from experiments.study import files
from tff_het import kinds, methods
from tff_het.backend.names import tff
from tff_het.clients import Population
from tff_het.datasets import Examples
from tff_het.learning.local_training import LocalTraining
from tff_het.learning.process import FederatedProcess
from tff_het.models import architectures, networks
from tff_het.simulation import cohorts, loop

LEARNING_RATE = 0.05


def examples(seed: int, count: int, shape: Sequence[int], dtype: str, classes: int) -> Examples:
    """Returns random x [count, *shape], of type uint8 or float32, and all classes in turn as y."""
    drawn = np.random.default_rng(seed).standard_normal((count, *shape), np.float32)
    x = drawn if dtype == "float32" else (64 * drawn).astype(np.int32).astype(dtype)
    return {"x": x, "y": np.arange(count, dtype=np.int32) % classes}


@dataclasses.dataclass(frozen=True)
class Workload:
    """A network and what each client trains on, by plain SGD; `form` is that of its `examples`."""

    network: networks.Network
    form: tuple[int, tuple[int, ...], str, int]
    epochs: int
    batch_size: int
    clients: int = 10
    blocks: int = 8  # Turns of a benchmark's contenders.

    def architecture(self) -> architectures.Architecture:
        """Returns the network for such data."""
        _, shape, dtype, classes = self.form
        spec = {"x": (np.dtype(dtype), shape), "y": (np.dtype(np.int32), ())}
        return architectures.make("benchmark", spec, classes, self.network)

    def process(self, method: str = "fed_avg", **options: Sequence[str]) -> FederatedProcess:
        """Returns the process of a method, given its options."""
        sgd = tff.learning.optimizers.build_sgdm(LEARNING_RATE)
        training = LocalTraining(sgd, self.batch_size, self.epochs)
        return methods.build(method, self.architecture(), training, seed=0, **options)


def train(
    of: FederatedProcess,
    population: Population,
    folder: Path,
    rounds: int,
    on_round: loop.OnRound | None = None,
    cohort: int | None = None,
) -> None:
    """Trains in the loop of `experiments.train`, with a checkpoint after every round.

    All clients take part in each round; or a cohort, and the states of all are on disk. Rounds in
    the folder count. After the last one, one client is evaluated.
    """
    settings = loop.Settings(rounds, 0, rounds, cohorts.always(0), states_in_memory=cohort is None)
    schedule = cohorts.uniform(len(population), cohort or len(population), seed=0)
    result = loop.train(of, population, schedule, settings, folder=folder, on_round=on_round)
    result.client_states.close()


@dataclasses.dataclass(frozen=True)
class Settings:
    """Settings of this program.

    Attributes:
      only: Which rows of its table. Default: all.
    """

    only: Sequence[str] = ()


def main(
    description: str | None,
    names: Sequence[str],
    measured: Callable[[Sequence[str]], Iterable[tuple[str, Mapping[str, float]]]],
) -> None:
    """Prints a table in Markdown: of all rows' names, those that the command line asks for.

    `measured` takes them and gives names and figures by column.
    """
    settings = command_line.settings(Settings, sys.argv[1:], description)
    with command_line.errors_in_one_line():
        chosen = [kinds.Among(names)(name) for name in settings.only or names]
    rows = [*measured(chosen)]
    texts = [[name, *(f"{value:.3f}" for value in figures.values())] for name, figures in rows]
    print(files.as_table([["", *rows[0][1]], *texts]))
