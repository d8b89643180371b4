"""Table 2 and Figure 2 of WAFFLe: sub-populations, and the gap between them; Table 1's runs."""

import itertools
from typing import Any

import experiments.study as s
from experiments.waffle import settings
from experiments.waffle.settings import DATA, FED_AVG, MAJORITY, METHODS, MINORITY, WAFFLE

_GAP, _VARIANCE = "local_test_accuracy_gap", "local_test_accuracy_variance"
_POINTS_SQUARED = s.Form(digits=0, factor=1e4)
_ACCURACIES = {"Majority": MAJORITY, "Minority": MINORITY, "Gap": _GAP}
_COLUMNS = {
    **{column: (s.metric, name) for column, name in _ACCURACIES.items()},
    "Variance": ((s.metric, _VARIANCE), _POINTS_SQUARED),
    **{f"{column}, last ten rounds": (s.last_rounds, n) for column, n in _ACCURACIES.items()},
    "Lowest client": (s.metric, "local_test_accuracy_min"),
    "Mean of the worst tenth": (s.metric, "local_test_accuracy_worst_decile"),
    "Median client": (s.metric, "local_test_accuracy_median"),
}
_PRINTED = {
    "MNIST, FedAvg": r"FedAvg 96.63 \pm 0.70 67.40 \pm 11.26 29.23 \pm 11.79 199 \pm 106",
    "MNIST, FedProx": r"FedProx 96.43 \pm 0.67 68.60 \pm 9.44 27.83 \pm 10.03 186 \pm 92",
    "MNIST, q-FFL": r"q-FFL 94.93 \pm 0.31 54.20 \pm 7.37 40.73 \pm 7.55 355 \pm 117",
    "MNIST, WAFFLe": r"WAFFLe 95.93 \pm 0.16 93.87 \pm 0.66 2.07 \pm 0.77 26 \pm 6",
    "FMNIST, FedAvg": r"FedAvg 89.75 \pm 1.76 68.05 \pm 4.43 21.70 \pm 4.21 231 \pm 35",
    "FMNIST, FedProx": r"FedProx 89.95 \pm 1.73 67.50 \pm 4.50 22.45 \pm 4.38 233 \pm 42",
    "FMNIST, q-FFL": r"q-FFL 88.73 \pm 0.17 69.40 \pm 1.48 19.33 \pm 1.43 212 \pm 19",
    "FMNIST, WAFFLe": r"WAFFLe 88.91 \pm 2.07 79.67 \pm 1.52 9.25 \pm 0.61 145 \pm 27",
    "CIFAR-10, FedAvg": r"FedAvg 51.98 \pm 1.69 16.83 \pm 4.42 35.15 \pm 4.12 338 \pm 59",
    "CIFAR-10, FedProx": r"FedProx 51.26 \pm 1.44 16.56 \pm 3.32 32.70 \pm 6.99 318 \pm 36",
    "CIFAR-10, q-FFL": r"q-FFL 42.00 \pm 0.29 18.14 \pm 3.05 23.87 \pm 3.00 220 \pm 17",
    "CIFAR-10, WAFFLe": r"WAFFLe 68.37 \pm 1.01 55.00 \pm 6.00 13.37 \pm 2.61 182 \pm 27",
}
_NOTES = {"CIFAR-10, FedProx": {"Gap": "51.26 - 16.56 is 34.70"}}


def _table(data: str) -> s.Table:
    rows = {f"{data}, {method}": f"{data}/multimodal/{method}" for method in METHODS}
    return s.table(data, rows, _COLUMNS, lambda cell, of: of[0](cell, of[1]))


def _claims(data: str) -> list[s.Claim]:
    of = {method: f"{data}/multimodal/{method}" for method in (*settings.BASELINES, WAFFLE)}
    waffle, gap = {WAFFLE: of.pop(WAFFLE)}, settings.by_place(_ROWS)[f"{data}, {FED_AVG}", "Gap"]

    def better(text: str, name: str, *pair: dict[str, str], **more: Any) -> s.Claim:
        return s.better(f"({data}) {text}", lambda x: abs(s.metric(x, name)), *pair, **more)

    narrow = "The gap between the sub-populations is smaller with WAFFLe."
    higher = "The minority's accuracy is higher with WAFFLe."
    less, square = "The variance over clients is smaller with WAFFLe.", "variance in points squared"
    return [
        better(narrow, _GAP, of, waffle, by="size of the gap"),
        better(higher, MINORITY, waffle, of, by="minority's accuracy"),
        better(less, _VARIANCE, of, waffle, by=square, form=_POINTS_SQUARED),
        s.claim(
            f"({data}) With FedAvg the minority is severely compromised: the gap is the printed "
            f"{gap.value:.2f} ± {gap.interval:.2f} points or more.",
            {"gap of FedAvg": s.metric(of[FED_AVG], _GAP)},
            (gap.value - (gap.interval or 0)) / 100,
        ),
    ]


def _draw(results: s.Results):
    """A panel for each data set and method, with the clients of all seeds."""
    from tff_het.evaluation import figures

    panels: dict[str, dict[str, list[float]]] = {}
    for data, method in itertools.product(DATA, (FED_AVG, WAFFLE)):
        for row in [r for run in results.of(f"{data}/multimodal/{method}") for r in run.clients()]:
            groups = panels.setdefault(f"{data}, {method}", {})
            groups.setdefault(row["group"], []).append(float(row["accuracy"]))
    return figures.histograms_by_group(panels, columns=2) if panels else None


_ROWS = s.printed(_PRINTED, [*_ACCURACIES, "Variance"], "Table 2", _NOTES)

EXPERIMENT = s.Experiment(
    "waffle.table2",
    "Table 2 and Figure 2: sub-populations",
    scales=settings.main_scales(["multimodal"], METHODS),
    tables=[*map(_table, DATA)],
    printed=_ROWS,
    claims=[claim for data in DATA for claim in _claims(data)],
    figures=[
        s.Figure(
            "Figure 2: clients' local test accuracy after the last round",
            "The distribution over clients: with FedAvg the minority lies far below the majority, "
            "with WAFFLe it is on a par (so the text).",
            _draw,
        )
    ],
)
