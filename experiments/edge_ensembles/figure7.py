"""Figure 7: three ways of making one model of four, and the devices without any."""

from collections.abc import Iterator

import experiments.study as s
from experiments.edge_ensembles import settings as edge
from experiments.edge_ensembles.settings import AVE, DEVICES, ENSEMBLE, METHODS, MIX, ONCE, OPT

_INITIAL = s.metric(edge.INITIAL, edge.TRAINED_ACCURACY)
_BY_TEST = {m: f"{edge.run_name(method=m)}, selected on the test set" for m in (OPT, MIX)}


def _cells(size: edge.Size) -> Iterator[s.Cell]:
    yield s.Cell(edge.INITIAL, size.start())
    for budget in edge.BUDGETS:
        yield from (size.run(method=method, budget=budget) for method in METHODS)
        yield size.run(frequency=ONCE, budget=budget)
    if size is not edge.QUICK:  # The published runs look at no test data.
        as_in_paper = size.but(selection_examples=None)
        for method, name in _BY_TEST.items():
            # Not observed, so that its results are marked.
            yield as_in_paper.run(name, method=method, observe=False, ensemble_selection="test")


def _models(budget: int) -> dict[str, s.Measure]:
    found = {m: edge.accuracies(edge.run_name(method=m, budget=budget)) for m in METHODS}
    ensembles = {method: of[ENSEMBLE] for method, of in found.items()}
    alone = edge.accuracies(edge.run_name(frequency=ONCE, budget=budget), DEVICES)
    return {"ACC_0": _INITIAL, **ensembles, **alone}


_ROWS = {f"{budget} acquisitions": _models(budget) for budget in edge.BUDGETS}
_JUDGED = {method: s.metric(cell, edge.TRAINED_ACCURACY) for method, cell in _BY_TEST.items()}
_LIKE_MIX = {
    OPT: "There is no big difference (5 points) between OptFL and MixFL, with 10 acquisitions and "
    "with 20.",
    AVE: "The overall accuracy of MixFL and AveFL is similar (within 5 points; §IV-F).",
}


def _like_mix(text: str, method: str) -> s.Claim:
    distances = {row: abs(of[method] - of[MIX]) for row, of in _ROWS.items()}
    return s.claim(text, {f"5 points - distance, {row}": 0.05 - d for row, d in distances.items()})


EXPERIMENT = s.Experiment(
    "edge_ensembles.figure7",
    "Figure 7: ensemble strategies",
    scales=edge.scales(_cells),
    tables=[
        edge.table("Accuracy on the whole test set, Type I; devices without ensembling", _ROWS),
        edge.table("Models selected on test data, as in the paper", {"10 acquisitions": _JUDGED}),
    ],
    claims=[_like_mix(text, method) for method, text in _LIKE_MIX.items()],
    figures=[
        edge.bars(
            _ROWS,
            "the four local models are below the three strategies.",
            columns=1,
            title="Initial accuracy, three strategies, and devices without ensembling",
        )
    ],
)
