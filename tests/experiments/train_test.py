"""The training program on handwritten digits: what it leaves, and that a seed decides all of it."""

import csv
import functools
import json
import os
import pathlib
import shutil
import subprocess
import sys

import matplotlib.image
import numpy as np
import pytest

from tff_het.simulation import runtime
from tff_het.simulation.checkpoints import Checkpoints
from tff_het.simulation.cohorts import uniform

ROOT = pathlib.Path(__file__).parents[2]
METHODS = ("hdafl", "fed_avg")
CLIENTS, COHORT, ROUNDS = 5, 3, 5
# Not every client in every round, and not every row with an evaluation.
RUN = (f"--clients_per_round={COHORT}", "--eval_every=2", f"--rounds={ROUNDS}")


@pytest.fixture(scope="session")
def two_runs_on(programs, tmp_path_factory):
    """The same command twice, with one and with two clients at a time, on a runtime."""

    @functools.cache
    def run(runtime_name: str):
        folders = [tmp_path_factory.mktemp("run") for _ in range(2)]
        started = [
            programs.start(
                *RUN,
                f"--output_dir={folder}",
                f"--runtime={runtime_name}",
                f"--clients_in_parallel={n}",
            )
            for n, folder in enumerate(folders, start=1)
        ]
        for program in started:
            assert program.wait() == 0, program.stderr
        return folders, started

    return run


@pytest.fixture(scope="session")
def two_runs(two_runs_on):
    return two_runs_on("in_process")


@pytest.fixture(scope="session")
def folder(two_runs) -> pathlib.Path:
    return two_runs[0][0]


def rows(path: pathlib.Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


# --- The same seed ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "runtime_name", ["in_process", pytest.param("worker", marks=pytest.mark.slow)]
)
def test_same_seed_gives_the_same_bytes(two_runs_on, tools, runtime_name):
    (one, two), _ = two_runs_on(runtime_name)
    assert tools.results(one, METHODS) == tools.results(two, METHODS)
    for name in ("comparison.csv", "comparison.md", "figures/accuracy_over_rounds.png"):
        assert (one / name).read_bytes() == (two / name).read_bytes()


@pytest.mark.slow
def test_flags_txt_of_one_method_gives_the_same_bytes(programs, folder, tmp_path, tools):
    programs.run(f"--flagfile={folder / 'fed_avg' / 'flags.txt'}", f"--output_dir={tmp_path}")
    assert tools.results(tmp_path, ["fed_avg"]) == tools.results(folder, ["fed_avg"])
    assert not (tmp_path / "hdafl").exists()


@pytest.mark.slow
def test_another_seed_gives_other_results(programs, folder, tmp_path, tools):
    programs.run(*RUN, "--method=hdafl", "--seed=1", f"--output_dir={tmp_path}")
    assert tools.results(tmp_path, ["hdafl"]) != tools.results(folder, ["hdafl"])
    drawn = [[r["clients"] for r in rows(f / "hdafl" / "metrics.csv")] for f in (folder, tmp_path)]
    assert drawn[0] == drawn[1] == [str(COHORT)] * ROUNDS
    examples = [
        [r["train_num_examples"] for r in rows(f / "hdafl" / "metrics.csv")]
        for f in (folder, tmp_path)
    ]
    assert examples[0] != examples[1]  # Other cohorts.


# --- What it leaves ---------------------------------------------------------------------------


def test_files_of_a_run(folder):
    found = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    found = {name if "tensorboard" not in name else name.rsplit("/", 1)[0] for name in found}
    figures = ("figures/accuracy_over_rounds.png", "figures/accuracy_by_client.png")
    expected = {"comparison.csv", "comparison.md", "partition.npz", "figures/partition.png"}
    expected |= set(figures)
    files = ("flags.txt", "metrics.csv", "clients.csv", "summary.json", "times.csv", "weights.npz")
    for method in METHODS:
        expected |= {f"{method}/{name}" for name in (*files, *figures)}
        expected |= {f"{method}/tensorboard", f"{method}/checkpoints/run.sqlite"}
    assert found == expected


