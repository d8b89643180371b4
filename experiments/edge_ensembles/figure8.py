"""Figure 8: acquisition functions against random choice, at the same number of images."""

from collections.abc import Iterator

import experiments.study as s
from experiments.edge_ensembles import settings as edge
from experiments.edge_ensembles.settings import ACQUISITIONS, BALD, ENTROPY, RANDOM, RATIOS

_BRIEF, _PRINTED, _STOPPED = ", E = 5", ", the printed pool", ", started at 15 %"
_COMPARED = (RANDOM, ENTROPY)
_ROWS = {
    cell: {
        "first half of acquisitions": s.of_curve(
            cell, edge.TRAINED_ACCURACY, lambda rounds, y: y[rounds <= rounds[-1] / 2].mean()
        ),
        "mean over acquisitions": s.over_rounds(cell, edge.TRAINED_ACCURACY),
        "after the budget": s.metric(cell, edge.TRAINED_ACCURACY),
    }
    for cell in (
        *ACQUISITIONS,
        *(f + how for how in (_BRIEF, _PRINTED, _STOPPED) for f in _COMPARED),
    )
}
_SHOWN = {row: {c.capitalize(): measure for c, measure in of.items()} for row, of in _ROWS.items()}


def _leads(*pairs: tuple[str, str]) -> dict[str, s.Measure]:
    return edge.leads("accuracy of {one} - {other}, {of}", _ROWS, pairs, _ROWS[RANDOM])


_MANY, _FEW = _leads((ENTROPY, RANDOM)), _leads((ENTROPY + _BRIEF, RANDOM + _BRIEF))
_BOTH = list(zip(_ROWS[RANDOM], _FEW.values(), _MANY.values(), strict=True))
_CHECK = "lead of max entropy over random, E = 5 - E = 45"


def _cells(size: edge.Size) -> Iterator[s.Cell]:
    for f in ACQUISITIONS:
        num_seeds = None if f in _COMPARED else edge.FIRST_SEEDS
        yield size.run(f, active=f, observe=False, num_seeds=num_seeds)
    for f in _COMPARED:
        other: dict = {"active": f, "observe": False, "num_seeds": edge.FIRST_SEEDS}
        yield size.run(f + _BRIEF, epochs=5, **other)
        other["num_seeds"] = edge.FEW_SEEDS
        yield size.run(f + _PRINTED, pool_size=size.pool_size // 2, **other)
        yield size.run(f + _STOPPED, until=edge.TYPE_1, **other)


EXPERIMENT = s.Experiment(
    "edge_ensembles.figure8",
    "Figure 8: active learning against random choice",
    scales=edge.scales(_cells, 14),
    tables=[edge.table("Accuracy of the ensemble on the whole test set, Type II, F = 10", _SHOWN)],
    claims=[
        s.claim(
            "Given the same number of images, active learning (maximal entropy) outperforms random "
            "choice in terms of accuracy.",
            _MANY,
        ),
        s.claim(
            "So it does with the two other acquisition functions.",
            _leads((BALD, RANDOM), (RATIOS, RANDOM)),
        ),
        s.claim(
            "Ours: with 5 passes over a batch instead of 45, active learning (maximal entropy) "
            "does better against random choice than with all of them: many passes over a batch of "
            "unbalanced classes cost what was known of the others.",
            {f"{_CHECK}, {column}": few - many for column, few, many in _BOTH},
        ),
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
