"""Figure 4 of WAFFLe: which classes the clients hold, without and with sub-populations.

python -m experiments.waffle.figure4 --scale=quick --data_dir=DIR --output_dir=out
"""

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure as Drawing

from experiments.run import setup
from experiments.run.config import RunConfig
from experiments.study import program
from experiments.study.experiment import (
    Call,
    Cell,
    Experiment,
    Figure,
    Form,
    Grid,
    Position,
    Scale,
)
from experiments.study.measures import metric
from experiments.study.store import Results
from experiments.waffle import settings
from experiments.waffle.settings import DATA, MNIST, MULTIMODAL, UNIMODAL, WAFFLE, Size
from tff_het.clients import Client

_COUNTS = "counts.npz"
_WHOLE = Form(digits=0)
_SHARED = "shared_classes"  # Only where there are sub-populations.
_COLUMNS = {
    "Clients": "clients",
    "Classes of a client, fewest": "fewest_classes",
    "Classes of a client, most": "most_classes",
    "Examples of a client, fewest": "fewest_examples",
    "Examples of a client, most": "most_examples",
    "Examples of nobody": "left_over",
    "Classes that both sub-populations hold": _SHARED,
}


def allocate(
    *, seed: int, folder: Path, data_dir: str | None, flags: Mapping[str, str]
) -> dict[str, float]:
    """Assigns examples and counts them.

    Args:
      seed: Of the partition.
      folder: Gets `counts.npz`: `counts` [clients, classes] and each client's `group`.
      data_dir: The folder of data sets.
      flags: Of a run.

    Returns:
      The numbers of `_COLUMNS`; a client's examples are those that it trains on or is tested on.
    """
    values = {**flags, "seed": str(seed)} | ({} if data_dir is None else {"data_dir": data_dir})
    made = setup.make(RunConfig.of(**values))
    counts = np.stack([_count(one, made.dataset.num_classes) for one in made.population])
    groups = np.array(made.population.groups)
    dealt = len(made.dataset.train["y"]) + len(made.dataset.test["y"])
    np.savez(folder / _COUNTS, counts=counts, group=groups)
    held = np.stack([counts[groups == group].any(axis=0) for group in sorted(set(groups))])
    classes, examples = (counts > 0).sum(axis=1), counts.sum(axis=1)
    found = {
        "clients": len(counts),
        "fewest_classes": classes.min(),
        "most_classes": classes.max(),
        "fewest_examples": examples.min(),
        "most_examples": examples.max(),
        "left_over": dealt - examples.sum(),
    }
    if len(held) > 1:
        found[_SHARED] = held.all(axis=0).sum()
    return {name: float(number) for name, number in found.items()}


def _count(client: Client, num_classes: int) -> np.ndarray:
    parts = (client.train, client.validation, client.test)
    return np.bincount(np.concatenate([part["y"] for part in parts]), minlength=num_classes)


def _cells(size: Size) -> Iterator[Cell]:
    for setting in (UNIMODAL, MULTIMODAL):
        flags = dict(size.training(MNIST, setting, WAFFLE).flags)
        yield Cell(setting, Call(allocate, {"flags": flags}, (flags["dataset"],)), 5.0)


def _draw(results: Results) -> Drawing | None:
    """The first seed's clients, each a column."""
    cells = [UNIMODAL, MULTIMODAL]
    found = ((seed, results.ok(cells, seed)) for seed in results.seeds)
    seed, runs = next(((seed, runs) for seed, runs in found if runs), (0, None))
    if runs is None:
        return None
    figure = Drawing(figsize=(9.0, 5.4), layout="constrained")
    figure.suptitle(f"seed {seed}", fontsize="small")
    for setting, ax in zip(cells, figure.subplots(2, 1), strict=True):
        with np.load(runs[setting].file(_COUNTS)) as file:
            counts, groups = file["counts"], file["group"]
        image = ax.imshow(counts.T, aspect="auto", cmap="Blues", interpolation="nearest")
        ax.set(title=setting, xlabel="client", ylabel="class", yticks=range(counts.shape[1]))
        for border in np.flatnonzero(groups[1:] != groups[:-1]):
            ax.axvline(border + 0.5, color="black", linewidth=0.8)
        figure.colorbar(image, ax=ax, label="examples")
    return figure


def _scale(size: Size, note: str) -> Scale:
    return Scale(tuple(_cells(size)), num_seeds=1, note=note)


EXPERIMENT = Experiment(
    paper="waffle",
    name="figure4",
    title="Figure 4: how MNIST is partitioned",
    settings=settings.SETTINGS,
    scales={
        "smoke": _scale(settings.SMOKE, settings.SMOKE_NOTE),
        "quick": _scale(settings.PAPER, "The paper's settings, one seed."),
        "paper": _scale(settings.PAPER, "The paper's settings, one seed."),
    },
    grids=(
        Grid(
            "What clients hold",
            tuple(
                Position(setting, column, metric(setting, name), _WHOLE)
                for setting in (UNIMODAL, MULTIMODAL)
                for column, name in _COLUMNS.items()
                if name != _SHARED or setting == MULTIMODAL
            ),
        ),
    ),
    figures=(
        Figure(
            "Examples by client and class",
            "A diagram: without sub-populations each class is cut into shards, of which every "
            "client draws Z; with them, odd and even digits are grouped first, and a client's "
            "shards are of one group. The line divides majority and minority.",
            _draw,
        ),
    ),
    notes=(
        *settings.NOTES,
        f"A client may draw two shards of one class. {MNIST} has {DATA[MNIST].sizes[0]} clients of "
        f"odd and {DATA[MNIST].sizes[1]} of even digits.",
    ),
)


if __name__ == "__main__":
    sys.exit(program.main(EXPERIMENT, __doc__))
