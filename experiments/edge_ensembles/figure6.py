"""Figure 6: accuracy of devices and ensemble for fewer and fewer ensembling steps."""

import itertools

import experiments.study as s
from experiments.edge_ensembles import settings as edge

_ROWS = {f"E45F{f}": edge.accuracies(f"E45F{f}") for f in edge.FREQUENCIES}
_BY_FREQUENCY = {f"F = {f}": _ROWS[f"E45F{f}"] for f in edge.FREQUENCIES}
_CHECK = "accuracy at {one} - {other}"

EXPERIMENT = s.Experiment(
    "edge_ensembles.figure6",
    "Figure 6: ensembling frequency",
    scales=edge.scales(lambda size: [size.run(frequency=f) for f in edge.FREQUENCIES]),
    tables=[edge.table("Accuracy on the whole test set, Type I", _ROWS)],
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
    ],
    figures=[edge.bars(_ROWS, "at E = 45, the lower F, the lower the ensemble.", columns=4)],
)
