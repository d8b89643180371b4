"""Figure 6 of WAFFLe: accuracy of both sub-populations over the rounds; the runs are Table 2's."""

import experiments.study as s
from experiments.waffle import settings
from experiments.waffle.settings import DATA, FED_AVG, MAJORITY, MINORITY, WAFFLE

_LINES = [
    (f"{method}, {group}", method, column)
    for method in (FED_AVG, WAFFLE)
    for group, column in (("majority", MAJORITY), ("minority", MINORITY))
]
# Data -> line -> the cell, and the column of its `metrics.csv`.
_CURVES = {d: {line: (f"{d}/multimodal/{m}", of) for line, m, of in _LINES} for d in DATA}
_COLUMNS = {"Mean over the rounds": s.over_rounds, "Roughness in points": s.roughness}


def _table(data: str) -> s.Table:
    rows = {f"{data}, {line}": curve for line, curve in _CURVES[data].items()}
    return s.table(data, rows, _COLUMNS, lambda curve, measure: measure(*curve))


def _claims(data: str) -> list[s.Claim]:
    majority, minority, waffles_majority, waffles = _CURVES[data].values()
    leads = {"majority": (waffles_majority, majority), "minority": (waffles, minority)}
    return [
        s.claim(
            f"({data}) With FedAvg the minority lags behind the majority throughout training.",
            {
                "smallest lead in accuracy, majority over minority": settings.throughout(
                    majority, minority
                )
            },
        ),
        s.claim(
            f"({data}) WAFFLe achieves better performance throughout training, for both.",
            {
                f"smallest lead in accuracy, {g}": settings.throughout(*both)
                for g, both in leads.items()
            },
        ),
        s.better(
            f"({data}) FedAvg's minority curve is not as smooth as its majority curve, nor as "
            "WAFFLe's minority curve.",
            lambda curve: s.roughness(*curve),
            {"FedAvg's minority": minority},
            {"FedAvg's majority": majority, "WAFFLe's minority": waffles},
            by="roughness",
        ),
    ]


EXPERIMENT = s.Experiment(
    "waffle.figure6",
    "Figure 6: training curves of both sub-populations",
    scales=settings.main_scales(["multimodal"], [FED_AVG, WAFFLE]),
    tables=[_table(data) for data in DATA],
    claims=[claim for data in DATA for claim in _claims(data)],
    figures=[
        s.curves(
            "Local test accuracy of both sub-populations over the rounds",
            "FedAvg's minority lags far behind its majority, with large dips and spikes; WAFFLe's "
            "has a much smoother curve.",
            _CURVES,
        )
    ],
)
