"""Figure 2 of WAFFLe: accuracy of the clients of either sub-population; the runs are Table 2's."""

import experiments.study as s
from experiments.waffle.settings import DATA, FED_AVG, WAFFLE, main_scales

_METHODS = (FED_AVG, WAFFLE)
_CELLS = {f"{data}, {m}": f"{data}/multimodal/{m}" for data in DATA for m in _METHODS}
_COLUMNS = {
    "Lowest client": "local_test_accuracy_min",
    "Mean of the worst tenth": "local_test_accuracy_worst_decile",
    "Median": "local_test_accuracy_median",
}


def _draw(results: s.Results):
    """A panel for each data set and method, with the clients of all seeds."""
    from tff_het.evaluation import figures

    panels: dict[str, dict[str, list[float]]] = {}
    for panel, cell in _CELLS.items():
        for row in [row for run in results.of(cell) for row in run.clients()]:
            groups = panels.setdefault(panel, {})
            groups.setdefault(row["group"], []).append(float(row["accuracy"]))
    return figures.histograms_by_group(panels, columns=len(_METHODS)) if panels else None


EXPERIMENT = s.Experiment(
    "waffle.figure2",
    "Figure 2: accuracy of the clients in both sub-populations",
    scales=main_scales(["multimodal"], _METHODS),
    tables=[
        s.table(data, {m: f"{data}/multimodal/{m}" for m in _METHODS}, _COLUMNS, s.metric)
        for data in DATA
    ],
    figures=[
        s.Figure(
            "Clients' local test accuracy after the last round",
            "The distribution over clients: with FedAvg the minority lies far below the majority, "
            "with WAFFLe close to it.",
            _draw,
        )
    ],
)
