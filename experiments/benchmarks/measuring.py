"""What the benchmarks share: random examples, a process and its training, tables."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from experiments.study import files
from tff_het import methods
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


def architecture(network: networks.Network, shape: Sequence[int], dtype: str, classes: int):
    """Returns the architecture of a network for such examples."""
    spec = {"x": (np.dtype(dtype), tuple(shape)), "y": (np.dtype(np.int32), ())}
    return architectures.make("benchmark", spec, classes, network)


def process(
    method: str, model: architectures.Architecture, training: Mapping[str, Any], **options: Any
) -> FederatedProcess:
    """Returns the process of a method with plain SGD, given what else `LocalTraining` takes."""
    settings = LocalTraining(tff.learning.optimizers.build_sgdm(LEARNING_RATE), **training)
    return methods.build(method, model, settings, seed=0, **options)


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


def report(head: str, found: Iterable[tuple[str, Mapping[str, float]]]) -> None:
    """Prints rows of figures by column as they come, then all as a table in Markdown."""
    rows: list[list[str]] = []
    for name, figures in found:
        row = [name, *(f"{value:.3f}" for value in figures.values())]
        rows = [*(rows or [[head, *figures]]), row]
        print(f"{name}: {', '.join(map(' '.join, zip(figures, row[1:], strict=True)))}", flush=True)
    print(files.as_table(rows))
