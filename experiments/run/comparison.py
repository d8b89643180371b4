"""What is said of all methods together: the clients, a table, figures."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from experiments.run.setup import Setup
from tff_het.evaluation import figures
from tff_het.simulation import records

# Column of the table -> entry of summary.json, or the best of metrics.csv, and how it is printed.
_COLUMNS = {
    "local test accuracy": ("local_test_accuracy_mean", "{:.4f}"),
    "weighted by examples": ("local_test_accuracy_weighted_mean", "{:.4f}"),
    "best round": ("best_round_on_test", "{:.4f}"),
    "std over clients": ("local_test_accuracy_std", "{:.4f}"),
    "worst 10 %": ("local_test_accuracy_worst_decile", "{:.4f}"),
    "pooled AUC": ("local_test_auc_pooled", "{:.4f}"),
    "global model": ("global_test_accuracy", "{:.4f}"),
    "new test accuracy": ("new_test_accuracy_average", "{:.4f}"),
    "shared parameters": ("parameters_sent", "{:,}"),
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
    summaries, curves, tested = [], {}, {}
    for method in methods:
        run = folder / method
        rows = records.read_table(run / "metrics.csv")
        rows = [row for row in rows if row["local_test_accuracy_mean"]]
        summary = records.read_json(run / "summary.json")
        weighted = [float(row["local_test_accuracy_weighted_mean"]) for row in rows]
        summaries.append(summary | ({"best_round_on_test": max(weighted)} if rows else {}))
        points = [(int(row["round"]), float(row["local_test_accuracy_mean"])) for row in rows]
        curves[method] = tuple(zip(*points, strict=True)) or ((), ())  # No client had examples.
        tested[method] = np.array(list(by_client(run).values()))
        (run / "figures").mkdir(exist_ok=True)
        _draw(run / "figures", {method: curves[method]}, {method: tested[method]}, made)
    _draw(folder / "figures", curves, tested, made)
    optional = {key for key in _OPTIONAL if not any(key in summary for summary in summaries)}
    columns = {name: column for name, column in _COLUMNS.items() if column[0] not in optional}
    keys = ["method", *(key for key, _ in columns.values())]
    lines = [keys, *([summary.get(key, "") for key in keys] for summary in summaries)]
    records.write_atomically(folder / "comparison.csv", records.as_csv(lines))
    cells = [["method", *columns], *(_cells(summary, columns) for summary in summaries)]
    table = aligned(cells) + _NOTES
    records.write_atomically(folder / "comparison.md", table)
    return table.rstrip()


def _cells(summary: Mapping[str, Any], columns: Mapping[str, tuple[str, str]]) -> list[str]:
    found = [summary["method"]]
    for name, (key, form) in columns.items():
        value = summary.get(key)
        if value is not None and name.startswith("MB"):
            value /= 1e6
        found.append("-" if value is None else form.format(value))
    return found


def _draw(folder: Path, curves, by_client, made: Setup) -> None:
    figures.save(figures.accuracy_over_rounds(curves), folder / "accuracy_over_rounds.png")
    if made.settings.evaluation_cohorts is not None:
        return  # Others in each round, in which methods need not end together.
    compared = figures.accuracy_by_client(by_client, made.population.ids)
    figures.save(compared, folder / "accuracy_by_client.png")
    groups = np.array(made.population.groups)
    if any(groups):
        panels = {
            method: {group: values[groups == group] for group in dict.fromkeys(groups)}
            for method, values in by_client.items()
        }
        figures.save(figures.histograms_by_group(panels), folder / "accuracy_by_group.png")


def aligned(rows: Sequence[Sequence[str]]) -> str:
    """Returns a table in Markdown whose columns are aligned; the first row is its head."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    padded = [[cell.ljust(w) for cell, w in zip(row, widths, strict=True)] for row in rows]
    lines = [f"| {' | '.join(cells)} |" for cells in padded]
    lines.insert(1, f"|{'|'.join('-' * (w + 2) for w in widths)}|")
    return "\n".join(lines)


def by_client(folder: Path) -> dict[str, float]:
    """Returns each tested client's accuracy in the last evaluation of a run, by its id."""
    rows = [row for row in records.read_table(folder / "clients.csv") if row["split"] == "test"]
    last = rows[-1]["round"]
    return {row["client"]: float(row["accuracy"]) for row in rows if row["round"] == last}
