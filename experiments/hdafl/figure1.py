"""Figure 1 of HDAFL: how the classes of two networks differ, and the flows of one class.

python -m experiments.hdafl.figure1 --scale=quick --data_dir=DIR --output_dir=out
"""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure as Drawing

from experiments.hdafl.table5 import AS_RECORDED, DISJOINT, SHARED_CLASSES
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
from tff_het import datasets, partitions

_SHOWN_FLOWS = 200
_WHOLE = Form(digits=0)
# Metric -> its row in the table.
_ROWS = {
    "shared": "Classes of both clients",
    "only_0": "Classes of the first client only",
    "only_1": "Classes of the second client only",
    "train_0": "Training examples of the first client",
    "train_1": "Training examples of the second client",
}
_COLORS = ("tab:blue", "tab:orange")


def two_clients(
    *, seed: int, folder: Path, data_dir: str | None, **arguments: Any
) -> dict[str, float]:
    """Counts the examples of each class at each client, and keeps some of one class.

    Args:
      seed: Decides on the classes that are removed, as in training, and on the examples.
      folder: Gets `two_clients.npz`: `class_names`; `counts` [2, classes], training examples;
        `examples_0` and `examples_1`, some of the class that both clients have most of.
      data_dir: The folder of data sets.
      **arguments: `dataset`; `partition`, its name and options as `partitions.make` takes them.
    """
    dataset = datasets.load(arguments["dataset"], data_dir)
    options = {"num_clients": None, **arguments["partition"]}
    partition = partitions.make(
        train=dataset.train, test=dataset.test, seed=seed, allow_empty_test=True, **options
    )
    x, y = dataset.train["x"], dataset.train["y"]
    counts = np.array(
        [np.bincount(y[own], minlength=dataset.num_classes) for own in partition.train]
    )
    label = int(np.argmax(counts.min(axis=0)))
    rng = np.random.default_rng(seed)
    examples = {
        f"examples_{client}": x[rng.permutation(own[y[own] == label])[:_SHOWN_FLOWS]]
        for client, own in enumerate(partition.train)
    }
    np.savez_compressed(
        folder / "two_clients.npz",
        class_names=np.array(dataset.class_names),
        counts=counts,
        shown=label,
        **examples,
    )
    first, second = counts > 0
    return {
        "shared": float((first & second).sum()),
        "only_0": float((first & ~second).sum()),
        "only_1": float((second & ~first).sum()),
        "train_0": float(counts[0].sum()),
        "train_1": float(counts[1].sum()),
    }


def _saved(results: Results, setting: str) -> dict[str, np.ndarray] | None:
    """What a setting's first seed kept, if it was run."""
    seed = min(results.seeds)
    runs = results.ok([setting], seed)
    if runs is None:
        return None
    with np.load(runs[setting].file("two_clients.npz")) as arrays:
        return dict(arrays)


def draw_classes(results: Results) -> Drawing | None:
    """Draws each class's share of either client's examples, in each setting."""
    saved = {setting: _saved(results, setting) for setting in SHARED_CLASSES}
    found = {setting: arrays for setting, arrays in saved.items() if arrays is not None}
    if not found:
        return None
    names = next(iter(found.values()))["class_names"]
    drawing = Drawing(figsize=(8, 1.5 + 0.2 * len(names)), layout="constrained")
    panels = drawing.subplots(1, len(found), sharey=True, squeeze=False)[0]
    for axes, (setting, arrays) in zip(panels, found.items(), strict=True):
        counts = arrays["counts"]
        for client, (own, color) in enumerate(zip(counts, _COLORS, strict=True)):
            places = np.arange(len(names)) + 0.4 * client
            axes.barh(places, 100 * own / own.sum(), 0.4, color=color, label=f"client {client + 1}")
        axes.set(title=setting, xlabel="% of the client's training examples")
        axes.set_yticks(np.arange(len(names)) + 0.2, names, fontsize=7)
    panels[0].invert_yaxis()
    panels[-1].legend()
    return drawing


def draw_flows(results: Results) -> Drawing | None:
    """Draws examples of one class at either client as heat maps."""
    arrays = _saved(results, AS_RECORDED)
    if arrays is None:
        return None
    both = [arrays[f"examples_{client}"] for client in range(2)]
    both = [examples.reshape(len(examples), -1).T for examples in both]
    limit = max(int(np.abs(examples.astype(int)).max()) for examples in both)
    drawing = Drawing(figsize=(8, 3), layout="constrained")
    panels = drawing.subplots(1, 2, sharey=True)
    for client, (axes, examples) in enumerate(zip(panels, both, strict=True), start=1):
        image = axes.imshow(
            examples,
            cmap="RdBu",
            vmin=-limit,
            vmax=limit,
            aspect="auto",
            origin="lower",
            interpolation="nearest",
        )
        name = arrays["class_names"][arrays["shown"]]
        axes.set(title=f"{name}, client {client}", xlabel="example", ylabel="packet")
    drawing.colorbar(image, ax=panels, label="bytes; the sign is the direction")
    return drawing


def _cells(dataset: str, partition: Mapping[str, Mapping[str, Any]]) -> tuple[Cell, ...]:
    return tuple(
        Cell(
            setting,
            Call(two_clients, {"dataset": dataset, "partition": dict(options)}, (dataset,)),
            seconds=1.0,
        )
        for setting, options in partition.items()
    )


_TRAFFIC = _cells(
    "traffic",
    {
        setting: {"name": "groups", "column": "network", "shared_classes": shared}
        for setting, shared in SHARED_CLASSES.items()
    },
)

EXPERIMENT = Experiment(
    paper="hdafl",
    name="figure1",
    title="Figure 1: non-i.i.d. and disjoint classes of two networks, and the flows of one class",
    settings="Huawei's traffic, not public: 10 of 35 applications in a home and an enterprise "
    "network. Nothing is trained.",
    scales={
        "smoke": Scale(
            _cells(
                "digits",
                {
                    DISJOINT: {"name": "disjoint_classes", "num_clients": 2},
                    AS_RECORDED: {"name": "iid", "num_clients": 2},
                },
            ),
            num_seeds=1,
            note="Only to see that everything runs: digits at two clients.",
        ),
        "quick": Scale(_TRAFFIC, num_seeds=1, note="The flows and classes of Table 5, seed 0."),
        "paper": Scale(_TRAFFIC, num_seeds=1, note="The flows and classes of Table 5, seed 0."),
    },
    grids=(
        Grid(
            "What the two clients hold",
            tuple(
                Position(row, setting, metric(setting, name), _WHOLE)
                for name, row in _ROWS.items()
                for setting in SHARED_CLASSES
            ),
        ),
    ),
    figures=(
        Figure(
            "Classes of the two clients",
            "10 applications: some prevail in the enterprise network (Skype for business, "
            "ExpressVPN, NetBIOS), others are in the home network alone (SopCast).",
            draw_classes,
        ),
        Figure(
            "Flows of one class at the two clients",
            "Flows of DouYouTV, the sizes and directions of their first 10 packets from bottom to "
            "top, as heat maps: they differ between home and enterprise network.",
            draw_flows,
        ),
    ),
    notes=(
        "The data are other ones, in which both networks have every class: disjoint classes are "
        "made by removing some at each client, drawn at random. The class whose flows are shown "
        f"is the one that both clients have most of; {_SHOWN_FLOWS} flows are drawn at random.",
    ),
)


if __name__ == "__main__":
    sys.exit(program.main(EXPERIMENT, __doc__))
