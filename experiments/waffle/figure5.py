"""Figure 5 of WAFFLe: accuracy over the rounds, unimodal; the runs are Table 1's."""

import experiments.study as s
from experiments.waffle.settings import ACCURACY, DATA, FED_AVG, FED_PROX, WAFFLE, main_scales

_METHODS = (FED_AVG, FED_PROX, WAFFLE)
# Data -> method -> the cell, and the column of its `metrics.csv`.
_CURVES = {data: {m: (f"{data}/unimodal/{m}", ACCURACY) for m in _METHODS} for data in DATA}


def _table(data: str) -> s.Table:
    rows = {f"{data}, {method}": curve for method, curve in _CURVES[data].items()}
    title = f"{data}, mean over the rounds"
    return s.table(title, rows, ["Local test accuracy"], lambda curve, _: s.over_rounds(*curve))


EXPERIMENT = s.Experiment(
    "waffle.figure5",
    "Figure 5: training curves, unimodal",
    scales=main_scales(["unimodal"], _METHODS),
    tables=[_table(data) for data in DATA],
    claims=[
        s.better(
            f"({data}) WAFFLe achieves better performance throughout training.",
            lambda curve: s.over_rounds(*curve),
            {WAFFLE: curves[WAFFLE]},
            {FED_AVG: curves[FED_AVG], FED_PROX: curves[FED_PROX]},
            by="mean accuracy over all rounds",
        )
        for data, curves in _CURVES.items()
    ],
    figures=[
        s.curves(
            "Local test accuracy over the rounds",
            "A clear gap between WAFFLe's curve and the others throughout training, and a similar "
            "rate of convergence.",
            _CURVES,
        )
    ],
)
