"""Figure 7: three ways of making one model of four, and the devices without any."""

from collections.abc import Iterator
from typing import Any

import experiments.study as s
from experiments.edge_ensembles import settings as edge
from experiments.edge_ensembles.settings import AVE, DEVICES, METHODS, MIX, OPT

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
        yield size.run(frequency=1, num_seeds=edge.FIRST_SEEDS, **case)
    yield size.run(small=True, num_seeds=edge.FIRST_SEEDS)
    for method, name in _BY_TEST.items():
        yield size.run(method=method, small=True, num_seeds=edge.FEW_SEEDS)
        if size is not edge.QUICK:  # The published runs look at no test data.
            as_in_paper = size.but(selection_examples=0)
            # Not observed, so that its results are marked.
            yield as_in_paper.run(name, method=method, observe=None, ensemble_selection="test")


def _ensembles(**case: Any) -> dict[str, s.Measure]:
    return {m: edge.ensemble(edge.run_name(method=m, **case)) for m in METHODS}


_ROWS = {
    row: {"Initial": edge.INITIAL_ACCURACY, **_ensembles(**case)}
    | edge.accuracies(edge.run_name(frequency=1, **case), DEVICES)
    for row, case in _CASES.items()
}
_SMALL = {f"10 acquisitions, {edge.SMALL}": _ensembles(small=True)}
_TITLE = "Initial accuracy, three strategies, and devices without ensembling"
_OWN = edge.unlike(edge.run_name(), edge.run_name(budget=20))
_UNLIKE = {
    row: edge.unlike(*(edge.run_name(method=m, **case) for m in (OPT, MIX))) - _OWN
    for row, case in _CASES.items()
}


def _like_mix(method: str) -> s.Claim:
    distances = {row: abs(of[method] - of[MIX]) for row, of in _ROWS.items()}
    text = f"Ours, since no bound is printed: {method} and MixFL are alike, within 5 points."
    return s.claim(text, {f"5 points - distance, {row}": 0.05 - d for row, d in distances.items()})


EXPERIMENT = s.Experiment(
    "edge_ensembles.figure7",
    "Figure 7: ensemble strategies",
    scales=edge.scales(_cells, 30),
    tables=[
        edge.table("Accuracy on the test set, Type I; devices without ensembling", _ROWS | _SMALL),
        edge.table("Models selected on test data, as in the paper", {"10 acquisitions": _JUDGED}),
    ],
    claims=[
        s.claim(
            "Ours: OptFL's and MixFL's distributions differ more than AveFL's with more data.",
            {f"OptFL to MixFL, {row} - AveFL to AveFL at E = 45": d for row, d in _UNLIKE.items()},
        ),
        _like_mix(OPT),
        _like_mix(AVE),
        s.claim(
            "Ours, since no sentence says it: each strategy is above the four devices alone.",
            {
                f"accuracy of {m} - the best device, {row}": of[m]
                - s.combined(max, *(of[d] for d in DEVICES))
                for row, of in _ROWS.items()
                for m in METHODS
            },
        ),
    ],
    figures=[edge.bars(_ROWS, "OptFL and MixFL hardly differ (so the text).", 2, _TITLE)],
)
