"""Trackers: what they were told, once, however often a run was begun."""

import importlib.util

import pytest

from tff_het.simulation import tracking

CONFIG = {"method": "fed_avg", "dataset": "digits", "long": "x" * 9000, "none": None}


def row(round_num: int) -> dict[str, float | None]:
    return {"round": round_num, "train_loss": 1.0 / round_num, "local_accuracy": None}


@pytest.mark.slow
def test_mlflow_has_each_row_once_also_of_a_run_that_goes_on(tmp_path):
    mlflow = pytest.importorskip("mlflow", reason="the extra `tracking` is not installed")
    for method in ("fed_avg", "hdafl"):
        for rounds in (2, 3):  # The second time, as a run that goes on: all rows again.
            folder = tmp_path / "demo" / method
            folder.mkdir(parents=True, exist_ok=True)
            (tracker,) = tracking.start(["mlflow"], folder, CONFIG)
            for round_num in range(1, rounds + 1):
                tracker.write(row(round_num))
                tracker.flush()
            tracker.close()
    client = mlflow.MlflowClient(tracking_uri=(tmp_path / "demo" / "mlruns").as_uri())
    experiment = client.get_experiment_by_name("demo")
    runs = client.search_runs([experiment.experiment_id])
    assert sorted(run.info.run_name for run in runs) == ["fed_avg", "hdafl"]
    for run in runs:
        found = client.get_metric_history(run.info.run_id, "train_loss")
        assert [(m.step, m.value) for m in found] == [(k, 1.0 / k) for k in (1, 2, 3)]
        assert set(run.data.metrics) == {"train_loss"}
        assert run.data.params["dataset"] == "digits" and "none" not in run.data.params
        assert run.info.status == "FINISHED"


def test_what_is_not_installed_is_refused(monkeypatch):
    found = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "mlflow" else found(name)
    )
    tracking.check(["tensorboard"])
    tracking.check([])
    with pytest.raises(ValueError, match="mlflow needs a package that is not installed"):
        tracking.check(["tensorboard", "mlflow"])
    with pytest.raises(ValueError, match="different ones of tensorboard, mlflow; found tensorboar"):
        tracking.check(["tensorboard", "tensorboard"])
