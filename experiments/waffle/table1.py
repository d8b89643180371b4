"""Table 1 of WAFFLe: local test accuracy and numbers of parameters; half its runs are Table 2's."""

from collections.abc import Iterator

import numpy as np

import experiments.study as s
from experiments.waffle import settings, table2
from experiments.waffle.settings import ACCURACY, BASELINES, CIFAR, DATA, METHODS, WAFFLE

_SETTINGS = ("unimodal", "multimodal")
_SENT, _ALL = "# of parameters", "Multimodal"
_COUNT = s.Form(digits=0)
# Column -> a measure, of the cells without and with sub-populations.
_COLUMNS = {
    _SENT: (lambda uni, _: s.metric(uni, "parameters_sent"), _COUNT),
    "Unimodal": lambda uni, _: s.metric(uni, ACCURACY),
    _ALL: lambda _, multi: s.metric(multi, ACCURACY),
    "Unimodal, mean of the last ten rounds": lambda uni, _: s.last_rounds(uni, ACCURACY),
    "Multimodal, mean of the last ten rounds": lambda _, multi: s.last_rounds(multi, ACCURACY),
    "Further ones at each client": (
        lambda uni, _: s.metric(uni, "parameters_total") - s.metric(uni, "parameters_sent"),
        _COUNT,
    ),
}
_PRINTED = {
    "MNIST, FedAvg": "FedAvg 155,800 94.46±0.84 91.57±1.42",
    "MNIST, FedProx": "FedProx 155,800 94.44±1.15 91.53±1.05",
    "MNIST, q-FFL": "q-FFL 155,800 91.46±1.07 88.42±1.24",
    "MNIST, WAFFLe": "WAFFLe 120,200 96.23±0.31 95.41±0.36",
    "FMNIST, FedAvg": "FedAvg 28,880 83.96±0.91 83.43±2.27",
    "FMNIST, FedProx": "FedProx 28,800 84.19±0.99 83.59±2.30",
    "FMNIST, q-FFL": "q-FFL 28,800 83.10±0.36 85.73±0.21",
    "FMNIST, WAFFLe": "WAFFLe 18,155 87.12±0.89 86.09±0.92",
    "CIFAR-10, FedAvg": "FedAvg 61,770 52.54±0.14 45.46±1.69",
    "CIFAR-10, FedProx": "FedProx 61,770 52.36±0.11 44.95±1.17",
    "CIFAR-10, q-FFL": "q-FFL 61,770 43.82±0.52 38.25±1.12",
    "CIFAR-10, WAFFLe": "WAFFLe 42,780 71.30±0.92 66.35±0.72",
}
_OTHER = "FedAvg's count for the same network is 28,880, which fits it without biases"
_UNEXPLAINED = "Appendix C's network has another number, with or without biases"
_NOTES = {
    "FMNIST, FedProx": {_SENT: _OTHER},
    "FMNIST, q-FFL": {_SENT: _OTHER},
    "FMNIST, WAFFLe": {_SENT: _UNEXPLAINED},
    "CIFAR-10, WAFFLe": {_SENT: _UNEXPLAINED},
}
_MLP = "784 x 200 + 200 x 10 is 158,800, without biases"
_LENET = f"{_UNEXPLAINED}; a LeNet-5 without biases has it"
for _method in BASELINES:
    _NOTES |= {f"MNIST, {_method}": {_SENT: _MLP}, f"CIFAR-10, {_method}": {_SENT: _LENET}}
_GROUPS = settings.by_place(table2.EXPERIMENT.printed)
_OF_GROUPS: dict[str, float] = {}  # What Table 2 gives for all clients together.
for _row, _quote in _PRINTED.items():
    _, *_clients = DATA[_row.split(", ")[0]].clients
    _means = [_GROUPS[_row, group].value for group in ("Majority", "Minority")]
    _OF_GROUPS[_row] = float(np.average(_means, weights=_clients))
    _found = f"{_OF_GROUPS[_row]:.2f}"
    if f" {_found}±" not in _quote:
        _sum = " + ".join(f"{n} x {mean:.2f}" for n, mean in zip(_clients, _means, strict=True))
        _note = f"Table 2's two groups give {_found} = ({_sum}) / {sum(_clients)}"
        _NOTES[_row] = _NOTES.get(_row, {}) | {_ALL: _note}


