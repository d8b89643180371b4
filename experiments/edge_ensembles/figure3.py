"""Figure 3: which classes active learning acquires, acquisition by acquisition."""

import experiments.study as s
from experiments.edge_ensembles import settings as edge
from experiments.edge_ensembles.observed import ARRAYS

_BOTH = (edge.RANDOM, edge.ENTROPY)
_IMBALANCE = {f: {d: s.metric(f, f"{d}_imbalance") for d in edge.DEVICES} for f in _BOTH}
_MORE = edge.minus("imbalance of active learning - random", *reversed(_IMBALANCE.values()))
_CLAIM = "Active learning acquires unbalanced classes: more so than random choice does."
_TABLE = "Imbalance of classes in an acquisition (total variation distance from even classes, %)"

EXPERIMENT = s.Experiment(
    "edge_ensembles.figure3",
    "Figure 3: biased acquisition by active learning",
    scales=edge.scales(lambda size: [size.run(f, active=f, frequency=1) for f in _IMBALANCE], 6),
    tables=[edge.table(_TABLE, _IMBALANCE)],
    claims=[s.claim(_CLAIM, _MORE)],
    figures=[
        s.heat_maps(
            "Acquired images by class and acquisition at D1, seed 0",
            "10 acquisitions of one device, each unbalanced in a different way.",
            lambda results: {
                f: of["D1_acquired"].T for f, of in results.saved(_IMBALANCE, ARRAYS).items()
            },
            xlabel="acquisition, from 0",
            ylabel="class",
            label="acquired images",
        )
    ],
)
