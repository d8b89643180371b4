"""Figure 2 of HDAFL: which client has how many examples of which class, in each setting.

python -m experiments.hdafl.figure2 --scale=quick --data_dir=DIR --output_dir=out
"""

import dataclasses
import sys
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure as Drawing

from experiments.hdafl import settings
from experiments.hdafl.settings import DISJOINT, FEMNIST, IID, NON_IID, OMNIGLOT, STAND_IN
from experiments.run import setup
from experiments.run.config import RunConfig
from experiments.study import program
from experiments.study.experiment import (
    PERCENT,
    Call,
    Cell,
    Check,
    Claim,
    Experiment,
    Figure,
    Form,
    Grid,
    Position,
    Scale,
    Training,
)
from experiments.study.measures import metric
from experiments.study.store import Results

_FILE = "class_counts.npy"
_SECONDS = 5.0
_COUNT, _MEAN = Form(digits=0), Form(digits=1)
# Column -> the function's number, and its form.
_COLUMNS = {
    "Clients": ("clients", _COUNT),
    "Fewest images": ("images_min", _COUNT),
    "Most images": ("images_max", _COUNT),
    "Classes a client": ("classes_mean", _MEAN),
    "Clients a class": ("clients_mean", _MEAN),
    "Distance (%)": ("distance_mean", PERCENT),
}


def class_counts(
    *, seed: int, folder: Path, data_dir: str | None, flags: Mapping[str, str]
) -> dict[str, float]:
    """Partitions a data set as training with these flags does; counts training examples.

    Args:
      seed: Of the partition.
      folder: Receives the counts, [clients, classes].
      data_dir: The folder of data sets.
      flags: Of data set and partition, by name.

    Returns:
      What the heat map shows in numbers. The distance is the total variation between a client's
      class frequencies and those of all clients together: 0 where they are the same.
    """
    values = {**flags, "seed": str(seed)} | ({} if data_dir is None else {"data_dir": data_dir})
    made = setup.make(RunConfig.of(**values))
    labels, num_classes = made.dataset.train["y"], made.dataset.num_classes
    counts = made.partition.class_counts(labels, num_classes=num_classes)
    np.save(folder / _FILE, counts)
    images = counts.sum(axis=1)
    shares = counts / images[:, None]
    return {
        "clients": len(counts),
        "images_min": int(images.min()),
        "images_max": int(images.max()),
        "classes_mean": float((counts > 0).sum(axis=1).mean()),
        "clients_mean": float((counts > 0).sum(axis=0).mean()),
        "distance_mean": float(
            np.abs(shares - counts.sum(axis=0) / counts.sum()).sum(1).mean() / 2
        ),
    }


def _name(data: str, setting: str) -> str:
    return f"{data}/{setting}"


def _scales() -> dict[str, Scale]:
    """The partitions of Table 3's runs."""
    return {
        name: dataclasses.replace(scale, cells=_cells(scale))
        for name, scale in settings.scales().items()
    }


def _cells(scale: Scale) -> tuple[Cell, ...]:
    found = {}
    for cell in scale.cells:
        data, setting, *_ = cell.name.split("/")
        # Another network on the same data has the same partition.
        if data in (FEMNIST, STAND_IN, OMNIGLOT):
            assert isinstance(cell.work, Training)
            flags = {k: v for k, v in cell.work.flags.items() if k in _PARTITION_FLAGS}
            call = Call(class_counts, {"flags": flags}, cell.work.data_sets)
            found[_name(data, setting)] = Cell(_name(data, setting), call, _SECONDS)
    return tuple(found.values())


_PARTITION_FLAGS = (
    "dataset",
    "partition",
    "num_clients",
    "shards_per_client",
    "dirichlet.alpha",
    "dirichlet.min_examples",
    "groups.column",
    "max_groups",
)


def _grid(data: str, title: str, of: tuple[str, ...]) -> Grid:
    positions = tuple(
        Position(setting, column, metric(_name(data, setting), number), form)
        for setting in of
        for column, (number, form) in _COLUMNS.items()
    )
    return Grid(title, positions)


def _claim(data: str) -> Claim:
    distance = {s: metric(_name(data, s), "distance_mean") for s in (IID, NON_IID)}
    return Claim(
        f"({data}) classes are less balanced over the clients in non-i.i.d than in i.i.d.",
        (Check("distance, non-i.i.d - i.i.d", distance[NON_IID] - distance[IID]),),
    )


def _draw(results: Results) -> Drawing | None:
    """The heat maps of the first seed that has them."""
    shown = []
    for data in (FEMNIST, STAND_IN, OMNIGLOT):
        for setting in (IID, NON_IID, DISJOINT):
            name = _name(data, setting)
            found = [runs for seed in results.seeds if (runs := results.ok([name], seed))]
            if found:
                shown.append((f"{data}, {setting}", np.load(found[0][name].file(_FILE))))
    if not shown:
        return None
    columns = min(3, len(shown))
    rows = -(-len(shown) // columns)
    figure = Drawing(figsize=(3.6 * columns, 4.2 * rows), layout="constrained")
    axes = list(figure.subplots(rows, columns, squeeze=False).flat)
    for ax, (title, counts) in zip(axes, shown, strict=False):
        image = ax.imshow(counts, aspect="auto", cmap="Blues", vmin=0, interpolation="nearest")
        ax.set(title=title, xlabel="class", ylabel="client")
        ax.locator_params(integer=True)
        figure.colorbar(image, ax=ax, location="bottom", label="training images")
    for ax in axes[len(shown) :]:
        ax.remove()
    return figure


EXPERIMENT = Experiment(
    paper="hdafl",
    name="figure2",
    title="Figure 2: how the data are assigned to the clients",
    settings=settings.SETTINGS,
    scales=_scales(),
    grids=(
        _grid(FEMNIST, "FEMNIST", (IID, NON_IID, DISJOINT)),
        _grid(STAND_IN, "Stand-in for FEMNIST", (IID, NON_IID, DISJOINT)),
        _grid(OMNIGLOT, "Omniglot, without a claim", (NON_IID,)),
    ),
    claims=(_claim(FEMNIST), _claim(STAND_IN)),
    figures=(
        Figure(
            "Training images of each class at each client, seed 0",
            "Two heat maps of class per client on FEMNIST: i.i.d, where all clients have the same "
            "distribution of classes, and non-i.i.d, with a clear imbalance. None of Disjoint, "
            "where no two clients have a class in common. (The text calls them top and bottom, the "
            "figure's own caption left and right.)",
            _draw,
        ),
    ),
    notes=(
        "The distance is the total variation between a client's class frequencies and those of "
        "all clients together, as a mean over clients.",
        *settings.NOTES,
    ),
)


if __name__ == "__main__":
    sys.exit(program.main(EXPERIMENT, __doc__))
