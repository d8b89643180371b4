"""The matrix of methods, data sets and partitions."""

import csv
import json

import pytest

from experiments import compare
from tff_het.simulation.worker_process import WorkerProcess

COMMON = ("--set=rounds=1", "--set=local_steps=1", "--runtime=in_process")


@pytest.mark.slow
def test_matrix_has_every_method_data_set_and_partition(tmp_path):
    argv = ["--seeds=2", "--partitions=iid,disjoint_classes", *COMMON]
    assert compare.main([*argv, f"--output_dir={tmp_path}"]) == 0
    page = (tmp_path / "comparison" / "index.html").read_text()
    assert "python -m experiments.compare --datasets=digits" in page
    rows = list(csv.DictReader((tmp_path / "comparison" / "compare-matrix-quick.csv").open()))
    places = [(row["row"], row["column"]) for row in rows]
    assert places == [
        (method, f"digits/{partition}")
        for method in ("hdafl", "fed_avg", "fed_avg - hdafl")
        for partition in ("iid", "disjoint_classes")
    ]
    assert all(row["low"] and row["seeds"] == "2" for row in rows)
    means = [float(row["ours"]) for row in rows]
    assert means[4:] == pytest.approx([means[2] - means[0], means[3] - means[1]])


@pytest.fixture
def serving():
    """Two workers."""
    started = [WorkerProcess(1) for _ in range(2)]
    yield started
    for process in started:
        process.stop()


@pytest.mark.slow
def test_workers_give_the_numbers_of_one(serving, tmp_path, capsys):
    addresses = ",".join(f"localhost:{process.port}" for process in serving)
    argv = ["--seeds=1", "--partitions=iid", "--methods=hdafl", *COMMON]
    found = {}
    for name, option in (("one", "--runtime=worker"), ("several", f"--workers={addresses}")):
        assert compare.main([*argv, option, f"--output_dir={tmp_path / name}"]) == 0
        (result,) = (tmp_path / name).rglob("result.json")
        found[name] = json.loads(result.read_text())
    assert found["several"]["metrics"] == found["one"]["metrics"]
    assert found["several"]["runtime"] == "worker, clients on 2 more"
    for process in serving:
        process.stop()
    capsys.readouterr()
    argv += [f"--workers={addresses}", "--worker_deadline=0.5", f"--output_dir={tmp_path / 'none'}"]
    with pytest.raises(SystemExit, match="1"):
        compare.main(argv)
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("error: No answer from localhost:")
