"""The fair board: each method's trials, and what becomes of them."""

import csv

import pytest

from experiments.boards import enter, fair
from experiments.boards import tuned as board
from experiments.boards.tuned import tuned
from experiments.run.config import RunConfig
from tff_het import methods

FLAGS = {**fair.SETTINGS["FMNIST, Dirichlet .1, 20 clients"], "dataset": "digits"}
FLAGS |= {"partition": "iid", "num_clients": 6, "local_steps": 5, "rounds": 3, "eval_every": 3}
FLAGS["clients_per_round"] = 4
FLAGS |= {"validation_fraction": 0.2}
del FLAGS["dirichlet.alpha"]


def _run(method: str, *rates: str, joining_epochs: int = 2, **more) -> dict[str, float]:
    trials = [{"client_learning_rate": rate} for rate in rates]
    flags = {**FLAGS, "method": method}
    given = {"seed": 0, "data_dir": None, "flags": flags, "trials": trials, "trial_rounds": 2}
    given |= more
    return tuned(**given, clients=4, new_clients=2, joining_epochs=joining_epochs)


def test_every_method_has_four_trials_of_settings_that_fit():
    cells = [cell for cell in fair.EXPERIMENT.scales["paper"].cells if "/" in cell.name]
    for cell in cells:
        arguments = cell.work.arguments
        trials, last = arguments["trials"], arguments["last_trial"]
        assert len(trials) == len(last) == 3
        for trial, one in zip(trials, last, strict=True):
            RunConfig.of(**{**arguments["flags"], **trial})
            RunConfig.of(**{**arguments["flags"], **trial, **one})
            assert trial | one not in trials
    # The same algorithm as fed_per; not federated; without meaning for this network.
    left_out = {"hdafl", "centralized", "fed_bn"}
    assert {cell.name.split("/")[1] for cell in cells} == set(methods.names()) - left_out


@pytest.mark.slow
def test_the_trial_that_is_best_on_validation_examples_is_tested():
    found = _run("fed_avg", "1e30", "1e-6", "0.1")
    assert found["trial"] == 3 and found["diverged"] == 1
    alone = _run("fed_avg", "0.1")
    assert alone == {**found, "trial": 1, "diverged": 0}
    assert alone["accuracy"] > 0.3 and alone["new_clients"] > 0.3


def test_the_last_trial_follows_the_best_of_the_others():
    further = [{"client_learning_rate": rate} for rate in ("0.2", "1e-6")]
    found = _run("fed_avg", "0.1", "1e30", last_trial=further)
    assert found["client_learning_rate"] == {1: 0.1, 3: 0.2}[found["trial"]]
    assert found["diverged"] == 1 and found["accuracy"] > 0.3
    worse = _run("fed_avg", "1e30", "0.1", last_trial=further)
    assert worse["trial"] == 2 and worse["accuracy_by_example"] > 0.3


def test_what_test_examples_say_chooses_nothing(monkeypatch):
    train = board.loop.train

    def contrary(*args, **given):
        result = train(*args, **given)
        local = result.evaluation.local
        local["test"].accuracy[:] = 1 - local["validation"].accuracy.mean()
        return result

    monkeypatch.setattr(board.loop, "train", contrary)
    found = _run("fed_avg", "1e-6", "0.1")
    assert found["trial"] == 2 and found["accuracy"] < 1 - found["validation"] + 1e-6


def test_where_all_trials_diverge_the_board_says_so():
    found = _run("fed_avg", "1e30")
    assert found == {"diverged": 1, "bytes": found["bytes"]} and found["bytes"] > 0


def test_new_clients_of_0_epochs_are_adapted_alone(monkeypatch):
    monkeypatch.setattr(board, "NewClient", None)  # Nothing fits the head that they have.
    assert _run("fed_babu", "0.1", joining_epochs=0)["new_clients"] > 0.2


@pytest.mark.slow
def test_new_clients_train_what_they_keep():
    few, many = (_run("local_only", "0.1", joining_epochs=n) for n in (1, 40))
    assert many["new_clients"] > few["new_clients"] + 0.2 and many["bytes"] == 0
    assert many["accuracy"] == few["accuracy"]


PLUGIN = """
from tff_het.kinds import Positive
from tff_het.methods import METHODS
from tff_het.methods.fed_prox import build_fed_prox

def build(architecture, training, *, seed: int, strength: Positive = 1.0):
    return build_fed_prox(architecture, training, seed=seed, proximal_strength=strength)

METHODS.register("entering", build)
"""


@pytest.mark.slow
def test_a_plugins_method_enters_the_board(tmp_path, monkeypatch):
    name = "FMNIST, Dirichlet .1, 20 clients"
    own = {"num_clients": 40, "clients_per_round": 20, "local_steps": None}
    monkeypatch.setitem(fair.SETTINGS, name, FLAGS | own)
    monkeypatch.setitem(fair._TRAINING, "selection_examples", 50)
    (tmp_path / "entering.py").write_text(PLUGIN)
    argv = [f"--plugin={tmp_path / 'entering.py'}", "--method=entering", f"--setting={name}"]
    argv += ["--own=strength=0.5", "--seeds=1", f"--output_dir={tmp_path / 'out'}"]
    assert enter.main(argv) == 0
    with (tmp_path / "out" / "board" / "table.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if row["row"] == "entering"]
    found = {(row["table"], row["column"]): row["ours"] for row in rows}
    assert float(found[name, "Accuracy, %"]) > 10
    assert "entering" in (tmp_path / "out" / "board" / "index.html").read_text()


@pytest.mark.parametrize(
    "wrong",
    [
        ["--method=fed_avg"],
        ["--method=m"],
        ["--method=m", "--setting=x"],
        ["--method=m", "--own=x"],
    ],
)
def test_what_cannot_enter_is_refused(wrong, tmp_path, capsys):
    with pytest.raises(SystemExit) as ended:
        enter.main([*wrong, f"--output_dir={tmp_path / 'out'}"])
    assert ended.value.code == 2 and "error: --" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
