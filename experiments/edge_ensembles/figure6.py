"""Figure 6: accuracy of devices and ensemble for fewer and fewer ensembling steps."""

import experiments.study as s
from experiments.edge_ensembles import settings as edge

_ROWS = {run: edge.accuracies(run) for run in (f"E45F{f}" for f in edge.FREQUENCIES)}
# Mean over layers and devices.
_DIVERGENCE = {
    run: s.total(s.metric(run, f"divergence_{d}") for d in edge.DEVICES) / len(edge.DEVICES)
    for run in (*_ROWS, "E1F10")
}
_SHOWN = {run: {**_ROWS.get(run, {}), "Divergence": of} for run, of in _DIVERGENCE.items()}
_TEXT = "The ensemble's accuracy decreases with the ensembling frequency, at each step."
_TABLE = "Accuracy on the whole test set, Type I; mean divergence in percent"
_BY_F = _DIVERGENCE["E45F1"] - _DIVERGENCE["E45F10"]
_BY_E = _DIVERGENCE["E45F10"] - _DIVERGENCE["E1F10"]

EXPERIMENT = s.Experiment(
    "edge_ensembles.figure6",
    "Figure 6: ensembling frequency",
    scales=edge.scales(
        lambda size: [*(size.run(frequency=f) for f in edge.FREQUENCIES), size.run(epochs=1)], 24
    ),
    tables=[edge.table(_TABLE, _SHOWN)],
    claims=[
        s.rises(_TEXT, {f"F = {f}": edge.ensemble(f"E45F{f}") for f in reversed(edge.FREQUENCIES)}),
        s.claim(
            "Epoch and ensemble frequency cause divergence; the ensemble has more effect.",
            {
                "divergence at F = 1 - F = 10": _BY_F,
                "divergence at E = 45 - E = 1": _BY_E,
                "effect of F - effect of E": _BY_F - _BY_E,
            },
        ),
    ],
    figures=[edge.bars(_ROWS, "at E = 45, the lower F, the lower the ensemble.", columns=4)],
)
