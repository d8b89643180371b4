"""Training of WAFFLe that is followed is the training of all runs."""

import csv

import pytest

from experiments.run import one
from experiments.run.config import RunConfig
from experiments.waffle import following, rate_search
from tff_het.simulation import runtime


@pytest.fixture(autouse=True, scope="module")
def _runtime():
    with runtime.use("in_process", clients_in_parallel=1):
        yield


def follow(folder, **flags) -> tuple[dict[str, float], list[dict[str, float]]]:
    of_cell = rate_search.EXPERIMENT.scales["smoke"].cells[0].work.arguments["flags"]
    found = following.follow(seed=3, folder=folder, data_dir=None, flags={**of_cell, **flags})
    with (folder / "metrics.csv").open() as file:
        return found, [{k: float(v) for k, v in row.items()} for row in csv.DictReader(file)]


@pytest.mark.slow
def test_numbers_are_those_of_a_run(tmp_path):
    found, rows = follow(tmp_path, posterior_rate="1000")
    flags = rate_search.EXPERIMENT.scales["smoke"].cells[0].work.arguments["flags"]
    with one.run(RunConfig.of(**{**flags, "posterior_rate": "1000", "seed": 3})) as run:
        assert found[following.ACCURACY] == run.summary["local_validation_accuracy_mean"]
    for name in (following.MOVED, following.USED, following.SATURATED):
        assert found[name] == pytest.approx(sum(row[name] for row in rows) / len(rows))
    assert [row["round"] for row in rows] == [1, 2] and found[following.MOVED] > 0


def test_masks_stand_still_where_posteriors_hardly_learn(tmp_path):
    """Of eight factors, those of E[pi_k] = (8/9)^k above 1/2 are on; no logit is above 6."""
    found, _ = follow(tmp_path, posterior_rate="1e-6")
    assert found[following.MOVED] == found[following.SATURATED] == 0
    assert found[following.USED] == pytest.approx(sum((8 / 9) ** k for k in range(1, 9)), rel=1e-4)
