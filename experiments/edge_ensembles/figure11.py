"""Figure 11: how many images of each class devices and ensembles classify correctly."""

import operator

import experiments.study as s
from experiments.edge_ensembles import settings as edge
from experiments.edge_ensembles.settings import AVE, DEVICES, ENSEMBLE, MIX, MODELS

_COUNT = s.Form(digits=0)
_RUNS = {method: edge.run_name(method=method) for method in (AVE, MIX)}
# Method -> model -> class -> test images.
_CORRECT = {method: {of: edge.correct(run, of) for of in MODELS} for method, run in _RUNS.items()}
_AVERAGE = _CORRECT[AVE][ENSEMBLE]
_EASY = s.mean([_AVERAGE[k] for k in range(10) if k not in (4, 6)])
_DIFFICULT = s.mean([_AVERAGE[4], _AVERAGE[6]])
_OF_MIX, _OF_LONGER = (
    edge.unlike(run, _RUNS[AVE]) for run in (_RUNS[MIX], edge.run_name(budget=20))
)


def _table(method: str) -> s.Table:
    title = f"Correctly classified test images of each class, {method}"
    classes = {f"class {k}": k for k in range(10)}
    return s.table(title, _CORRECT[method], classes, operator.getitem, _COUNT)


def _figure(method: str, paper_shows: str) -> s.Figure:
    devices = {of: {str(k): n for k, n in enumerate(c)} for of, c in _CORRECT[method].items()}
    ensemble = {ENSEMBLE: devices.pop(ENSEMBLE)}
    panels = {"Devices, before ensembling": devices, "Ensemble": ensemble}
    y = "correctly classified test images"
    return s.bars(method, paper_shows, panels, xlabel="class", ylabel=y, factor=1.0)


def _own_only(device: str) -> s.Measure:
    """1 % less the share of other classes in what a device classifies correctly."""
    correct = _CORRECT[AVE][device]
    own = s.total(correct[k] for k in edge.CLASSES[device])
    return 0.01 - (s.total(correct) - own) / s.total(correct)


EXPERIMENT = s.Experiment(
    "edge_ensembles.figure11",
    "Figure 11: what devices and ensembles know",
    scales=edge.scales(
        lambda size: [*(size.run(method=method) for method in _RUNS), size.run(budget=20)],
        14,
    ),
    tables=[_table(AVE), _table(MIX)],
    claims=[
        s.claim(
            "Local models can only predict the classes generated at their own device: at most 1 % "
            "of what they classify correctly is of another.",
            {f"1 % - share of other classes, {device}": _own_only(device) for device in DEVICES},
        ),
        s.claim(
            "The average model can predict most of the classes: more than five, each at least a "
            "tenth as often as the best one.",
            {"classes": s.combined(lambda *n: sum(x >= max(n) / 10 for x in n), *_AVERAGE)},
            above=5.0,
            form=_COUNT,
        ),
        s.claim(
            "It has difficulty with classes 4 (coat) and 6 (shirt).",
            {"correct images a class, others - classes 4 and 6": _EASY - _DIFFICULT},
            form=_COUNT,
        ),
        s.claim(
            "MixFL learns another distribution than AveFL (Figure 11b): it differs more from "
            "AveFL's than AveFL's does after twice as many acquisitions.",
            {"distance of MixFL - of AveFL with 20 acquisitions": _OF_MIX - _OF_LONGER},
        ),
    ],
    figures=[
        _figure(AVE, "11a. A device knows only its own classes, the average most but 4 and 6."),
        _figure(MIX, "11b. MixFL learns another distribution, at a similar accuracy."),
    ],
)
