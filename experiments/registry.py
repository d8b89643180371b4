"""Which tables and figures there are: one module each, by paper."""

import importlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from experiments.harness.experiment import Experiment

# In the order in which the page shows them.
MODULES: dict[str, tuple[str, ...]] = {
    "cgau": ("figure2a", "figure2b", "table1", "figure3", "new_client"),
    "edge_ensembles": (
        "figure3", "sequential", "batch_normalization", "figure5", "figure6", "figure7", "figure8",
        "figure9", "figure10", "figure11", "figure12",
    ),
    "hdafl": ("table2", "figure1", "figure2", "table3", "figure3", "table4", "table5"),
    "lg_fedavg": ("table1", "mnist_iid", "table2", "table3", "table4"),
    "waffle": (
        "table1", "table2", "figure2", "q_search", "rate_search", "cost", "table3", "figure3",
        "figure4", "figure5", "figure6", "table4", "table5", "figure7", "table6", "table7",
        "differences",
    ),
}  # fmt: skip


def experiments() -> Iterator["Experiment"]:
    """All tables and figures of all papers."""
    for paper, names in MODULES.items():
        for name in names:
            yield importlib.import_module(f"experiments.{paper}.{name}").EXPERIMENT
