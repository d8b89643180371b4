"""Table 2 of LG-FedAvg: goal, rounds and bytes to it, of made-up runs."""

import csv
import pathlib

import pytest

from experiments.lg_fedavg import table2
from experiments.lg_fedavg.table2 import EASY, FED_AVG, LG
from experiments.study import store
from experiments.study.store import Run, Status

# Validation accuracy in rounds 2, 4, 6; bytes are sent in each round.
ACCURACY = {FED_AVG: (0.3, 0.8, 0.7), LG: (0.5, 0.8, 0.9)}
TEST = (0.99, 0.1, 0.2)
BYTES = {FED_AVG: (10, 11), LG: (5, 6)}


def runs(folder: pathlib.Path, accuracy=ACCURACY) -> dict[str, Run]:
    found = {}
    for method, values in accuracy.items():
        files = folder / method / "files"
        files.mkdir(parents=True)
        with (files / "metrics.csv").open("w", newline="") as file:
            writer = csv.writer(file)
            columns = ("round", "bytes_up", "bytes_down")
            writer.writerow([*columns, table2._VALIDATION, "local_test_accuracy_mean"])
            for n in range(1, 7):
                measured = ("", "") if n % 2 else (values[n // 2 - 1], TEST[n // 2 - 1])
                writer.writerow([n, *BYTES[method], *measured])
        name = table2.cell_name(EASY, method)
        found[name] = Run(files.parent, Status.OK, {"files": store.digests(files)})
    return found


def test_goal_is_the_highest_accuracy_on_validation_examples_that_both_reach(tmp_path):
    found = runs(tmp_path)
    assert table2.goal(EASY).compute(found) == 0.8
    for method in (FED_AVG, LG):
        assert table2._to_goal(EASY, method).compute(found) == 4
        up, down = BYTES[method]
        assert table2._bytes(EASY, method).compute(found) == 4 * (up + down)


def test_the_better_method_has_it_earlier(tmp_path):
    found = runs(tmp_path, {FED_AVG: (0.3, 0.4, 0.5), LG: (0.5, 0.8, 0.9)})
    assert table2.goal(EASY).compute(found) == 0.5
    assert table2._to_goal(EASY, FED_AVG).compute(found) == 6
    assert table2._to_goal(EASY, LG).compute(found) == 2


@pytest.mark.parametrize("scale", ["quick", "paper"])
def test_methods_differ_in_what_is_local_alone_and_goals_are_not_of_test_examples(scale):
    cells = {cell.name: cell.work for cell in table2.EXPERIMENT.scales[scale].cells}
    ours, theirs = (dict(cells[table2.cell_name(EASY, m)].flags) for m in (LG, FED_AVG))
    assert float(ours["validation_fraction"]) > 0
    assert not any(work.uses_test_data for work in cells.values())
    assert ours.pop("local_layers") and ours.pop("method") == "lg_fedavg"
    assert theirs.pop("method") == "fed_avg"
    assert ours == theirs