def _table(data: str) -> s.Table:
    rows = {f"{data}, {m}": [f"{data}/{of}/{m}" for of in _SETTINGS] for m in METHODS}
    return s.table(data, rows, _COLUMNS, lambda cells, measure: measure(*cells))


def _leads(data: str, of: str) -> dict[str, s.Measure]:
    """WAFFLe's leads over the baselines."""
    accuracy = {method: s.metric(f"{data}/{of}/{method}", ACCURACY) for method in METHODS}
    return {method: accuracy[WAFFLE] - accuracy[method] for method in BASELINES}


def _lead(data: str, of: str) -> s.Measure:
    return s.combined(min, *_leads(data, of).values())


def _claims(data: str) -> Iterator[s.Claim]:
    """What sections 2 and 4 say of each data set."""
    waffle = {of: f"{data}/{of}/{WAFFLE}" for of in _SETTINGS}
    higher = "WAFFLe's local test accuracy is higher than the baselines'."
    sparse, reused = {}, {}
    for of, cell in waffle.items():
        leads = {f"accuracy of {WAFFLE} - {m}": lead for m, lead in _leads(data, of).items()}
        yield s.claim(f"({data}, {of}) {higher}", leads)
        for layer, number in (one.split("=") for one in DATA[data].factors.split(",")):
            active, shared = (s.metric(cell, f"{x}_factors_{layer}") for x in ("active", "shared"))
            sparse[f"1/2 - share of active factors, {of}, {layer}"] = 0.5 - active / int(number)
            name = f"share of a client's factors that another has - by chance, {of}, {layer}"
            reused[name] = shared / active - active / int(number)
    size = {m: s.metric(f"{data}/unimodal/{m}", "parameters_total") for m in METHODS}
    text = f"({data}) WAFFLe has fewer parameters in all than the baselines' single model."
    yield s.claim(text, {f"{m} - {WAFFLE}": size[m] - size[WAFFLE] for m in BASELINES}, form=_COUNT)
    text = f"({data}) WAFFLe's advantage is especially apparent with sub-populations."
    uni, multi = (_leads(data, of) for of in _SETTINGS)
    yield s.claim(text, {f"lead over {m}, multimodal - unimodal": multi[m] - uni[m] for m in multi})
    row = f"{data}, {WAFFLE}"
    whole = min(settings.by_place(_ROWS)[row, _ALL].value, _OF_GROUPS[row])
    behind = whole - _GROUPS[row, "Minority"].value
    text = (
        f"({data}) With WAFFLe the minority performs on par with all clients: the difference is no "
        f"larger than the printed {behind:.2f} points."
    )
    everybody, minority = (s.metric(waffle["multimodal"], x) for x in (ACCURACY, settings.MINORITY))
    gap = abs(everybody - minority)
    yield s.claim(text, {"printed difference - |all - minority|": behind / 100 - gap})
    text = f"Ours: ({data}) On average a client uses less than half of the factors."
    yield s.claim(text, sparse)
    text = f"Ours: ({data}) Clients reuse factors more than independent choices would."
    yield s.claim(text, reused)


def _claim_on_cifar(of: str, points: float) -> s.Claim:
    """What section 4 says of CIFAR-10 alone."""
    lead, name = _lead(CIFAR, of), f"lead over the best, {CIFAR}"
    checks = {f"{name} - {points} points": lead - points / 100}
    checks |= {f"{name} - {other}": lead - _lead(other, of) for other in DATA if other != CIFAR}
    return s.claim(
        f"({of}) WAFFLe outperforms particularly significantly on CIFAR-10: by {points} points, "
        "and by more than on the other data sets.",
        checks,
    )


_ROWS = s.printed(_PRINTED, [_SENT, "Unimodal", _ALL], "Table 1", _NOTES)

EXPERIMENT = s.Experiment(
    "waffle.table1",
    "Table 1: local test accuracy for Z = 2",
    scales=settings.main_scales(_SETTINGS, METHODS),
    tables=[*map(_table, DATA)],
    printed=_ROWS,
    claims=[
        *(claim for data in DATA for claim in _claims(data)),
        *map(_claim_on_cifar, _SETTINGS, (18.75, 20.88)),
    ],
)
