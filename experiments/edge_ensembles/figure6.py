"""Figure 6: accuracy of devices and ensemble for fewer and fewer ensembling steps."""

import itertools

import experiments.study as s
from experiments.edge_ensembles import settings as edge

_ROWS = {run: edge.accuracies(run) for run in map("E45F{}".format, edge.FREQUENCIES)}
_BY_FREQUENCY = {run.replace("E45F", "F = "): of for run, of in _ROWS.items()}
_CHECK = "accuracy at {one} - {other}"


def _divergence(run: str) -> s.Measure:
    """Mean over layers and devices."""
    return s.mean([s.metric(run, f"divergence_{device}") for device in edge.DEVICES])


_SHOWN = {run: {**_ROWS.get(run, {}), "Divergence": _divergence(run)} for run in (*_ROWS, "E1F10")}
_BY_F, _BY_E = (
    _SHOWN[more]["Divergence"] - _SHOWN[less]["Divergence"]
    for more, less in (("E45F1", "E45F10"), ("E45F10", "E1F10"))
)

EXPERIMENT = s.Experiment(
    "edge_ensembles.figure6",
    "Figure 6: ensembling frequency",
    scales=edge.scales(
        lambda size: [*(size.run(frequency=f) for f in edge.FREQUENCIES), size.run(epochs=1)],
        17,
    ),
    tables=[
        edge.table("Accuracy on the whole test set, Type I; mean divergence in percent", _SHOWN)
    ],
    claims=[
        s.claim(
            "The ensemble's accuracy decreases with the ensembling frequency, from 10 to 1.",
            edge.leads(_CHECK, _BY_FREQUENCY, [("F = 10", "F = 1")]),
        ),
        s.claim(
            "It does so from each frequency to the next.",
            edge.leads(_CHECK, _BY_FREQUENCY, itertools.pairwise(_BY_FREQUENCY)),
        ),
        s.claim(
            "Local models that were never part of an ensemble reach at most their classes' share "
            "of the test set and 3 points (20, 20, 30 and 30 %).",
            {
                f"share + 3 points - accuracy of {d}": edge.SHARES[d] + 0.03 - _ROWS["E45F1"][d]
                for d in edge.DEVICES
            },
        ),
        s.claim(
            "Both the epoch and the ensemble frequency cause divergence, but the ensemble has a "
            "more significant effect than the epoch number (over the ranges of Figures 5 and 6).",
            {
                "divergence at F = 1 - F = 10": _BY_F,
                "divergence at E = 45 - E = 1": _BY_E,
                "effect of F - effect of E": _BY_F - _BY_E,
            },
        ),
    ],
    figures=[edge.bars(_ROWS, "at E = 45, the lower F, the lower the ensemble.", columns=4)],
)
