"""WAFFLe's Tables 1 and 2 beyond MNIST, with as many rounds and clients as printed."""

import dataclasses

import experiments.study as s
from experiments.waffle import table1, table2
from experiments.waffle.settings import AS_WRITTEN, METHODS, MNIST, PAPER, SMOKE, cells, scales

_TABLES = {"Table 1": table1.EXPERIMENT, "Table 2": table2.EXPERIMENT}
# MNIST's runs are there already; two claims on CIFAR-10 compare with them.
_FULL = cells(PAPER, PAPER, METHODS)
_QUICK = s.Scale([c for c in _FULL if AS_WRITTEN not in c.name], 3, "The paper's settings.")

EXPERIMENT = dataclasses.replace(
    table1.EXPERIMENT,
    id="waffle.full_length",
    title="Tables 1 and 2: Fashion-MNIST and CIFAR-10 at full length",
    scales=scales(cells(SMOKE, SMOKE, METHODS), _QUICK, _FULL),
    tables=[
        dataclasses.replace(table, title=f"{name}, {table.title}")
        for name, of in _TABLES.items()
        for table in of.tables[1:]
    ],
    printed=[v for of in _TABLES.values() for v in of.printed if not v.row.startswith(MNIST)],
    claims=[
        dataclasses.replace(claim, text=f"Ours, with as many rounds as printed: {claim.text}")
        for of in _TABLES.values()
        for claim in of.claims
        if not claim.text.startswith(("(MNIST", "Ours")) and "parameters" not in claim.text
    ],
)