@pytest.mark.parametrize("method", METHODS)
def test_summary_agrees_with_the_tables(folder, method):
    summary = json.loads((folder / method / "summary.json").read_text())
    metrics = rows(folder / method / "metrics.csv")
    clients = [r for r in rows(folder / method / "clients.csv") if r["round"] == str(ROUNDS)]
    assert [bool(r["local_test_accuracy_mean"]) for r in metrics] == [False, True] * 2 + [True]
    assert len(clients) == CLIENTS
    accuracy = np.array([float(r["accuracy"]) for r in clients])
    loss = np.array([float(r["loss"]) for r in clients])
    n = np.array([int(r["num_examples"]) for r in clients])
    assert n.sum() == 360  # The whole test set of the digits, a fifth of 1,797.

    facts = {
        "method": method, "dataset": "digits", "partition": "disjoint_classes", "seed": 0,
        "model": "digits_cnn", "rounds": ROUNDS, "num_clients": CLIENTS,
        "client_rounds": ROUNDS * COHORT,
    }  # fmt: skip
    assert {name: summary[name] for name in facts} == facts
    numbers = {
        "local_test_accuracy_mean": accuracy.mean(),
        "local_test_accuracy_weighted_mean": np.average(accuracy, weights=n),
        "local_test_accuracy_std": accuracy.std(),
        "local_test_accuracy_min": accuracy.min(),
        "local_test_accuracy_worst_decile": accuracy.min(),
        "local_test_accuracy_median": np.median(accuracy),
        "local_test_accuracy_decile_10": np.percentile(accuracy, 10),
        "local_test_loss_mean": loss.mean(),
        "local_test_loss_weighted_mean": np.average(loss, weights=n),
        "bytes_up_total": sum(int(r["bytes_up"]) for r in metrics),
        "bytes_down_total": sum(int(r["bytes_down"]) for r in metrics),
    }
    assert {name: summary[name] for name in numbers} == pytest.approx(numbers)
    for name in summary.keys() & metrics[-1].keys():
        assert float(metrics[-1][name]) == summary[name], name

    # digits_cnn: 3x3x1x8 + 8, 3x3x8x16 + 16, 256x32 + 32, 32x10 + 10.
    assert summary["parameters_total"] == 80 + 1168 + 8224 + 330
    assert summary["parameters_sent"] == summary["parameters_total"] - 330 * (method == "hdafl")
    assert summary["bytes_down_total"] == 4 * summary["parameters_sent"] * ROUNDS * COHORT
    without_metrics = summary["bytes_up_total"] - summary["bytes_up_total_metrics"]
    # The update, and its weight.
    assert without_metrics == 4 * (summary["parameters_sent"] + 1) * ROUNDS * COHORT
    if method == "fed_avg":
        assert summary["global_test_accuracy"] == pytest.approx(np.average(accuracy, weights=n))
    else:
        assert "global_test_accuracy" not in summary


@pytest.mark.parametrize("method", METHODS)
def test_rounds_trained_follow_the_cohorts(folder, method):
    schedule = uniform(CLIENTS, COHORT, 0)
    last = [r for r in rows(folder / method / "clients.csv") if r["round"] == str(ROUNDS)]
    drawn = np.bincount([c for r in range(ROUNDS) for c in schedule(r)], minlength=CLIENTS)
    assert [int(r["rounds_trained"]) for r in last] == list(drawn)


def test_all_methods_meet_the_same_cohorts(folder):
    examples = [
        [r["train_num_examples"] for r in rows(folder / method / "metrics.csv")]
        for method in METHODS
    ]
    assert examples[0] == examples[1] and len(set(examples[0])) > 1


def test_comparison_agrees_with_the_summaries(folder):
    table = rows(folder / "comparison.csv")
    assert [row["method"] for row in table] == list(METHODS)
    lines = (folder / "comparison.md").read_text().splitlines()
    for row, line in zip(table, lines[2 : 2 + len(METHODS)], strict=True):
        summary = json.loads((folder / row["method"] / "summary.json").read_text())
        weighted = [
            r["local_test_accuracy_weighted_mean"]
            for r in rows(folder / row["method"] / "metrics.csv")
        ]
        summary["best_round_on_test"] = max(float(value) for value in weighted if value)
        for name, text in row.items():
            assert text == str(summary.get(name, "")), name
        assert line.startswith(f"| {row['method']}")
        assert f"| {summary['local_test_accuracy_mean']:.4f} " in line
        assert f"| {summary['bytes_up_total'] / 1e6:.2f} " in line


def test_figures_are_pictures(folder):
    paths = sorted(folder.rglob("*.png"))
    assert len(paths) == 3 + 2 * len(METHODS)
    for path in paths:
        height, width, _ = matplotlib.image.imread(path).shape
        assert min(height, width) > 300, path


