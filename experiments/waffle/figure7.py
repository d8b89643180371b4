"""Figure 7 of WAFFLe: CIFAR-10 with two, three and four classes at each client."""

import experiments.study as s
from experiments.waffle import settings
from experiments.waffle.figure6 import settled
from experiments.waffle.settings import ACCURACY, FED_AVG, WAFFLE

_CIFAR, _GAIN = "CIFAR-10/unimodal", f"{WAFFLE} - {FED_AVG}"
_METHODS = (FED_AVG, WAFFLE)
_ROWS = (*_METHODS, _GAIN)
_CLASSES = {z: {"shards_per_client": z} for z in ("2", "3", "4")}
# Column -> method -> the cell, and the column of its `metrics.csv`.
_CURVES = {f"Z = {z}": {m: (f"{_CIFAR}/{m}/Z={z}", ACCURACY) for m in _METHODS} for z in _CLASSES}
_QUOTE = "outperforms FedAvg by 7.20% and 2.74%, respectively"
_PRINTED = s.printed({_GAIN: _QUOTE}, [*_CURVES][1:], "Appendix E")


def _cells(size: settings.Size) -> tuple[s.Cell, ...]:
    return settings.cells(size, [_CIFAR], _METHODS, "/Z={classes}", classes=_CLASSES)


def _of(row: str, z: str) -> s.Measure:
    if row == _GAIN:
        return _of(WAFFLE, z) - _of(FED_AVG, z)
    return s.metric(*_CURVES[z][row])


_QUICK = s.Scale(_cells(settings.CONVOLUTIONS), 45, "30 rounds, 5 % of the clients in each.")
_MORE = {f"gain - {p.value}, {p.column}": _of(_GAIN, p.column) - p.value / 100 for p in _PRINTED}
_ROUNDS = {z: settled(*of[WAFFLE]) for z, of in _CURVES.items()}
_LONGER = {f"rounds, {z} - Z = 2": _ROUNDS[z] - _ROUNDS["Z = 2"] for z in [*_ROUNDS][1:]}

EXPERIMENT = s.Experiment(
    "waffle.figure7",
    "Figure 7: less heterogeneity on CIFAR-10",
    scales=settings.scales(_cells(settings.SMOKE), _QUICK, _cells(settings.PAPER)),
    tables=[s.table("Local test accuracy after the last round", _ROWS, [*_CURVES], _of)],
    printed=_PRINTED,
    claims=[
        s.claim(f"WAFFLe still {_QUOTE}, with three and four classes at each client.", _MORE),
        s.claim("It takes longer to converge than with two classes.", _LONGER, form=s.Form(1)),
    ],
    figures=[
        s.curves(
            "Local test accuracy over the rounds",
            "FedAvg and WAFFLe on CIFAR-10 for Z = 3 and Z = 4: WAFFLe takes longer to converge "
            "than for Z = 2, and ends above FedAvg.",
            _CURVES,
        )
    ],
)
