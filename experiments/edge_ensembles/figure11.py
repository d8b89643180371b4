"""Figure 11: how many images of each class devices and ensembles classify correctly."""

import operator

import experiments.study as s
from experiments.edge_ensembles import settings as edge
from experiments.edge_ensembles.settings import AVE, DEVICES, ENSEMBLE, MIX, MODELS

_FEW: list[dict] = [{"frequency": 1}, {"method": MIX}, {"budget": 20}]
_COUNT = s.Form(digits=0)
_CLASSES = {f"class {k}": k for k in range(10)}
_TITLE = "Correctly classified test images of each class"
_RUNS = {method: edge.run_name(method=method) for method in (AVE, MIX)}
# Method -> model -> class -> test images.
_CORRECT = {method: {of: edge.correct(run, of) for of in MODELS} for method, run in _RUNS.items()}
_AVERAGE = _CORRECT[AVE][ENSEMBLE]
_EASY = [k for k in range(10) if k not in (4, 6)]
_DIFFICULT = s.combined(max, _AVERAGE[4], _AVERAGE[6])
_OF_MIX = edge.unlike(_RUNS[MIX], _RUNS[AVE])
_OF_LONGER = edge.unlike(edge.run_name(budget=20), _RUNS[AVE])


def _own(run: str) -> s.Measures:
    """That each device classifies less than one image of other classes."""
    of = {d: enumerate(edge.correct(run, d)) for d in DEVICES}
    others = {d: s.total(n for k, n in of[d] if k not in edge.CLASSES[d]) for d in DEVICES}
    return {f"1 - images of other classes, {d}": 1 - n for d, n in others.items()}


_KNOWN = {f"correct in {k} - in the better of 4 and 6": _AVERAGE[k] - _DIFFICULT for k in _EASY}
_OWN = "Local models can only predict the classes generated at their own device."
_ALONE = "Ours: trained without any ensembling, they can only predict these classes."
_OURS = "Ours: MixFL learns another distribution than AveFL: more so than with more data."
_MOST = "The average model can predict most classes, but has difficulty with 4 and 6."


def _figure(method: str, paper_shows: str) -> s.Figure:
    devices = {of: {str(k): n for k, n in enumerate(c)} for of, c in _CORRECT[method].items()}
    ensemble = {ENSEMBLE: devices.pop(ENSEMBLE)}
    panels = {"Devices, before ensembling": devices, "Ensemble": ensemble}
    y = "correctly classified test images"
    return s.bars(method, paper_shows, panels, xlabel="class", ylabel=y, factor=1.0)


EXPERIMENT = s.Experiment(
    "edge_ensembles.figure11",
    "Figure 11: what devices and ensembles know",
    scales=edge.scales(lambda of: [of.run(), *(of.run(num_seeds=14, **x) for x in _FEW)], 130),
    tables=[
        s.table(f"{_TITLE}, {method}", of, _CLASSES, operator.getitem, _COUNT)
        for method, of in _CORRECT.items()
    ],
    claims=[
        s.claim(_OWN, _own(_RUNS[AVE]), form=_COUNT),
        s.claim(_ALONE, _own(edge.run_name(frequency=1)), form=_COUNT),
        s.claim(_MOST, _KNOWN, form=_COUNT),
        s.claim(_OURS, {"distance of MixFL - of AveFL with 20 acquisitions": _OF_MIX - _OF_LONGER}),
    ],
    figures=[
        _figure(AVE, "11a. A device knows only its own classes, the average most but 4 and 6."),
        _figure(MIX, "11b. MixFL learns another distribution, at a similar accuracy."),
    ],
)
