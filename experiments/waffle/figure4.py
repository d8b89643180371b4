"""Figure 4 of WAFFLe: which classes the clients hold, without and with sub-populations."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

import experiments.study as s
from experiments.run import setup
from experiments.waffle import settings

_SETTINGS = ("unimodal", "multimodal")
_COUNTS = "counts.npz"
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
    """Assigns a run's examples, and returns the numbers of `_COLUMNS`.

    A client's examples are those that it trains on or is tested on. The folder gets `counts.npz`:
    `counts` [clients, classes] and each client's `group`.
    """
    made = setup.of_flags(flags, seed=seed, data_dir=data_dir)
    train, test, classes = made.dataset.train["y"], made.dataset.test["y"], made.dataset.num_classes
    count = made.partition.class_counts
    counts = count(train, "train", classes) + count(test, "test", classes)
    groups = np.array(made.population.groups)
    np.savez(folder / _COUNTS, counts=counts, group=groups)
    held = np.stack([counts[groups == group].any(axis=0) for group in set(groups)])
    examples = counts.sum(axis=1)
    found = {"clients": len(counts), "left_over": len(train) + len(test) - examples.sum()}
    for name, of_clients in {"classes": (counts > 0).sum(axis=1), "examples": examples}.items():
        found |= {f"fewest_{name}": of_clients.min(), f"most_{name}": of_clients.max()}
    if len(held) > 1:
        found[_SHARED] = held.all(axis=0).sum()
    return {name: float(number) for name, number in found.items()}


def _measure(setting: str, name: str) -> s.Measure | None:
    return None if (setting, name) == ("unimodal", _SHARED) else s.metric(setting, name)


def _scale(size: settings.Size, note: str) -> s.Scale:
    def cell(setting: str) -> s.Cell:
        flags = s.Training(size[f"MNIST/{setting}"] | {"method": "waffle"}).flags
        return s.call(setting, allocate, flags["dataset"], flags=dict(flags))

    return s.Scale([cell(setting) for setting in _SETTINGS], 1, note)


_PAPER = _scale(settings.PAPER, "The paper's settings, one seed.")


def _panels(results: s.Results) -> dict[str, np.ndarray]:
    """Examples [classes, clients] by sub-population."""
    return {
        f"{setting}, {group or 'all clients'}": kept["counts"][kept["group"] == group].T
        for setting, kept in results.saved(_SETTINGS, _COUNTS).items()
        for group in dict.fromkeys(kept["group"])
    }


EXPERIMENT = s.Experiment(
    "waffle.figure4",
    "Figure 4: how MNIST is partitioned",
    scales={"smoke": _scale(settings.SMOKE, settings.SMOKE_NOTE), "quick": _PAPER, "paper": _PAPER},
    tables=[s.table("Examples and classes per client", _SETTINGS, _COLUMNS, _measure, s.Form(0))],
    figures=[
        s.heat_maps(
            "Examples by client and class",
            "A diagram: without sub-populations each class is cut into shards, of which every "
            "client draws Z; with them, odd and even digits are grouped first, and a client's "
            "shards are of one group.",
            _panels,
            xlabel="client",
            ylabel="class",
            label="examples",
            columns=1,
            size=(9.0, 2.8),
        )
    ],
)
