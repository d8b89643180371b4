"""Figure 12: activations of the last hidden layer on images of a class that one device has."""

import experiments.study as s
from experiments.edge_ensembles import settings as edge

_RUN = edge.run_name()
_SHOWN = {"Model of D1": "D1", "Ensemble": "ensemble", "Model of D3": "D3"}
_ARRAYS = {title: (_RUN, f"{of}_activations") for title, of in _SHOWN.items()}
_ALIKE = {d: s.metric(_RUN, f"{d}_activations") for d in edge.DEVICES}
_FORM = s.Form(digits=3)
_TABLE = "Correlation of activations with the ensemble's, on ten test images of class 1"
_CLOSER = "D1's activations are closer to the ensemble's than those of D3, which lacks class 1."
_CHECKS = {"correlation with the ensemble's, D1 - D3": _ALIKE["D1"] - _ALIKE["D3"]}

EXPERIMENT = s.Experiment(
    "edge_ensembles.figure12",
    "Figure 12: activation patterns",
    scales=edge.scales(lambda size: [size.run()], 12),
    tables=[s.table(_TABLE, _ALIKE, ["Correlation"], lambda alike, _: alike, _FORM)],
    claims=[s.claim(_CLOSER, _CHECKS, form=_FORM)],
    figures=[
        s.heat_maps(
            "Activations of the last hidden layer, seed 0",
            "D1's model is similar to the ensemble, and fairly different from D3's.",
            lambda results: edge.arrays(results, _ARRAYS),
            xlabel="unit of the last hidden layer",
            ylabel="test image of class 1",
            label="output",
        )
    ],
)
