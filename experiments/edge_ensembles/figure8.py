"""Figure 8: acquisition functions against random choice, at the same number of images."""

from collections.abc import Iterator

import experiments.study as s
from experiments.edge_ensembles import settings as edge
from experiments.edge_ensembles.settings import ACQUISITIONS, BALD, ENTROPY, RANDOM, RATIOS

_BRIEF, _PRINTED, _STOPPED = ", E = 5", ", the printed pool", ", started at 15 %"
_COMPARED = (RANDOM, ENTROPY)
_CELLS = (*ACQUISITIONS, *(f + how for how in (_BRIEF, _PRINTED, _STOPPED) for f in _COMPARED))
_ROWS = {
    cell: {
        "first half of acquisitions": s.of_curve(
            cell, edge.TRAINED_ACCURACY, lambda rounds, y: y[rounds <= rounds[-1] / 2].mean()
        ),
        "mean over acquisitions": s.over_rounds(cell, edge.TRAINED_ACCURACY),
        "after the budget": s.metric(cell, edge.TRAINED_ACCURACY),
    }
    for cell in _CELLS
}
_CLAIM = "Given the same number of images, active learning outperforms random choice."
_OURS = "Ours: active learning does better against random choice at E = 5 than at E = 45."
_RANDOM, _ENTROPY = (
    {f"acquisition {n}": s.in_round(f, edge.TRAINED_ACCURACY, n) for n in range(1, 11)}
    for f in _COMPARED
)
_LEADS = [
    edge.minus("lead of max entropy", _ROWS[ENTROPY + how], _ROWS[RANDOM + how])
    for how in (_BRIEF, "")
]


def _cells(size: edge.Size) -> Iterator[s.Cell]:
    for f in ACQUISITIONS:
        num_seeds = None if f in _COMPARED else edge.FIRST_SEEDS
        yield size.run(f, active=f, observe=None, num_seeds=num_seeds)
    for f in _COMPARED:
        other: dict = {"active": f, "observe": None}
        yield size.run(f + _BRIEF, epochs=5, **other)
        other["num_seeds"] = edge.FEW_SEEDS
        yield size.run(f + _PRINTED, pool_size=size.pool_size // 2, **other)
        yield size.run(f + _STOPPED, until=edge.TYPE_1, **other)


EXPERIMENT = s.Experiment(
    "edge_ensembles.figure8",
    "Figure 8: active learning against random choice",
    scales=edge.scales(_cells, 24),  # 23 should decide our own claim.
    tables=[edge.table("Accuracy of the ensemble on the whole test set, Type II, F = 10", _ROWS)],
    claims=[
        s.claim(_CLAIM, edge.minus("max entropy - random", _ENTROPY, _RANDOM)),
        s.claim(
            "Ours: BALD and variation ratios outperform random choice.",
            edge.minus("BALD - random", _ROWS[BALD], _ROWS[RANDOM])
            | edge.minus("variation ratios - random", _ROWS[RATIOS], _ROWS[RANDOM]),
        ),
        s.claim(_OURS, edge.minus("E = 5 - E = 45", *_LEADS)),
    ],
    figures=[
        s.curves(
            "Accuracy of the ensemble over the acquisitions",
            "accuracy by number of acquired images. Active learning is above random choice.",
            {"": {function: (function, edge.TRAINED_ACCURACY) for function in ACQUISITIONS}},
            ylabel="test accuracy of the ensemble (%)",
        )
    ],
)
