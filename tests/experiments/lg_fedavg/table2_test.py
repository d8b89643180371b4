"""Table 2 of LG-FedAvg: goal, rounds and bytes to it, of made-up runs."""

import csv
import pathlib

import pytest

from experiments.lg_fedavg import table2
from experiments.lg_fedavg.settings import FEDAVG, LG
from experiments.lg_fedavg.table2 import EASY
from experiments.study import store
from experiments.study.measures import bytes_until
from experiments.study.store import Run, Status

# Validation accuracy in rounds 2, 4, 6; bytes are sent in each round.
ACCURACY = {FEDAVG: (0.3, 0.8, 0.7), LG: (0.5, 0.8, 0.9)}
TEST = (0.99, 0.1, 0.2)
BYTES = {FEDAVG: (10, 11), LG: (5, 6)}


def runs(folder: pathlib.Path, accuracy=ACCURACY) -> dict[str, Run]:
    found = {}
    for method, values in accuracy.items():
        files = folder / method / "files"
        files.mkdir(parents=True)
        with (files / "metrics.csv").open("w", newline="") as file:
            writer = csv.writer(file)
            columns = ("round", "bytes_up", "bytes_down")
            writer.writerow([*columns, table2.VALIDATION, "local_test_accuracy_mean"])
            for n in range(1, 7):
                measured = ("", "") if n % 2 else (values[n // 2 - 1], TEST[n // 2 - 1])
                writer.writerow([n, *BYTES[method], *measured])
        name = f"{EASY}/{method}"
        found[name] = Run(files.parent, Status.OK, {"files": store.digests(files)})
    return found


def reached(method: str, found: dict[str, Run]) -> float | None:
    return table2.until_goal(EASY, method, lambda _, round_num: round_num).compute(found)


def test_goal_is_the_highest_accuracy_on_validation_examples_that_both_reach(tmp_path):
    found = runs(tmp_path)
    assert table2.goal(EASY).compute(found) == 0.8
    for method in (FEDAVG, LG):
        assert reached(method, found) == 4
        up, down = BYTES[method]
        sent = table2.until_goal(EASY, method, bytes_until)
        assert sent.compute(found) == 4 * (up + down)


def test_the_better_method_has_it_earlier(tmp_path):
    found = runs(tmp_path, {FEDAVG: (0.3, 0.4, 0.5), LG: (0.5, 0.8, 0.9)})
    assert table2.goal(EASY).compute(found) == 0.5
    assert reached(FEDAVG, found) == 6
    assert reached(LG, found) == 2


@pytest.mark.parametrize("scale", ["quick", "paper"])
def test_methods_differ_in_what_is_local_alone_and_goals_are_not_of_test_examples(scale):
    cells = {cell.name: cell.work for cell in table2.EXPERIMENT.scales[scale].cells}
    ours, theirs = (dict(cells[f"{EASY}/{m}"].flags) for m in (LG, FEDAVG))
    assert float(ours["validation_fraction"]) > 0
    assert not any(work.uses_test_data for work in cells.values())
    assert ours.pop("local_layers") and ours.pop("method") == "lg_fedavg"
    assert theirs.pop("method") == "fed_avg"
    assert ours == theirs
