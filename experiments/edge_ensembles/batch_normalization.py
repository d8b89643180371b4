"""Section III-D: batch normalisation and ensembles of devices with different classes."""

import experiments.study as s
from experiments.edge_ensembles import settings as edge

_WITHOUT = "Without batch normalisation"
_AVERAGED = "With, statistics averaged"
_KEPT = "With, statistics kept at the device"
_ROWS = {run: edge.accuracies(run) for run in (_WITHOUT, _AVERAGED, _KEPT)}
_POOR = "With batch normalisation the ensemble performs very poorly: 26 points worse or more."
_OURS = "Ours: batch normalisation costs the ensemble also where devices keep their own statistics."
_QUOTE = (
    "the ensemble model performs very poorly (e.g. 20% accuracy whereas without batch "
    "normalization 47%)"
)


def _cells(size: edge.Size) -> list[s.Cell]:
    normalised = size.but(model=f"{size.flags['model']}_bn")
    kept = normalised.run(_KEPT, local_statistics=True)
    return [size.run(_WITHOUT), normalised.run(_AVERAGED), kept]


EXPERIMENT = s.Experiment(
    "edge_ensembles.batch_normalization",
    "Section III-D: batch normalisation",
    scales=edge.scales(_cells, 20),
    tables=[edge.table("Accuracy on the whole test set, Type I, E45F10", _ROWS)],
    printed=[
        s.Printed(_WITHOUT, edge.ENSEMBLE, 47, _QUOTE, "§III-D"),
        s.Printed(_AVERAGED, edge.ENSEMBLE, 20, _QUOTE, "§III-D"),
    ],
    claims=[
        s.better(_POOR, edge.ensemble, _WITHOUT, _AVERAGED, above=0.26),
        s.better(_OURS, edge.ensemble, _WITHOUT, _KEPT),
    ],
    figures=[edge.bars(_ROWS, "none, only the two numbers.")],
)
