"""Active learning by flags: what a run says of it, and a run that goes on."""

import csv

import numpy as np
import pytest

from experiments.run import one, setup
from experiments.run.config import RunConfig
from tff_het.simulation import runtime

RUN = {
    "dataset": "digits",
    "partition": "iid",
    "num_clients": "3",
    "model": "mlp_two_layers",
    "method": "fed_avg",
    "batch_size": "8",
    "local_epochs": "2",
    "acquisition": "bald",
    "acquisition_size": "20",
    "pool_size": "70",
    "kept_per_class": "1",
    "dropout_samples": "2",
    "rounds": "5",
}
FILES = ("acquired.csv", "metrics.csv", "weights.npz", "summary.json")


@pytest.fixture(scope="module", autouse=True)
def _here():
    with runtime.use("in_process", clients_in_parallel=2):
        yield


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("run")
    one.run(RunConfig.of(**RUN), path).close()
    return path


def test_files_say_what_was_acquired(folder):
    """The pool of 70 gives 20, 20, 20, 10 and nothing; beside them are 10 kept examples."""
    with (folder / "acquired.csv").open() as file:
        header, *rows = csv.reader(file)
    assert header == ["client", "acquisition", *(f"class_{label}" for label in range(10))]
    wanted = [[f"client_{client}", str(n)] for client in range(3) for n in range(1, 5)]
    assert [row[:2] for row in rows] == wanted
    counts = np.array([row[2:] for row in rows], int)
    np.testing.assert_array_equal(counts.sum(axis=1), [20, 20, 20, 10] * 3)
    assert len(np.unique(counts, axis=0)) > 3  # Not the same for all clients.
    with (folder / "metrics.csv").open() as file:
        trained_on = [float(row["train_num_examples"]) for row in csv.DictReader(file)]
    assert trained_on == [90, 90, 90, 60, 30]


@pytest.mark.slow
def test_run_that_goes_on_acquires_what_it_had_not(folder, tmp_path):
    one.run(RunConfig.of(**{**RUN, "rounds": "2"}), tmp_path).close()
    first = (tmp_path / "acquired.csv").read_text().splitlines()
    assert len(first) == 1 + 3 * 2
    one.run(RunConfig.of(**RUN), tmp_path).close()
    for name in FILES:
        assert (tmp_path / name).read_bytes() == (folder / name).read_bytes(), name
    assert set(first) <= set((tmp_path / "acquired.csv").read_text().splitlines())


def test_flags_of_acquisition():
    flags = {**RUN, "acquisition": "max_entropy", "acquisitions_per_round": "3"}
    made = setup.make(RunConfig.of(**flags))
    found = made.training.acquisition
    assert (found.function, found.size, found.per_round, found.pool_size) == (
        "max_entropy",
        20,
        3,
        70,
    )
    assert (found.kept_per_class, found.dropout_samples) == (1, 2)
    made = setup.make(RunConfig.of(**{"dataset": "digits", "acquisition": "random"}))
    found = made.training.acquisition
    # The paper's own numbers.
    assert (found.size, found.per_round, found.pool_size, found.kept_per_class) == (400, 1, 4000, 0)


def test_classes_of_the_four_devices():
    """Qian et al. (2019), section IV-B: 0, 1 to the first device, ..., 7, 8, 9 to the last."""
    flags = {
        "dataset": "digits",
        "partition": "disjoint_classes",
        "disjoint_classes.classes": "0,1;2,3;4,5,6;7,8,9",
        "num_clients": "4",
    }
    made = setup.make(RunConfig.of(**flags))
    for split in ("train", "test"):
        held = [set(getattr(client, split)["y"]) for client in made.population]
        assert held == [{0, 1}, {2, 3}, {4, 5, 6}, {7, 8, 9}]
