"""The program that measures how different clients are."""

import csv

import numpy as np
import pytest
import scipy.linalg

from experiments import heterogeneity
from tff_het import datasets, partitions


@pytest.fixture
def call(capsys):
    """Runs the program in this process; gives its exit code and what it printed."""

    def run_program(*argv: str):
        try:
            code = heterogeneity.main(argv)
        except SystemExit as exit_:
            code = exit_.code
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run_program


def as_printed(features, labels):
    """For each client the formulas as the papers print them: [K, 2]."""
    everybody = np.bincount(np.concatenate(labels)) / len(np.concatenate(labels))
    rows = []
    for client, (own, own_labels) in enumerate(zip(features, labels, strict=True)):
        others = np.concatenate([*features[:client], *features[client + 1 :]])
        difference = own.mean(axis=0) - others.mean(axis=0)
        covariances = [np.cov(part, rowvar=False) for part in (own, others)]
        root = scipy.linalg.sqrtm(covariances[0] @ covariances[1]).real
        shares = np.bincount(own_labels, minlength=len(everybody)) / len(own_labels)
        rows.append(
            (
                difference @ difference + np.trace(sum(covariances) - 2 * root),
                np.abs(shares - everybody).sum(),
            )
        )
    return np.array(rows)


@pytest.fixture(params=["images", "embeddings"])
def data(request, tmp_path):
    """A file for --dataset=npz; features as the program has to see them, labels."""
    rng = np.random.default_rng(0)
    sizes = {"train": 200, "test": 90}
    y = {split: rng.integers(3, size=n) for split, n in sizes.items()}
    if request.param == "images":
        x = {s: rng.integers(256, size=(n, 2, 3, 1), dtype=np.uint8) for s, n in sizes.items()}
        seen = {split: images.reshape(-1, 6) / 255 for split, images in x.items()}
    else:
        x = {s: rng.normal(size=(n, 5)).astype(np.float32) for s, n in sizes.items()}
        seen = x
    path = tmp_path / "data.npz"
    np.savez(path, **{f"x_{s}": x[s] for s in x}, **{f"y_{s}": y[s] for s in y})
    return path, seen, y


def cells(line):
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_table_has_the_papers_numbers(call, data, tmp_path):
    path, x, y = data
    argv = ("--dataset=npz", f"--data_dir={path}", "--partition=clusters", "--num_clients=3")
    argv = (*argv, "--seed=4", "--shuffle_fraction=0.25", f"--output_dir={tmp_path / 'new' / 'o'}")
    code, out, err = call(*argv)
    assert (code, err) == (0, "")
    dataset = datasets.load("npz", path)
    dealt = partitions.make(
        "clusters", dataset.train, dataset.test, num_clients=3, seed=4, shuffle_fraction=0.25
    )
    owned = list(zip(dealt.train, dealt.test, strict=True))
    expected = as_printed(
        *([np.concatenate([c["train"][a], c["test"][b]]) for a, b in owned] for c in (x, y))
    )
    ids = [*dealt.client_ids, "mean"]
    sizes = [[len(a), len(b)] for a, b in owned]
    expected = np.hstack([sizes, expected])
    expected = np.vstack([expected, expected.mean(axis=0)])

    head, _, *lines = [line for line in out.splitlines() if line.startswith("|")]
    columns = ["train_examples", "test_examples", "frechet_distance", "emd"]
    assert cells(head) == ["client", *columns]
    printed = [cells(line) for line in lines]
    assert [row[0] for row in printed] == ids
    numbers = np.array([[float(cell) for cell in row[1:]] for row in printed])
    np.testing.assert_allclose(numbers, expected, rtol=1e-3)
    assert "clusters: 3 clients, seed 4" in out

    folder = tmp_path / "new" / "o"
    assert [file.name for file in folder.iterdir()] == ["heterogeneity.csv"]
    with (folder / "heterogeneity.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row.pop("client") for row in rows] == ids
    assert list(rows[0]) == columns
    numbers = np.array([[float(row[name]) for name in columns] for row in rows])
    np.testing.assert_allclose(numbers, expected, rtol=1e-6)


def test_nothing_is_written_unless_asked_for(call, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    # Flags of training, as in a preset, are accepted. Two digits a client: the default.
    code, out, err = call("--rounds=3", "--method=fed_avg", "--model=digits_cnn")
    assert (code, err) == (0, "")
    printed = [cells(line) for line in out.splitlines() if line.startswith("|")][2:]
    assert len(printed) == 6
    assert all(float(row[4]) == pytest.approx(1.6, abs=0.02) for row in printed)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        ("--partition=nope", "--partition=nope"),
        ("--partition=iid --num_clients=1", "Two clients or more are needed"),
        (
            "--partition=iid --num_clients=1437 --allow_empty_test",
            "of 1437 (counted from 0): a covariance needs two examples or more; found 1",
        ),
        ("--partition=iid --num_clients=400", "accept it with allow_empty_test=True"),
        ("--partition=shards --clusters.num_components=3", "belongs to --partition=clusters"),
        ("--dataset=npz", "pass it as data_dir"),
    ],
)
def test_wrong_use_is_one_line(call, tmp_path, argv, message):
    code, out, err = call(*argv.split(), f"--output_dir={tmp_path / 'run'}")
    assert (code, out) == (2, "")
    assert err.startswith("error: ") and err.count("\n") == 1 and message in err
    assert list(tmp_path.iterdir()) == []


def test_help_says_what_is_measured(call):
    code, out, _ = call("--help")
    assert code == 0
    for part in (
        "--clusters.shuffle_fraction:",
        "--[no]allow_empty_test:",
        "Data: what the examples are",
    ):
        assert part in out
