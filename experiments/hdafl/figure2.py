"""Figure 2 of HDAFL: which client has how many examples of which class, in each setting."""

import dataclasses
from pathlib import Path

import numpy as np

import experiments.study as s
from experiments.hdafl import settings
from experiments.hdafl.settings import FEMNIST, IID, NON_IID, OMNIGLOT, SELECTED, STAND_IN, TITLES
from experiments.run import setup

_FILE = "class_counts.npy"
# Another network on the same data has the same partition.
_SETTINGS = {FEMNIST: [*SELECTED], STAND_IN: [*SELECTED], OMNIGLOT: [NON_IID]}
_CELLS = {data: {setting: f"{data}/{setting}" for setting in of} for data, of in _SETTINGS.items()}
_ALL_CELLS = [cell for cells in _CELLS.values() for cell in cells.values()]
_FLAGS = ("dataset", "partition", "num_clients", "shards_per_client", "dirichlet", "groups", "max")
# Column -> the function's number, and its form.
_COLUMNS = {
    "Clients": ("clients", s.Form(0)),
    "Fewest images": ("images_min", s.Form(0)),
    "Most images": ("images_max", s.Form(0)),
    "Classes a client": ("classes_mean", s.Form(1)),
    "Clients a class": ("clients_mean", s.Form(1)),
    "Distance (%)": ("distance_mean", s.PERCENT),
}


def class_counts(
    *, seed: int, folder: Path, data_dir: str | None, flags: dict[str, str]
) -> dict[str, float]:
    """Counts training examples, [clients, classes], as training with these flags partitions them.

    A client's distance is the total variation of its class frequencies from all clients'.
    """
    made = setup.of_flags(flags, seed=seed, data_dir=data_dir)
    labels, num_classes = made.dataset.train["y"], made.dataset.num_classes
    counts = made.partition.class_counts(labels, num_classes=num_classes)
    np.save(folder / _FILE, counts)
    images = counts.sum(axis=1)
    distances = np.abs(counts / images[:, None] - counts.sum(axis=0) / counts.sum()).sum(1)
    return {
        "clients": len(counts),
        "images_min": int(images.min()),
        "images_max": int(images.max()),
        "classes_mean": float((counts > 0).sum(axis=1).mean()),
        "clients_mean": float((counts > 0).sum(axis=0).mean()),
        "distance_mean": float(distances.mean() / 2),
    }


def _partitions(scale: s.Scale) -> s.Scale:
    """The partitions of a scale's runs."""
    found = {}
    for cell in scale.cells:
        name = cell.name.partition("/C=")[0]
        if name in _ALL_CELLS and isinstance(cell.work, s.Training):
            flags = {k: v for k, v in cell.work.flags.items() if k.startswith(_FLAGS)}
            found[name] = s.call(name, class_counts, flags["dataset"], flags=flags)
    return dataclasses.replace(scale, cells=list(found.values()))


def _claim(data: str) -> s.Claim:
    iid, non_iid = (s.metric(_CELLS[data][k], "distance_mean") for k in (IID, NON_IID))
    text = f"({data}) classes are less balanced over the clients in non-i.i.d than in i.i.d."
    return s.claim(text, {"distance, non-i.i.d - i.i.d": non_iid - iid})


EXPERIMENT = s.Experiment(
    "hdafl.figure2",
    "Figure 2: how the data are assigned to the clients",
    scales={name: _partitions(scale) for name, scale in settings.scales().items()},
    tables=[s.table(TITLES[data], of, _COLUMNS, s.metric) for data, of in _CELLS.items()],
    claims=[_claim(data) for data in (FEMNIST, STAND_IN)],
    figures=[
        s.heat_maps(
            "Training images of each class at each client, seed 0",
            "Two heat maps of class per client on FEMNIST: i.i.d, where all clients have the same "
            "distribution of classes, and non-i.i.d, with a clear imbalance. None of Disjoint. The "
            "text calls them top and bottom, the figure's own caption left and right.",
            lambda results: results.saved(_ALL_CELLS, _FILE),
            xlabel="class",
            ylabel="client",
            label="training images",
        )
    ],
)
