"""Writes experiments/presets/*.flags from the cells of the papers' tables.

python .ci/presets.py [--check]
"""

import argparse
import importlib
import pathlib
import sys
import textwrap
from typing import NamedTuple

ROOT = pathlib.Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))


class Preset(NamedTuple):
    """A flagfile: cells of one table at scale `paper` that differ in their methods.

    Attributes:
      table: The table or figure.
      cells: Its cells.
      about: What a reader has to know.
    """

    table: str
    cells: tuple[str, ...]
    about: str


def _hdafl(setting: str, about: str) -> Preset:
    cells = tuple(f"FEMNIST/{setting}/C=10/{method}" for method in ("hdafl", "fed_avg"))
    return Preset("hdafl.table3", cells, f"HDAFL on FEMNIST (Yang et al. 2020): {about}")


_GOAL = "First FedAvg to the goal, then LG-FedAvg from there: (1) --flagfile=THIS "
_THEN = " --output_dir=A; (2) --flagfile=THIS --start_from=A/fed_avg --output_dir=B."
PRESETS = {
    "cgau_cifar10": Preset(
        "cgau.figure2b",
        ("cifar10/0.0/CGAU", "cifar10/0.0/Baseline (ReLU)"),
        "CGAU on embeddings of CIFAR-10 (Rieger et al. 2020): clients by clusters, no shuffling. "
        "embeddings/README.md says how to make the embeddings.",
    ),
    "cgau_cough": Preset(
        "cgau.figure2a",
        ("cough/0.0/CGAU", "cough/0.0/Baseline (ReLU)"),
        "CGAU on coughs (Rieger et al. 2020): clients by clusters, no shuffling. Coughs are rare: "
        "look at best_local_test_auc_pooled in summary.json, not at accuracy.",
    ),
    "hdafl_femnist_disjoint": _hdafl("Disjoint", "31 clients of two classes, 10 in a round."),
    "hdafl_femnist_iid": _hdafl("i.i.d", "100 clients with the same data, 10 in a round."),
    "hdafl_femnist_writers": _hdafl("non-i.i.d", "100 clients of several writers, 10 in a round."),
    "hdafl_traffic": Preset(
        "hdafl.table5",
        tuple(f"5 shared classes/{method}" for method in ("hdafl", "fed_avg")),
        "HDAFL on network traffic (Yang et al. 2020, other data): two networks are the clients. "
        "They share five of 35 classes; each has fifteen others.",
    ),
    "lg_fedavg_cifar10": Preset(
        "lg_fedavg.table1",
        ("CIFAR-10/LG-FedAvg",),
        "LG-FedAvg on CIFAR-10 (Liang et al. 2019): 100 devices of two shards. "
        f"{_GOAL}--method=fed_avg --goal_accuracy=0.57 --rounds=2000{_THEN}",
    ),
    "lg_fedavg_mnist": Preset(
        "lg_fedavg.table1",
        ("MNIST/LG-FedAvg",),
        "LG-FedAvg on MNIST (Liang et al. 2019): 100 devices of two shards. "
        f"{_GOAL}--method=fed_avg --goal_accuracy=0.975 --rounds=1500{_THEN}",
    ),
    "waffle_mnist": Preset(
        "waffle.table1",
        tuple(f"MNIST/unimodal/{method}" for method in ("WAFFLe", "FedAvg", "q-FFL")),
        "WAFFLe on MNIST (Hao et al. 2020): 100 clients of two shards, 10 in a round.",
    ),
}


def text(preset: Preset) -> str:
    """Returns the flagfile."""
    experiment = importlib.import_module(f"experiments.{preset.table}").EXPERIMENT
    works = {cell.name: cell.work for cell in experiment.scales["paper"].cells}
    merged: dict[str, str] = {}
    for cell in preset.cells:
        for name, value in works[cell].flags.items():
            if name == "method":
                value = ",".join(filter(None, [merged.get("method"), value]))
            elif merged.setdefault(name, value) != value:
                raise ValueError(f"{preset.cells} differ in {name}, not in methods alone.")
            merged[name] = value
    head = f"{preset.about} Made from {preset.table}, scale paper, by .ci/presets.py."
    lines = textwrap.wrap(head, 98, break_on_hyphens=False, break_long_words=False)
    flags = [f"--{name}={value}" for name, value in merged.items()]
    return "\n".join([*(f"# {line}" for line in lines), *flags]) + "\n"


def main() -> int:
    """Writes the files; with --check, returns 1 where one is not what it would write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    check, code = parser.parse_args().check, 0
    for name, preset in PRESETS.items():
        path = ROOT / "experiments" / "presets" / f"{name}.flags"
        wanted = text(preset)
        if not path.exists() or path.read_text() != wanted:
            print(path.relative_to(ROOT))
            code = int(check)
            if not check:
                path.write_text(wanted)
    return code


if __name__ == "__main__":
    sys.exit(main())
