"""Table 2 of HDAFL: the data sets at a glance."""

from typing import Any

import numpy as np

import experiments.study as s
from experiments.hdafl.settings import FEMNIST, OMNIGLOT, STAND_IN
from tff_het import datasets

_IMAGES, _TRAFFIC = "Image recognition", "Traffic classification"
_WHOLE, _SAMPLES, _SOURCES = s.Form(0), "Samples 805k 1.9M", "3.5k 2 Sources writers networks"
# Row, column, the function's number, its form; what is printed, and the words that it stands in.
# The paper counts images and writers in thousands, flows in millions; its columns run together.
_PLACES = (
    ("Samples (k)", _IMAGES, "Samples", s.Form(0, 1e-3), 805, _SAMPLES),
    ("Samples (M)", _TRAFFIC, "Samples", s.Form(2, 1e-6), 1.9, _SAMPLES),
    ("Sources (k)", _IMAGES, "Sources", s.Form(1, 1e-3), 3.5, _SOURCES),
    ("Sources", _TRAFFIC, "Sources", _WHOLE, 2, _SOURCES),
    ("Classes", _IMAGES, "Classes", _WHOLE, 62, "Classes 62 35"),
    ("Classes", _TRAFFIC, "Classes", _WHOLE, 35, "Classes 62 35"),
)


def at_a_glance(
    *, data_dir: str | None, dataset: str, column: str | None, **_: Any
) -> dict[str, float]:
    """Counts what a data set holds, train and test; without a column of sources, there is one."""
    loaded = datasets.load(dataset, data_dir)
    train, test = loaded.train, loaded.test
    return {
        "Samples": len(train["y"]) + len(test["y"]),
        "Sources": 1 if column is None else len(np.union1d(train[column], test[column])),
        "Classes": len(np.union1d(train["y"], test["y"])),
    }


def _cell(name: str, dataset: str, column: str | None = None) -> s.Cell:
    return s.call(name, at_a_glance, dataset, dataset=dataset, column=column)


def _table(title: str, of: dict[str, str], *, compare: bool = True) -> s.Table:
    places = (s.Place(r, c, s.metric(of[c], n), form) for r, c, n, form, *_ in _PLACES if c in of)
    return s.Table(title, tuple(places), compare)


_DIGITS = (_cell(STAND_IN, "digits"), _cell(_TRAFFIC, "digits"))
_IMAGE_SETS = (_cell(STAND_IN, "fashion_mnist"), _cell(OMNIGLOT, "omniglot", "writer"))
_OURS = (*_IMAGE_SETS, _cell(_TRAFFIC, "traffic", "network"))
_ALL = (_cell(FEMNIST, "femnist", "writer"), *_OURS)

EXPERIMENT = s.Experiment(
    "hdafl.table2",
    "Table 2: data sets at a glance",
    scales={
        "smoke": s.Scale(_DIGITS, 1, "Only to see that everything runs: digits in both columns."),
        "quick": s.Scale(_OURS, 1, "The data that quick runs use. Nothing is drawn."),
        "paper": s.Scale(_ALL, 1, "The data that the paper's settings use, all writers counted."),
    },
    tables=[
        _table("FEMNIST", {_IMAGES: FEMNIST}),
        _table("Stand-in for FEMNIST, and our traffic", {_IMAGES: STAND_IN, _TRAFFIC: _TRAFFIC}),
        _table("Omniglot", {_IMAGES: OMNIGLOT}, compare=False),
    ],
    printed=[
        s.Printed(row, column, value, quote, f"Table 2, row {number}")
        for row, column, number, _, value, quote in _PLACES
    ],
)
