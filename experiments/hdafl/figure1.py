"""Figure 1 of HDAFL: how the classes of two networks differ, and the flows of one class."""

from pathlib import Path
from typing import Any

import numpy as np

import experiments.study as s
from experiments.hdafl.table5 import AS_RECORDED, DISJOINT, SHARED_CLASSES
from tff_het import datasets, partitions

_FILE, _SHOWN_FLOWS = "two_clients.npz", 200


def two_clients(
    *, seed: int, folder: Path, data_dir: str | None, dataset: str, partition: dict[str, Any]
) -> dict[str, float]:
    """Counts the examples of each class at each client, and keeps some of one class.

    `two_clients.npz` gets `class_names`, `counts` [2, classes] of training examples, `examples_0`
    and `examples_1` of the class `shown`, of which both clients have most.
    """
    data = datasets.load(dataset, data_dir)
    x, y = data.train["x"], data.train["y"]
    options = {"num_clients": None, "seed": seed, "allow_empty_test": True, **partition}
    divided = partitions.make(train=data.train, test=data.test, **options)
    counts = divided.class_counts(y, num_classes=data.num_classes)
    label = int(np.argmax(counts.min(axis=0)))
    rng = np.random.default_rng(seed)
    kept: dict[str, Any] = {"class_names": data.class_names, "counts": counts, "shown": label}
    for client, own in enumerate(divided.train):
        kept[f"examples_{client}"] = x[rng.permutation(own[y[own] == label])[:_SHOWN_FLOWS]]
    np.savez_compressed(folder / _FILE, **kept)
    first, second = counts > 0
    classes = {"shared": first & second, "only_0": first & ~second, "only_1": second & ~first}
    found = {**classes, "train_0": counts[0], "train_1": counts[1]}
    return {name: float(own.sum()) for name, own in found.items()}


def _shares(results: s.Results) -> dict[str, np.ndarray]:
    found = {k: of["counts"] for k, of in results.saved(SHARED_CLASSES, _FILE).items()}
    return {k: 100 * counts / counts.sum(axis=1, keepdims=True) for k, counts in found.items()}


def _flows(results: s.Results) -> dict[str, np.ndarray]:
    return {
        f"{kept['class_names'][kept['shown']]}, client {client}": flows.reshape(len(flows), -1).T
        for kept in results.saved([AS_RECORDED], _FILE).values()
        for client, flows in enumerate((kept["examples_0"], kept["examples_1"]), start=1)
    }


def _cell(setting: str, dataset: str, **partition: Any) -> s.Cell:
    return s.call(setting, two_clients, dataset, dataset=dataset, partition=partition)


_DIGITS = (
    _cell(DISJOINT, "digits", name="disjoint_classes", num_clients=2),
    _cell(AS_RECORDED, "digits", name="iid", num_clients=2),
)
_NETWORKS = {"name": "groups", "column": "network"}
_TRAFFIC = [_cell(k, "traffic", **_NETWORKS, shared_classes=n) for k, n in SHARED_CLASSES.items()]
_NUMBERS = {
    "Classes of both clients": "shared",
    "Classes of the first client only": "only_0",
    "Classes of the second client only": "only_1",
    "Training examples of the first client": "train_0",
    "Training examples of the second client": "train_1",
}
_SMOKE = s.Scale(_DIGITS, 1, "Only to see that everything runs: digits at two clients.")
_AS_TABLE_5 = s.Scale(_TRAFFIC, 1, "The flows and classes of Table 5, seed 0.")

EXPERIMENT = s.Experiment(
    "hdafl.figure1",
    "Figure 1: non-i.i.d. and disjoint classes of two networks, and the flows of one class",
    scales={"smoke": _SMOKE, "quick": _AS_TABLE_5, "paper": _AS_TABLE_5},
    tables=[s.table("What the two clients hold", [*SHARED_CLASSES], _NUMBERS, s.metric, s.Form(0))],
    figures=[
        s.heat_maps(
            "Classes of the two clients",
            "10 applications: some prevail in the enterprise network (Skype for business, "
            "ExpressVPN, NetBIOS), others are in the home network alone (SopCast).",
            _shares,
            xlabel="class",
            ylabel="client",
            label="% of the client's training examples",
        ),
        s.heat_maps(
            "Flows of one class at the two clients",
            "Flows of DouYouTV, the sizes and directions of their first 10 packets from bottom to "
            "top, as heat maps: they differ between home and enterprise network.",
            _flows,
            xlabel="flow",
            ylabel="packet",
            label="bytes; sign: direction",
            # Up to the length of Ethernet's packets.
            imshow={"cmap": "RdBu", "vmin": -1500, "vmax": 1500, "origin": "lower"},
        ),
    ],
)
