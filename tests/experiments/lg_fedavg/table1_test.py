"""Table 1 of LG-FedAvg: what its rows send in all, and how long FedAvg trains."""

import pytest

from experiments.lg_fedavg import settings
from experiments.lg_fedavg.settings import FEDAVG, LG, PARAMETERS
from experiments.lg_fedavg.table1 import EXPERIMENT
from experiments.study.store import Run, Status

SENT = {"goal": 100, FEDAVG: 200, LG: 20}


def test_lg_fed_avg_counts_the_rounds_to_the_goal_and_fed_avg_its_own():
    runs = {
        f"MNIST/{row}": Run(None, Status.OK, {"metrics": {"parameters_communicated": sent}})
        for row, sent in SENT.items()
    }
    total = {row: settings.total("MNIST", row, *PARAMETERS).compute(runs) for row in (FEDAVG, LG)}
    assert total == {FEDAVG: 200, LG: 120}
    (share,) = (
        check
        for claim in EXPERIMENT.claims_of("quick")
        for check in claim.checks
        if claim.text.startswith("MNIST") and "share" in check.name
    )
    assert share.measure.compute(runs) == pytest.approx(1 - 120 / 200)


def test_fed_avg_trains_the_printed_rounds_in_all_and_lg_fed_avg_starts_from_the_goal():
    works = {cell.name: cell.work for cell in EXPERIMENT.scales["paper"].cells}
    for data, rounds in {"MNIST": "1500", "CIFAR-10": "2000"}.items():
        fed_avg, lg = works[f"{data}/{FEDAVG}"], works[f"{data}/{LG}"]
        assert fed_avg.start is None and fed_avg.flags["rounds"] == rounds
        assert lg.start == works[f"{data}/goal"]
        assert lg.start.flags["goal_accuracy"] and "goal_accuracy" not in fed_avg.flags
