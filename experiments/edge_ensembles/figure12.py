"""Figure 12: activations of the last hidden layer on images of a class that one device has."""

from pathlib import Path
from typing import Any

import numpy as np

import experiments.study as s
from experiments.edge_ensembles import observed
from experiments.edge_ensembles import settings as edge
from tff_het.evaluation import divergence

_RUN = edge.run_name()
_SHOWN = {"Model of D1": "D1", "Ensemble": "ensemble", "Model of D3": "D3"}
_ALIKE = {d: s.metric(_RUN, f"{d}_activations") for d in edge.DEVICES}
_BOTH = "D1_and_D3_activations"
_FORM = s.Form(digits=3)
_TABLE = "Correlation of activations with the ensemble's, on ten test images of class 1"
_CLAIM = "D1 and the ensemble have similar activations; D3, which lacks class 1, differs from both."
_CHECKS = {
    "correlation with the ensemble's, D1 - D3": _ALIKE["D1"] - _ALIKE["D3"],
    "correlation of D1's, with the ensemble's - with D3's": _ALIKE["D1"] - s.metric(_RUN, _BOTH),
}


def last_round(*, folder: Path, **given: Any) -> dict[str, float]:
    """Adds to `observed.last_round` the correlation of D1's activations with D3's."""
    found = observed.last_round(folder=folder, **given)
    arrays = np.load(folder / observed.ARRAYS)
    one, other = (arrays[f"{device}_activations"] for device in ("D1", "D3"))
    return {**found, _BOTH: divergence.pattern_correlation(one, other)}


EXPERIMENT = s.Experiment(
    "edge_ensembles.figure12",
    "Figure 12: activation patterns",
    scales=edge.scales(lambda size: [size.run(observe=last_round)], 12),
    tables=[s.table(_TABLE, _ALIKE, ["Correlation"], lambda alike, _: alike, _FORM)],
    claims=[s.claim(_CLAIM, _CHECKS, form=_FORM)],
    figures=[
        s.heat_maps(
            "Activations of the last hidden layer, seed 0",
            "D1's model is similar to the ensemble, and fairly different from D3's.",
            lambda results: {
                title: of[f"{device}_activations"]
                for of in results.saved([_RUN], observed.ARRAYS).values()
                for title, device in _SHOWN.items()
            },
            xlabel="unit of the last hidden layer",
            ylabel="test image of class 1",
            label="output",
        )
    ],
)
