"""Figure 3: which classes active learning acquires, acquisition by acquisition."""

import experiments.study as s
from experiments.edge_ensembles import settings as edge
from experiments.edge_ensembles.settings import DEVICES, ENTROPY, RANDOM

_IMBALANCE = {f: {d: s.metric(f, f"{d}_imbalance") for d in DEVICES} for f in (RANDOM, ENTROPY)}
_ARRAYS = {function: (function, "D1_acquired") for function in _IMBALANCE}
_TABLE = "Imbalance of classes in an acquisition (total variation distance from even classes, %)"

EXPERIMENT = s.Experiment(
    "edge_ensembles.figure3",
    "Figure 3: biased acquisition by active learning",
    scales=edge.scales(lambda size: [size.run(f, active=f, frequency=1) for f in _IMBALANCE], 6),
    tables=[edge.table(_TABLE, _IMBALANCE)],
    claims=[
        s.claim(
            "What active learning acquires is unbalanced, even when the pools are balanced: more "
            "so than a random choice from the same pools.",
            edge.minus("imbalance, max entropy - random", _IMBALANCE[ENTROPY], _IMBALANCE[RANDOM]),
        )
    ],
    figures=[
        s.heat_maps(
            "Acquired images by class and acquisition at D1, seed 0",
            "10 acquisitions of one device, each unbalanced in a different way.",
            lambda results: {f: a.T for f, a in edge.arrays(results, _ARRAYS).items()},
            xlabel="acquisition, from 0",
            ylabel="class",
            label="acquired images",
        )
    ],
)
