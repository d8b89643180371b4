"""Figures 5 and 6 of WAFFLe: accuracy over the rounds; the runs are those of Tables 1 and 2."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

import experiments.study as s
from experiments.waffle import settings
from experiments.waffle.settings import ACCURACY, DATA, FED_AVG, FED_PROX, WAFFLE

_METHODS = (FED_AVG, FED_PROX, WAFFLE)
# Data -> line -> the cell, and the column of its `metrics.csv`.
_UNIMODAL = {data: {m: (f"{data}/unimodal/{m}", ACCURACY) for m in _METHODS} for data in DATA}
_GROUPS = {"majority": settings.MAJORITY, "minority": settings.MINORITY}
_LINES = [(m, group, column) for m in (FED_AVG, WAFFLE) for group, column in _GROUPS.items()]
_BY_GROUP = {
    data: {f"{m}, {group}": (f"{data}/multimodal/{m}", column) for m, group, column in _LINES}
    for data in DATA
}


def settled(cell: str, column: str) -> s.Measure:
    """The first measured round with 95 % of the mean of the last ten."""
    goal = s.combined(lambda last: 0.95 * last, s.last_rounds(cell, column))
    return s.until(cell, column, goal, s.rounds_until)


def throughout(one: tuple[str, str], other: tuple[str, str]) -> s.Measure:
    """Smallest lead of a curve, smoothed over five measurements, after the first tenth of them."""

    def compute(runs: Mapping[str, s.Run]) -> float:
        values, others = (runs[cell].curve(column)[1] for cell, column in (one, other))
        lead = np.subtract(values, others)[len(values) // 10 :]
        width = min(5, len(lead))
        return float(np.convolve(lead, np.full(width, 1 / width), "valid").min())

    return s.Measure(tuple(dict.fromkeys((one[0], other[0]))), compute)


def _claims(data: str) -> Iterator[s.Claim]:
    fed_avg, fed_prox, waffle = _UNIMODAL[data].values()
    majority, minority, *ours = _BY_GROUP[data].values()
    least, better = "smallest lead, smoothed", "WAFFLe achieves better performance throughout"
    leads = {FED_AVG: throughout(waffle, fed_avg), FED_PROX: throughout(waffle, fed_prox)}
    checks = {f"{least} over {method}": lead for method, lead in leads.items()}
    yield s.claim(f"({data}) {better} training.", checks)
    text = f"({data}) With FedAvg the minority lags behind the majority throughout training."
    yield s.claim(text, {f"{least}, majority over minority": throughout(majority, minority)})
    groups = {"majority": (ours[0], majority), "minority": (ours[1], minority)}
    checks = {f"{least}, {group}": throughout(*both) for group, both in groups.items()}
    yield s.claim(f"({data}) {better} training, for both sub-populations.", checks)
    of_all, of_few = (s.over_rounds(*a) - s.over_rounds(*b) for a, b in groups.values())
    text = f"({data}) WAFFLe's lead is especially large for the minority."
    yield s.claim(text, {"mean lead in accuracy, minority - majority": of_few - of_all})
    rough = s.roughness(*minority)
    yield s.claim(
        f"({data}) FedAvg's minority curve is not as smooth as its majority curve, nor as WAFFLe's "
        "minority curve.",
        {
            "roughness of FedAvg's minority - FedAvg's majority": rough - s.roughness(*majority),
            "roughness of FedAvg's minority - WAFFLe's minority": rough - s.roughness(*ours[1]),
        },
    )
    tenth = s.of_curve(*waffle, lambda rounds, _: rounds[-1] / 10)
    yield s.claim(
        f"Ours: ({data}) WAFFLe converges at a similar rate as FedAvg: their rounds to 95 % of "
        "their own last ten differ by less than a tenth of all rounds.",
        {"a tenth of all rounds - difference": tenth - abs(settled(*waffle) - settled(*fed_avg))},
        form=s.Form(1),
    )


_MEAN = {"Mean over the rounds": s.over_rounds}
_RATES = {**_MEAN, "Rounds to 95 % of its own last ten rounds": (settled, s.Form(1))}
_SMOOTHNESS = {**_MEAN, "Roughness in points": s.roughness}


def _table(title: str, data: str, of: Mapping[str, Any], columns: Mapping[str, Any]) -> s.Table:
    rows = {f"{data}, {line}": curve for line, curve in of[data].items()}
    return s.table(title, rows, columns, lambda curve, measure: measure(*curve))


EXPERIMENT = s.Experiment(
    "waffle.figure6",
    "Figures 5 and 6: training curves",
    scales=settings.main_scales(("unimodal", "multimodal"), _METHODS),
    tables=[
        *(_table(f"{data}, unimodal", data, _UNIMODAL, _RATES) for data in DATA),
        *(_table(data, data, _BY_GROUP, _SMOOTHNESS) for data in DATA),
    ],
    claims=[claim for data in DATA for claim in _claims(data)],
    figures=[
        s.curves(
            "Figure 5: local test accuracy over the rounds, unimodal",
            "A clear gap between WAFFLe's curve and the others throughout training, and a similar "
            "rate of convergence.",
            _UNIMODAL,
        ),
        s.curves(
            "Figure 6: local test accuracy of both sub-populations over the rounds",
            "FedAvg's minority lags far behind its majority, with large dips and spikes; WAFFLe's "
            "has a much smoother curve.",
            _BY_GROUP,
        ),
    ],
)
