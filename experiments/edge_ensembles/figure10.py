"""Figure 10: how far the devices' models are from the ensemble, layer by layer."""

import itertools

import experiments.study as s
from experiments.edge_ensembles import settings as edge
from experiments.edge_ensembles.settings import DEVICES

# Each scale has one of the data sets.
_LAYERS = {
    "fashion_mnist": ("conv_1", "conv_2", "conv_3", "conv_4", "dense_1", "output"),
    "digits": ("conv_1", "conv_2", "dense_1", "output"),
}
# Data set -> F, as the paper's panels go from the largest divergence on -> cell.
_RUNS = {
    data: {f: f"{data}/{edge.run_name(frequency=f)}" for f in reversed(edge.FREQUENCIES)}
    for data in _LAYERS
}
_PANELS = {f"F = {f} ({data})": (data, run) for data, of in _RUNS.items() for f, run in of.items()}
_DIVERGENCE = s.Form(digits=3)


def _divergence(data: str, run: str) -> dict[str, dict[str, s.Measure]]:
    """By device and layer."""
    return {d: {k: s.metric(run, f"divergence_{k}_{d}") for k in _LAYERS[data]} for d in DEVICES}


def _of(data: str) -> tuple[list[s.Table], list[s.Claim]]:
    accuracies = {f"F = {f}": edge.accuracies(run) for f, run in _RUNS[data].items()}
    layers = {
        f"F = {f}, {layer}": {device: of[layer] for device, of in _divergence(data, run).items()}
        for f, run in _RUNS[data].items()
        for layer in _LAYERS[data]
    }
    mean = {row: s.mean(list(of.values())) for row, of in layers.items()}
    third = [("F = 5", other) for other in accuracies if other != "F = 5"]
    tables = [
        edge.table(f"Divergence, E = 45 ({data})", layers, _DIVERGENCE),
        edge.table(f"Accuracy on the whole test set ({data})", accuracies),
    ]
    claims = [
        s.claim(
            f"({data}) From Figure 10a to 10d, here from F = 1 to F = 10, the divergence of every "
            "layer decreases.",
            {
                f"mean divergence of {k}, {a} - {b}": mean[f"{a}, {k}"] - mean[f"{b}, {k}"]
                for a, b in itertools.pairwise(accuracies)
                for k in _LAYERS[data]
            },
            form=_DIVERGENCE,
        ),
        s.claim(
            f"({data}) The ensemble is best at the third of the four levels, and worse where "
            "models differ more and where they differ less.",
            edge.leads("accuracy of the ensemble at {one} - {other}", accuracies, third),
        ),
    ]
    return tables, claims


EXPERIMENT = s.Experiment(
    "edge_ensembles.figure10",
    "Figure 10: weight divergence and the ensemble",
    scales=edge.scales(
        lambda size: [size.run(r, frequency=f) for f, r in _RUNS[size.flags["dataset"]].items()],
        17,
    ),
    tables=[table for data in _LAYERS for table in _of(data)[0]],
    claims=[claim for data in _LAYERS for claim in _of(data)[1]],
    figures=[
        s.bars(
            "Divergence of each layer and device",
            "four panels, from the largest divergence (10a) to the smallest (10d), each with its "
            "own scale.",
            {panel: _divergence(*of) for panel, of in _PANELS.items()},
            xlabel="layer",
            ylabel="divergence",
            factor=1.0,
            columns=2,
            share_y=False,
        ),
        edge.bars(
            {panel: edge.accuracies(run) for panel, (_, run) in _PANELS.items()},
            "below each panel of divergence, devices and ensemble, which is best at 10c.",
            columns=4,
        ),
    ],
)
