"""Table 2 of HDAFL: the data sets at a glance.

python -m experiments.hdafl.table2 --scale=quick --data_dir=DIR --output_dir=out
"""

import sys
from pathlib import Path

import numpy as np

from experiments.hdafl.settings import FEMNIST, OMNIGLOT, STAND_IN
from experiments.study import program
from experiments.study.experiment import (
    Call,
    Cell,
    Experiment,
    Form,
    Grid,
    Position,
    Printed,
    Scale,
)
from experiments.study.measures import metric
from tff_het import datasets

_IMAGES, _TRAFFIC = "Image recognition", "Traffic classification"
_SAMPLES, _SOURCES, _CLASSES = "Samples", "Sources", "Classes"
# The paper counts images and writers in thousands, flows in millions.
_COUNT = Form(digits=0)
_FORMS = {
    _IMAGES: {_SAMPLES: Form(0, 1e-3), _SOURCES: Form(1, 1e-3), _CLASSES: _COUNT},
    _TRAFFIC: {_SAMPLES: Form(2, 1e-6), _SOURCES: _COUNT, _CLASSES: _COUNT},
}
_UNITS = {(_IMAGES, _SAMPLES): "k", (_IMAGES, _SOURCES): "k", (_TRAFFIC, _SAMPLES): "M"}


def at_a_glance(
    *, seed: int, folder: Path, data_dir: str | None, dataset: str, column: str | None
) -> dict[str, float]:
    """Counts what a data set holds, train and test together.

    Args:
      seed: Changes nothing.
      folder: Stays empty.
      data_dir: The folder of data sets.
      dataset: Its name.
      column: The column of sources; None where all that is known is that there is one.
    """
    del seed, folder
    loaded = datasets.load(dataset, data_dir)
    train, test = loaded.train, loaded.test
    sources = 1 if column is None else len(np.union1d(train[column], test[column]))
    return {
        _SAMPLES: len(train["y"]) + len(test["y"]),
        _SOURCES: sources,
        _CLASSES: len(np.union1d(train["y"], test["y"])),
    }


def _cell(name: str, dataset: str, column: str | None) -> Cell:
    arguments = {"dataset": dataset, "column": column}
    return Cell(name, Call(at_a_glance, arguments, (dataset,)), seconds=2.0)


def _row(column: str, number: str) -> str:
    unit = _UNITS.get((column, number))
    return f"{number} ({unit})" if unit else number


def _grid(title: str, cells: dict[str, str], *, compare: bool = True) -> Grid:
    positions = tuple(
        Position(_row(column, number), column, metric(cell, number), _FORMS[column][number])
        for number in (_SAMPLES, _SOURCES, _CLASSES)
        for column, cell in cells.items()
    )
    return Grid(title, positions, compare)


# As the paper's text has them, its columns run together.
_PRINTED = {
    (_IMAGES, _SAMPLES): (805, "Samples 805k 1.9M"),
    (_TRAFFIC, _SAMPLES): (1.9, "Samples 805k 1.9M"),
    (_IMAGES, _SOURCES): (3.5, "3.5k 2 Sources writers networks"),
    (_TRAFFIC, _SOURCES): (2, "3.5k 2 Sources writers networks"),
    (_IMAGES, _CLASSES): (62, "Classes 62 35"),
    (_TRAFFIC, _CLASSES): (35, "Classes 62 35"),
}

_OURS = (
    _cell(STAND_IN, "fashion_mnist", None),
    _cell(OMNIGLOT, "omniglot", "writer"),
    _cell(_TRAFFIC, "traffic", "network"),
)

EXPERIMENT = Experiment(
    paper="hdafl",
    name="table2",
    title="Table 2: data sets at a glance",
    settings="Image recognition on FEMNIST, public, by writers; traffic classification on Huawei's "
    "own data, proprietary, from two networks. The experiments use 2,000 of FEMNIST's writers.",
    scales={
        "smoke": Scale(
            (_cell(STAND_IN, "digits", None), _cell(_TRAFFIC, "digits", None)),
            num_seeds=1,
            note="Only to see that everything runs: digits in both columns.",
        ),
        "quick": Scale(_OURS, num_seeds=1, note="The data that quick runs use. Nothing is drawn."),
        "paper": Scale(
            (_cell(FEMNIST, "femnist", "writer"), *_OURS),
            num_seeds=1,
            note="The data that the paper's settings use, all writers counted.",
        ),
    },
    grids=(
        _grid("FEMNIST", {_IMAGES: FEMNIST}),
        _grid("Stand-in for FEMNIST, and our traffic", {_IMAGES: STAND_IN, _TRAFFIC: _TRAFFIC}),
        _grid("Omniglot", {_IMAGES: OMNIGLOT}, compare=False),
    ),
    printed=tuple(
        Printed(_row(column, number), column, value, quote, f"Table 2, row {number}")
        for (column, number), (value, quote) in _PRINTED.items()
    ),
    notes=(
        "Huawei's traffic cannot be had. Ours is other traffic of the same form: two networks, the "
        "first 10 packets of each flow, of whose classes the 35 most frequent are kept.",
        "Of the stand-in, Fashion-MNIST, no sources are known: it counts as one.",
    ),
)


if __name__ == "__main__":
    sys.exit(program.main(EXPERIMENT, __doc__))
