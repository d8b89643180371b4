"""Figure 7: three ways of making one model of four, and the devices without any."""

from collections.abc import Iterator
from typing import Any

import experiments.study as s
from experiments.edge_ensembles import settings as edge
from experiments.edge_ensembles.settings import AVE, DEVICES, ENSEMBLE, METHODS, MIX, OPT

_BY_TEST = {m: f"{edge.run_name(method=m)}, selected on the test set" for m in (OPT, MIX)}
_JUDGED = {method: s.metric(cell, edge.TRAINED_ACCURACY) for method, cell in _BY_TEST.items()}
# The paper does not print E.
_CASES: dict[str, dict] = {
    "10 acquisitions": {"budget": 10},
    "20 acquisitions": {"budget": 20},
    "10 acquisitions, E = 15": {"epochs": 15},
    "10 acquisitions, E = 5": {"epochs": 5},
}


def _cells(size: edge.Size) -> Iterator[s.Cell]:
    yield s.Cell(edge.INITIAL, size.start())
    for case in _CASES.values():
        yield from (size.run(method=method, **case) for method in METHODS)
        yield size.run(frequency=1, **case)
    yield size.run(small=True)
    for method, name in _BY_TEST.items():
        yield size.run(method=method, small=True, num_seeds=edge.FEW_SEEDS)
        if size is not edge.QUICK:  # The published runs look at no test data.
            as_in_paper = size.but(selection_examples=0)
            # Not observed, so that its results are marked.
            yield as_in_paper.run(name, method=method, observe=False, ensemble_selection="test")


def _ensembles(**case: Any) -> dict[str, s.Measure]:
    names = {method: edge.run_name(method=method, **case) for method in METHODS}
    return {method: edge.accuracies(name)[ENSEMBLE] for method, name in names.items()}


def _alone(**case: Any) -> dict[str, s.Measure]:
    return edge.accuracies(edge.run_name(frequency=1, **case), DEVICES)


_ROWS = {
    row: {"ACC_0": edge.INITIAL_ACCURACY, **_ensembles(**case), **_alone(**case)}
    for row, case in _CASES.items()
}
_SMALL = {f"10 acquisitions, {edge.SMALL}": _ensembles(small=True)}
_KNOWN = {
    row: edge.unlike(*(edge.run_name(method=method, **case) for method in (OPT, MIX)))
    for row, case in _CASES.items()
}


def _like_mix(method: str) -> dict[str, s.Measure]:
    distances = {row: abs(of[method] - of[MIX]) for row, of in _ROWS.items()}
    return {f"5 points - distance, {row}": 0.05 - d for row, d in distances.items()}


EXPERIMENT = s.Experiment(
    "edge_ensembles.figure7",
    "Figure 7: ensemble strategies",
    scales=edge.scales(_cells),
    tables=[
        edge.table("Accuracy on the test set, Type I; devices without ensembling", _ROWS | _SMALL),
        edge.table("Models selected on test data, as in the paper", {"10 acquisitions": _JUDGED}),
    ],
    claims=[
        s.claim(
            "There is no big difference (5 points) between OptFL and MixFL, with 10 acquisitions "
            "and with 20. However, the whole distribution they learned is different.",
            _like_mix(OPT)
            | {f"OptFL and MixFL know others, {row}": m for row, m in _KNOWN.items()},
        ),
        s.claim(
            "The overall accuracy of MixFL and AveFL is similar (within 5 points; §IV-F).",
            _like_mix(AVE),
        ),
        s.claim(
            "Each of the three strategies is above the four independent local models.",
            {
                f"accuracy of {m} - the best device, {row}": _ROWS[row][m]
                - s.combined(max, *_alone(**case).values())
                for row, case in _CASES.items()
                for m in METHODS
            },
        ),
    ],
    figures=[
        edge.bars(
            _ROWS,
            "the four local models are below the three strategies.",
            columns=2,
            title="Initial accuracy, three strategies, and devices without ensembling",
        )
    ],
)