def test_program_says_what_it_does_and_nothing_else(two_runs):
    (folder, _), (program, _) = two_runs
    lines = program.stdout.splitlines()
    assert lines[0].startswith("digits: ")
    assert (folder / "comparison.md").read_text() in program.stdout
    assert lines[-1].startswith(f"Results: {folder}")
    assert not program.stderr  # A bar is for terminals.


@pytest.mark.slow
def test_centralized_is_tested_at_each_client(programs, tmp_path, folder):
    programs.run("--method=fed_avg,centralized", *RUN, "--rounds=2", f"--output_dir={tmp_path}")
    clients = rows(tmp_path / "centralized" / "clients.csv")
    # All of the training examples in each round, at none of the clients.
    reference = rows(folder / "fed_avg" / "clients.csv")[:CLIENTS]
    assert [(r["client"], r["num_examples"]) for r in clients] == [
        (r["client"], r["num_examples"]) for r in reference
    ]
    assert {r["rounds_trained"] for r in clients} == {"0"}
    metrics = rows(tmp_path / "centralized" / "metrics.csv")
    assert [r["train_num_examples"] for r in metrics] == ["1437", "1437"]
    summaries = [
        json.loads((tmp_path / method / "summary.json").read_text())
        for method in ("fed_avg", "centralized")
    ]
    federated, pooled = summaries
    # Its steps follow on each other, so it learns more in a round.
    assert pooled["local_test_accuracy_mean"] > federated["local_test_accuracy_mean"] + 0.2
    assert federated["client_rounds"] == 2 * COHORT and pooled["client_rounds"] == 2
    # The model stays where it is; the examples travel, once: 8 x 8 pixels each and a label.
    assert pooled["parameters_sent"] == pooled["bytes_down_total"] == 0
    assert 0 < pooled["bytes_up_total"] < 1437 * (64 + 4)
    assert sum(int(r["bytes_up"]) for r in metrics) == 0
    table = rows(tmp_path / "comparison.csv")
    assert [row["method"] for row in table] == ["fed_avg", "centralized"]


@pytest.mark.slow
def test_sub_populations_with_tests_of_their_own(programs, tmp_path):
    """Two groups of clients; each is tested on a share of its own training examples."""
    programs.run(
        "--dataset=digits", "--partition=multimodal", "--num_clients=8", "--minority_clients=2",
        "--minority_classes=0,2,4,6,8", "--local_test_fraction=0.25", "--method=q_ffl", "--q=1",
        "--rounds=2", "--validation_fraction=0.1", f"--output_dir={tmp_path}",
    )  # fmt: skip
    clients = [r for r in rows(tmp_path / "q_ffl" / "clients.csv") if r["round"] == "2"]
    tested = [r for r in clients if r["split"] == "test"]
    groups = ["majority"] * 6 + ["minority"] * 2
    assert [r["group"] for r in tested] == groups
    assert [r["client"] for r in tested] == [
        *(f"majority_{k}" for k in range(6)),
        *(f"minority_{k}" for k in range(2)),
    ]
    summary = json.loads((tmp_path / "q_ffl" / "summary.json").read_text())
    metrics = rows(tmp_path / "q_ffl" / "metrics.csv")
    assert len(metrics) == 2
    for split in ("test", "validation"):
        accuracy = np.array([float(r["accuracy"]) for r in clients if r["split"] == split])
        wanted = {
            "mean_majority": accuracy[:6].mean(),
            "mean_minority": accuracy[6:].mean(),
            "gap": accuracy[:6].mean() - accuracy[6:].mean(),
        }
        for name, value in wanted.items():
            assert summary[f"local_{split}_accuracy_{name}"] == pytest.approx(value)
            assert float(metrics[1][f"local_{split}_accuracy_{name}"]) == pytest.approx(value)
        assert summary[f"local_{split}_accuracy_variance"] == pytest.approx(accuracy.var())
    # The global model is tested on what the clients are tested on, and on nothing else.
    sizes = [int(r["num_examples"]) for r in tested]
    accuracy = np.array([float(r["accuracy"]) for r in tested])
    assert len(set(sizes)) == 1
    assert summary["global_test_accuracy"] == pytest.approx(accuracy.mean())
    for figures in (tmp_path / "figures", tmp_path / "q_ffl" / "figures"):
        assert (figures / "accuracy_by_group.png").exists()


