"""What is said of all methods together: the clients, a table, figures."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from experiments.run.setup import Setup
from tff_het.evaluation import figures
from tff_het.simulation import records

# Column of the table -> entry of summary.json or of `_best_round`, how it is printed.
_COLUMNS = {
    "local test accuracy": ("local_test_accuracy_mean", "{:.4f}"),
    "weighted by examples": ("local_test_accuracy_weighted_mean", "{:.4f}"),
    "best round": ("best_round_on_test", "{:.4f}"),
    "std over clients": ("local_test_accuracy_std", "{:.4f}"),
    "worst 10 %": ("local_test_accuracy_worst_decile", "{:.4f}"),
    "pooled AUC": ("local_test_auc_pooled", "{:.4f}"),
    "global model": ("global_test_accuracy", "{:.4f}"),
    "new test accuracy": ("new_test_accuracy_average", "{:.4f}"),
    "parameters sent": ("parameters_sent", "{:,}"),
    "MB up": ("bytes_up_total", "{:.2f}"),
    "MB down": ("bytes_down_total", "{:.2f}"),
}
# What only some data or flags give; left out where no method has it.
_OPTIONAL = ("local_test_auc_pooled", "new_test_accuracy_average")
# Other suites report other means: which is which stands below the table.
_NOTES = """
Local test accuracy: the mean over clients, each on its own test examples, after the last round.
Weighted by examples: the same, where each example counts the same.
Best round: the highest weighted value of all rounds, as other suites report; chosen on test data.
"""


def describe(made: Setup, folder: Path) -> None:
    """Prints who holds what, and keeps the partition and its picture."""
    labels, test_labels = made.dataset.train["y"], made.dataset.test["y"]
    print(f"{made.dataset.name}: {made.dataset.source}")
    print(made.partition.describe(labels, test_labels))
    (folder / "figures").mkdir(parents=True, exist_ok=True)
    made.partition.save(folder / "partition.npz")
    figure = figures.sheet(8, 5)
    made.partition.draw(figure.subplots(), labels, class_names=made.dataset.class_names)
    figures.save(figure, folder / "figures" / "partition.png")


def write(made: Setup, folder: Path, methods: Sequence[str]) -> str:
    """Writes the comparison's tables and figures; returns the table as text."""
    summaries = [_of_run(folder / method) for method in methods]
    curves = {method: _curve(folder / method) for method in methods}
    tested = {method: np.array(list(by_client(folder / method).values())) for method in methods}
    for method in methods:
        own = folder / method / "figures"
        own.mkdir(exist_ok=True)
        _draw(own, {method: curves[method]}, {method: tested[method]}, made)
    _draw(folder / "figures", curves, tested, made)
    columns = {
        column: (key, form)
        for column, (key, form) in _COLUMNS.items()
        if key not in _OPTIONAL or any(key in summary for summary in summaries)
    }
    table = _table(summaries, columns) + "\n" + _NOTES.rstrip()
    records.write_atomically(folder / "comparison.md", table + "\n")
    lines = [",".join(["method", *(key for key, _ in columns.values())])]
    lines += [
        ",".join([s["method"], *(str(s.get(key, "")) for key, _ in columns.values())])
        for s in summaries
    ]
    records.write_atomically(folder / "comparison.csv", "\n".join(lines) + "\n")
    return table


def _of_run(folder: Path) -> dict[str, Any]:
    """The run's summary, and the best of its rounds."""
    rows = records.read_table(folder / "metrics.csv")
    values = [row["local_test_accuracy_weighted_mean"] for row in rows]
    summary = records.read_json(folder / "summary.json")
    return summary | {"best_round_on_test": max(float(value) for value in values if value)}


def _draw(folder: Path, curves, by_client, made: Setup) -> None:
    figures.save(figures.accuracy_over_rounds(curves), folder / "accuracy_over_rounds.png")
    figures.save(
        figures.accuracy_by_client(by_client, made.population.ids),
        folder / "accuracy_by_client.png",
    )
    groups = np.array(made.population.groups)
    if any(groups):
        panels = {
            method: {group: values[groups == group] for group in dict.fromkeys(groups)}
            for method, values in by_client.items()
        }
        figures.save(figures.histograms_by_group(panels), folder / "accuracy_by_group.png")


def _table(summaries: Sequence[dict[str, Any]], columns: Mapping[str, tuple[str, str]]) -> str:
    rows = [["method", *columns]]
    for summary in summaries:
        row = [summary["method"]]
        for column, (key, form) in columns.items():
            value = summary.get(key)
            if value is not None and column.startswith("MB"):
                value /= 1e6
            row.append("-" if value is None else form.format(value))
        rows.append(row)
    return aligned(rows)


def aligned(rows: Sequence[Sequence[str]]) -> str:
    """Returns a table in Markdown whose columns are aligned; the first row is its head."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = [
        "| " + " | ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)) + " |"
        for row in rows
    ]
    lines.insert(1, "|" + "|".join("-" * (w + 2) for w in widths) + "|")
    return "\n".join(lines)


def _curve(folder: Path) -> figures.Curve:
    rows = records.read_table(folder / "metrics.csv")
    rows = [row for row in rows if row["local_test_accuracy_mean"]]
    rounds = np.array([int(row["round"]) for row in rows])
    return figures.Curve(rounds, [float(row["local_test_accuracy_mean"]) for row in rows])


def by_client(folder: Path) -> dict[str, float]:
    """Returns each tested client's accuracy in the last evaluation of a run, by its id."""
    rows = [row for row in records.read_table(folder / "clients.csv") if row["split"] == "test"]
    last = rows[-1]["round"]
    return {row["client"]: float(row["accuracy"]) for row in rows if row["round"] == last}
