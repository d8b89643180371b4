"""The matrix of methods, data sets and partitions."""

import csv

import pytest

from experiments import compare

COMMON = ("--set=rounds=1", "--set=local_steps=1")


@pytest.mark.slow
def test_matrix_has_every_method_data_set_and_partition(tmp_path):
    argv = ["--datasets=digits", "--seeds=2", "--partitions=iid,disjoint_classes", *COMMON]
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
