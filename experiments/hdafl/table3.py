"""Table 3 of HDAFL: accuracy of HDAFL and FedAvg in three settings, with C clients selected."""

import experiments.study as s
from experiments.hdafl import settings
from experiments.hdafl.settings import (
    ACCURACY,
    CLAIMED,
    DISJOINT,
    IID,
    NON_IID,
    SELECTED,
    STAND_IN,
    run,
)

# As the paper's text has them.
_ROWS = {
    (IID, "HDAFL"): "i.i.d HDAFL 74.90 75.37 75.89",
    (IID, "FedAvg"): "FedAvg 78.26 79.00 79.03",
    (NON_IID, "HDAFL"): "non-i.i.d HDAFL 79.61 79.97 80.47",
    (NON_IID, "FedAvg"): "FedAvg 78.00 78.88 79.06",
    (DISJOINT, "HDAFL"): "Disjoint HDAFL 97.53 97.80 97.78",
    (DISJOINT, "FedAvg"): "FedAvg 17.44 18.99 19.51",
}


WIDE = (DISJOINT, "HDAFL", "FedAvg", " by a wide margin, 10 points or more", 0.10)
_OTHERS = (IID, "FedAvg", "HDAFL", "", 0.0), (NON_IID, "HDAFL", "FedAvg", "", 0.0)


def claim(data: str, setting: str, one: str, other: str, how: str, above: float) -> s.Claim:
    """That one method is more accurate than the other by a margin, for each C."""
    checks = {}
    for c in SELECTED[setting]:
        of = {m: s.metric(run(data, setting, c, m), ACCURACY) for m in (one, other)}
        checks[f"{one} - {other}, {setting}, C = {c}"] = of[one] - of[other]
    return s.claim(f"{setting} ({data}): {one} is better than {other}{how}.", checks, above)


def collapse(data: str) -> s.Claim:
    """What happens to FedAvg where no clients share a class; the table's highest is 19.51."""
    of = {c: s.metric(run(data, DISJOINT, c, "FedAvg"), ACCURACY) for c in SELECTED[DISJOINT]}
    low = {f"20 % - FedAvg, C = {c}": 0.2 - accuracy for c, accuracy in of.items()}
    return s.claim(f"{DISJOINT} ({data}): FedAvg collapses, to 20 % at most.", low)


EXPERIMENT = s.Experiment(
    "hdafl.table3",
    "Table 3: accuracy in % after the last round",
    scales=settings.scales(),
    tables=[
        s.Table(title, settings.places(data, s.metric), compare=data in CLAIMED)
        for data, title in settings.TITLES.items()
    ],
    printed=[
        s.Printed(f"{setting}, {m}", column, float(value), row, f"Table 3, row {setting} {m}")
        for (setting, m), row in _ROWS.items()
        for column, value in zip(settings.COLUMNS, row.split()[-3:], strict=True)
    ],
    claims=[claim(data, *of) for data in CLAIMED for of in (WIDE, *_OTHERS)]
    + [collapse(data) for data in CLAIMED if data != STAND_IN],
)
