"""WAFFLe's Tables 1 and 2, Figures 5 and 6 beyond MNIST, as long as printed."""

import dataclasses

import experiments.study as s
from experiments.waffle import figure6, table1, table2
from experiments.waffle.settings import AS_WRITTEN, METHODS, MNIST, PAPER, SMOKE, cells, scales

_OF = {"Table 1": table1, "Table 2": table2, "Figures 5 and 6": figure6}
# MNIST is there already; claims on CIFAR-10 compare with it. Three others are cut for time.
_FULL = cells(PAPER, PAPER, METHODS)
_CUT = ("FMNIST/unimodal/q-FFL", "FMNIST/multimodal/q-FFL", "FMNIST/multimodal/FedProx")
_QUICK = [c for c in _FULL if AS_WRITTEN not in c.name and c.name not in _CUT]
_NOTE = "The paper's settings; on Fashion-MNIST without q-FFL and, multimodal, FedProx."

EXPERIMENT = dataclasses.replace(
    table1.EXPERIMENT,
    id="waffle.full_length",
    title="Tables 1 and 2: Fashion-MNIST and CIFAR-10 at full length",
    scales=scales(cells(SMOKE, SMOKE, METHODS), s.Scale(_QUICK, 3, _NOTE), _FULL),
    tables=[
        dataclasses.replace(table, title=f"{name}, {table.title}")
        for name, of in _OF.items()
        for table in of.EXPERIMENT.tables
        if not table.title.startswith(MNIST)
    ],
    printed=[
        v for of in _OF.values() for v in of.EXPERIMENT.printed if not v.row.startswith(MNIST)
    ],
    claims=[
        dataclasses.replace(claim, text=f"Ours: At full length: {claim.text}")
        for of in _OF.values()
        for claim in of.EXPERIMENT.claims
        if not claim.text.startswith(("(MNIST", "Ours")) and "parameters" not in claim.text
    ],
)
