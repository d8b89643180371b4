"""Figure 5 of WAFFLe: accuracy over the rounds, unimodal; the runs are Table 1's."""

import experiments.study as s
from experiments.waffle import settings
from experiments.waffle.settings import ACCURACY, DATA, FED_AVG, FED_PROX, WAFFLE

_METHODS = (FED_AVG, FED_PROX, WAFFLE)
# Data -> method -> the cell, and the column of its `metrics.csv`.
_CURVES = {data: {m: (f"{data}/unimodal/{m}", ACCURACY) for m in _METHODS} for data in DATA}


_ROUNDS = s.Form(digits=1, factor=1.0)


def _rounds(cell: str, column: str) -> s.Measure:
    """The first measured round with 95 % of the mean of the last ten."""
    goal = s.combined(lambda last: 0.95 * last, s.last_rounds(cell, column))
    return s.until(cell, column, goal, lambda _, round_num: round_num)


_COLUMNS = {
    "Local test accuracy": s.over_rounds,
    "Rounds to 95 % of its own last ten rounds": (_rounds, _ROUNDS),
}


def _table(data: str) -> s.Table:
    rows = {f"{data}, {method}": curve for method, curve in _CURVES[data].items()}
    title = f"{data}, mean over the rounds"
    return s.table(title, rows, _COLUMNS, lambda curve, measure: measure(*curve))


def _similar(data: str) -> s.Claim:
    curves = _CURVES[data]
    later = _rounds(*curves[WAFFLE]) - _rounds(*curves[FED_AVG])
    tenth = s.of_curve(*curves[WAFFLE], lambda rounds, _: rounds[-1] / 10)
    return s.claim(
        f"({data}) WAFFLe converges at a similar rate as FedAvg: their rounds to 95 % of their own "
        "last ten differ by less than a tenth of all rounds.",
        {"a tenth of all rounds - difference": tenth - abs(later)},
        form=_ROUNDS,
    )


EXPERIMENT = s.Experiment(
    "waffle.figure5",
    "Figure 5: training curves, unimodal",
    scales=settings.main_scales(["unimodal"], _METHODS),
    tables=[_table(data) for data in DATA],
    claims=[
        s.claim(
            f"({data}) WAFFLe achieves better performance throughout training.",
            {
                f"smallest lead in accuracy over {other}": settings.throughout(
                    curves[WAFFLE], curves[other]
                )
                for other in (FED_AVG, FED_PROX)
            },
        )
        for data, curves in _CURVES.items()
    ]
    + [_similar(data) for data in DATA],
    figures=[
        s.curves(
            "Local test accuracy over the rounds",
            "A clear gap between WAFFLe's curve and the others throughout training, and a similar "
            "rate of convergence.",
            _CURVES,
        )
    ],
)
