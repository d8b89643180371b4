"""WAFFLe's Tables 1 and 2 beyond MNIST, with as many rounds and clients as printed."""

import dataclasses

import experiments.study as s
from experiments.waffle import settings, table1, table2
from experiments.waffle.settings import AS_WRITTEN, CIFAR, FMNIST, METHODS, MNIST

_TABLES = {"Table 1": table1.EXPERIMENT, "Table 2": table2.EXPERIMENT}


def _cells(size: settings.Size) -> tuple[s.Cell, ...]:
    return settings.cells(size, [name for name in size if not name.startswith(MNIST)], METHODS)


_FULL = _cells(settings.PAPER)
_QUICK = s.Scale([c for c in _FULL if AS_WRITTEN not in c.name], 3, "The paper's settings.")

EXPERIMENT = dataclasses.replace(
    table1.EXPERIMENT,
    id="waffle.full_length",
    title="Tables 1 and 2: Fashion-MNIST and CIFAR-10 at full length",
    scales=settings.scales(_cells(settings.SMOKE), _QUICK, _FULL),
    tables=[
        dataclasses.replace(table, title=f"{name}, {table.title}")
        for name, of in _TABLES.items()
        for table in of.tables[1:]
    ],
    printed=[v for of in _TABLES.values() for v in of.printed if not v.row.startswith(MNIST)],
    claims=[
        dataclasses.replace(claim, text=f"Ours, with as many rounds as printed: {claim.text}")
        for claim in table1.EXPERIMENT.claims
        if claim.text.startswith((f"({FMNIST}, ", f"({CIFAR}, "))
    ],
)