@pytest.mark.slow
def test_other_store_and_validation(programs, tmp_path, folder):
    """local_only, where nothing travels, with states on disk and a part for validation."""
    programs.run(
        *RUN, "--method=local_only", "--client_store=disk", "--checkpoint_every=3",
        "--validation_fraction=0.2", f"--output_dir={tmp_path}",
    )  # fmt: skip
    summary = json.loads((tmp_path / "local_only" / "summary.json").read_text())
    assert summary["parameters_sent"] == 0
    assert summary["bytes_down_total"] == 0
    assert summary["bytes_up_total"] == summary["bytes_up_total_metrics"]
    clients = rows(tmp_path / "local_only" / "clients.csv")
    accuracy = [
        float(r["accuracy"])
        for r in clients
        if r["round"] == str(ROUNDS) and r["split"] == "validation"
    ]
    assert len(accuracy) == CLIENTS
    assert summary["local_validation_accuracy_mean"] == pytest.approx(np.mean(accuracy))


@pytest.mark.slow
def test_new_test_of_a_run_that_went_on(programs, tmp_path, folder, tools):
    """The flag may come when training is over, or half of it; states on disk or in memory."""
    later, halves = tmp_path / "later", tmp_path / "halves"
    shutil.copytree(folder, later)
    programs.run(*RUN, "--new_test", f"--output_dir={later}")
    on_disk = (*RUN, "--new_test", "--client_store=disk", f"--output_dir={halves}")
    programs.run(*on_disk, "--rounds=2")
    programs.run(*on_disk)
    assert tools.results(later, METHODS) == tools.results(halves, METHODS)
    assert "new_test_accuracy_average" not in rows(folder / "comparison.csv")[0]
    compared = {row["method"]: row for row in rows(later / "comparison.csv")}
    for method in METHODS:
        summary = json.loads((later / method / "summary.json").read_text())
        without = json.loads((folder / method / "summary.json").read_text())
        found = {name: value for name, value in summary.items() if name.startswith("new_test_")}
        assert without == {name: value for name, value in summary.items() if name not in found}
        average = str(found["new_test_accuracy_average"])
        assert compared[method]["new_test_accuracy_average"] == average
        assert found["new_test_num_examples"] == 360
        local = 330 * (method == "hdafl")  # 32x10 + 10.
        assert found["new_test_parameters"] == CLIENTS * local
        assert found["new_test_bytes_up"] == 4 * CLIENTS * local
        if method == "fed_avg":
            assert found["new_test_accuracy_average"] == pytest.approx(
                summary["global_test_accuracy"]
            )
            assert found["new_test_accuracy_vote"] == found["new_test_accuracy_average"]
        else:  # Each knows two of ten classes, so that together they know less than at home.
            for name in ("average", "vote"):
                assert (
                    0.1 < found[f"new_test_accuracy_{name}"] < summary["local_test_accuracy_mean"]
                )


@pytest.mark.slow
def test_binary_tasks_have_an_auc_and_validation_chooses_a_round(programs, tmp_path):
    """Threes against the rest; the round with the lowest validation loss is summarised too."""
    run = programs.start(
        *RUN,
        "--eval_every=1",
        "--positive_label=3",
        "--class_weights=1,9",
        "--partition=iid",
        "--method=cgau",
        "--validation_fraction=0.2",
        f"--output_dir={tmp_path}",
    )
    assert run.wait() == 0, run.stderr
    table = rows(tmp_path / "cgau" / "metrics.csv")
    summary = json.loads((tmp_path / "cgau" / "summary.json").read_text())
    auc = [float(row["local_test_auc_pooled"]) for row in table]
    assert all(0 <= value <= 1 for value in auc) and auc[-1] != auc[0]
    assert summary["local_test_auc_pooled"] == auc[-1]
    losses = [float(row["local_validation_loss_weighted_mean"]) for row in table]
    best = int(np.argmin(losses))
    assert summary["best_round"] == best + 1
    for key, value in table[best].items():
        if key.startswith("local_"):
            assert summary[f"best_{key}"] == float(value)
    # Gated layers cost twice the baseline's weights, and the conditioning does not travel.
    assert summary["parameters_sent"] < summary["parameters_total"]


# --- Refusals ---------------------------------------------------------------------------------


