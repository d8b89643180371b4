"""Figure 10: how far the devices' models are from the ensemble, layer by layer."""

import itertools

import experiments.study as s
from experiments.edge_ensembles import settings as edge

# The network of scale `smoke` lacks two of them.
_LAYERS = ("conv_1", "conv_2", "conv_3", "conv_4", "dense_1", "output")
# As the paper's panels go, from the largest divergence on.
_RUNS = {f"F = {f}": edge.run_name(frequency=f) for f in reversed(edge.FREQUENCIES)}
_ACCURACIES = {row: edge.accuracies(run) for row, run in _RUNS.items()}
_ENSEMBLE = {row: edge.ensemble(run) for row, run in _RUNS.items()}
# Panel -> device -> layer.
_DIVERGENCE = {
    row: {d: {k: s.metric(run, f"divergence_{k}_{d}") for k in _LAYERS} for d in edge.DEVICES}
    for row, run in _RUNS.items()
}
_BY_LAYER = {
    f"{row}, {k}": {d: layers[k] for d, layers in of.items()}
    for row, of in _DIVERGENCE.items()
    for k in _LAYERS
}
_FORM = s.Form(digits=3)
_BELOW = "below each panel of divergence, devices and ensemble, which is best at 10c."

EXPERIMENT = s.Experiment(
    "edge_ensembles.figure10",
    "Figure 10: weight divergence and the ensemble",
    scales=edge.scales(lambda size: [size.run(frequency=f) for f in edge.FREQUENCIES], 24),
    tables=[
        edge.table("Divergence, E = 45", _BY_LAYER, _FORM),
        edge.table("Accuracy on the whole test set", _ACCURACIES),
    ],
    claims=[
        s.claim(
            "From Figure 10a (F = 1) to 10d (F = 10), the divergence of every layer decreases.",
            {
                f"divergence of {k}, {d}, {a} - {b}": _DIVERGENCE[a][d][k] - _DIVERGENCE[b][d][k]
                for a, b in itertools.pairwise(_RUNS)
                for d in edge.DEVICES
                for k in _LAYERS
            },
            form=_FORM,
        ),
        s.claim(
            "The ensemble increases at first, and is best at the third of the four levels.",
            {
                f"accuracy of the ensemble at {a} - {b}": _ENSEMBLE[a] - _ENSEMBLE[b]
                for a, others in {"F = 2": ["F = 1"], "F = 5": ["F = 1", "F = 2", "F = 10"]}.items()
                for b in others
            },
        ),
    ],
    figures=[
        s.bars(
            "Divergence of each layer and device",
            "four panels, from the largest divergence (10a) to the smallest (10d), each with its "
            "own scale.",
            _DIVERGENCE,
            xlabel="layer",
            ylabel="divergence",
            factor=1.0,
            columns=2,
            share_y=False,
        ),
        edge.bars(_ACCURACIES, _BELOW, columns=4),
    ],
)