def contents(folder: pathlib.Path) -> dict[pathlib.Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--seed=1"], "(seed: 0 there, 1 now)"),
        (["--batch_size=5", "--seed=1"], "(batch_size: 10 there, 5 now; seed: 0 there, 1 now)"),
        ([f"--rounds={ROUNDS - 1}"], f"has {ROUNDS} rounds already, more than the {ROUNDS - 1}"),
    ],
    ids=["seed", "two", "rounds"],
)
def test_folder_of_another_run_is_refused_and_untouched(programs, folder, argv, message):
    before = contents(folder)
    program = programs.start(*RUN, f"--output_dir={folder}", *argv)
    assert program.wait() == 2
    error = [line for line in program.stderr.splitlines() if "error:" in line]
    assert len(error) == 1 and message in error[0] and str(folder) in error[0]
    assert "Traceback" not in program.stderr
    after = contents(folder)
    assert after.keys() == before.keys()
    assert [str(p) for p in before if before[p] != after[p]] == []


@pytest.mark.parametrize("damage", ["truncated", "overwritten", "in use"])
def test_unusable_checkpoint_is_one_line(programs, folder, tmp_path, damage):
    path = tmp_path / "hdafl" / "checkpoints" / "run.sqlite"
    path.parent.mkdir(parents=True)
    data = (folder / "hdafl" / "checkpoints" / "run.sqlite").read_bytes()
    other = None
    if damage == "truncated":
        path.write_bytes(data[: len(data) // 2])
    elif damage == "overwritten":
        path.write_bytes(b"?" * len(data))
    else:
        other = Checkpoints(path, {})
    program = programs.start(*RUN, "--method=hdafl", f"--output_dir={tmp_path}")
    assert program.wait() == 2
    expected = "is in use by another process" if damage == "in use" else "is damaged"
    assert program.stderr.startswith("error: ") and program.stderr.count("\n") == 1
    assert expected in program.stderr and str(path) in program.stderr
    if other:
        other.close()


# --- As its users start it --------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("runtime_name", list(runtime.RUNTIMES))
def test_program_in_a_pipe_ends_and_leaves_nothing(tmp_path, two_runs_on, tools, runtime_name):
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    shared = set(os.listdir("/dev/shm"))
    command = (
        f"{sys.executable} -m experiments.train {' '.join(RUN)} --output_dir={tmp_path / 'run'} "
        f"--runtime={runtime_name}"
    )
    result = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {command} | cat"],
        cwd=ROOT,
        # Python compiles what it imports, as it does for users: TensorFlow writes modules.
        env={**os.environ, "TMPDIR": str(temporary), "PYTHONDONTWRITEBYTECODE": ""},
        capture_output=True,
        text=True,
        timeout=180,
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines()[-1].startswith(f"Results: {tmp_path / 'run'}")
    # Which Ray says after half a minute, although it is told to leave metrics out.
    said = [line for line in result.stderr.splitlines() if "metrics exporter agent" not in line]
    assert said == []
    assert tools.processes_with(str(temporary)) == []
    assert list(temporary.iterdir()) == []
    assert set(os.listdir("/dev/shm")) <= shared
    (folder, _), _ = two_runs_on("worker" if runtime_name == "worker" else "in_process")
    assert tools.results(tmp_path / "run", METHODS) == tools.results(folder, METHODS)


@pytest.mark.slow
def test_help_and_errors_as_a_module(tmp_path):
    commands = {"--help": 0, "--nonsense": 2}
    started = {
        flag: subprocess.Popen(
            [sys.executable, "-m", "experiments.train", flag],
            cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        for flag in commands
    }  # fmt: skip
    output = {flag: popen.communicate(timeout=120) for flag, popen in started.items()}
    assert {flag: popen.returncode for flag, popen in started.items()} == commands
    assert output["--help"][0].startswith("Trains and compares federated methods")
    assert output["--help"][1] == ""
    assert output["--nonsense"] == (
        "", "error: Unknown command line flag 'nonsense' (--help lists all flags)\n"
    )  # fmt: skip


@pytest.mark.slow
def test_fashion_mnist(programs, data_dir, tmp_path):
    programs.run(
        "--dataset=fashion_mnist", f"--data_dir={data_dir}", "--rounds=1", "--local_steps=60",
        "--method=hdafl", f"--output_dir={tmp_path}",
    )  # fmt: skip
    summary = json.loads((tmp_path / "hdafl" / "summary.json").read_text())
    clients = rows(tmp_path / "hdafl" / "clients.csv")
    assert sum(int(row["num_examples"]) for row in clients) == 10_000
    assert summary["local_test_accuracy_mean"] > 0.6  # Two classes each: 0.5 by chance.
