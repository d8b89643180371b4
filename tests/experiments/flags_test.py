"""The command line: what is refused, in one line and before any work, and what is complete."""

import dataclasses
import pathlib
import sys

import pytest
import tensorflow as tf
from absl import flags
from absl.testing import flagsaver

from experiments import configure, train
from experiments.defaults import DEFAULTS
from experiments.flags import command_line, data, method, run
from tff_het import datasets, methods, partitions
from tff_het.models import NETWORKS
from tff_het.simulation import runtime
from tff_het.simulation import start as starts

GROUPS = (data, method, run)
PRESETS = sorted((pathlib.Path(__file__).parents[2] / "experiments" / "presets").glob("*.flags"))


@pytest.fixture
def call(tmp_path, monkeypatch, capsys):
    """Runs the program in this process; gives its exit code and what it printed."""

    def run_program(*argv: str):
        monkeypatch.setattr(sys, "argv", ["train", f"--output_dir={tmp_path / 'run'}", *argv])
        with flagsaver.flagsaver(), pytest.raises(SystemExit) as exit_:
            command_line.run(train.main, groups=GROUPS)
        captured = capsys.readouterr()
        return exit_.value.code, captured.out, captured.err

    return run_program


def test_failed_download_is_one_line(call, monkeypatch):
    def load(*_):
        raise RuntimeError("Could not get 'mnist'.\nPass data_dir.")

    monkeypatch.setattr(datasets, "load", load)
    assert call("--dataset=mnist") == (2, "", "error: Could not get 'mnist'. Pass data_dir.\n")


@pytest.mark.parametrize("value", ["nan", "inf", "-inf", "-1e39", "1e400", "x", "", "9" * 5000])
def test_no_flag_takes_what_is_no_number_to_compute_with(value):
    ours = [f for group in GROUPS for f in flags.FLAGS.flags_by_module_dict()[group.__name__]]
    numeric = [flag for flag in ours if flag.flag_type() in ("int", "float")]
    assert len(numeric) > 40
    for flag in numeric:
        with pytest.raises(flags.IllegalFlagValueError, match=f"--{flag.name}=.*expected a"):
            flag.parse(value)


def test_help_lists_every_flag_with_its_meaning(call):
    code, out, err = call("--help")
    assert (code, err) == (0, "")
    registered = flags.FLAGS.flags_by_module_dict()
    ours = [flag for group in GROUPS for flag in registered[group.__name__]]
    assert len(ours) > 30
    for flag in ours:
        name = f"--[no]{flag.name}" if flag.boolean else f"--{flag.name}"
        assert f"  {name}:" in out, name
        assert flag.help
    for group in GROUPS:
        assert group.__doc__.splitlines()[0] in out


def test_every_data_set_has_defaults():
    assert set(DEFAULTS) == set(datasets.names())
    for defaults in DEFAULTS.values():
        assert defaults.partition in partitions.names()
        assert defaults.model in NETWORKS
        assert set(dataclasses.asdict(defaults)) <= set(flags.FLAGS)


@pytest.fixture
def parsed(monkeypatch):
    """Parses a command line and fills in the defaults, for the time of a test."""
    with flagsaver.flagsaver():

        def parse(*argv: str) -> dict:
            command_line._parse(["train", *argv], groups=GROUPS)
            configure.fill_in_defaults()
            return configure.flag_values()

        yield parse


def test_defaults_follow_the_data_set(parsed):
    values = parsed("--dataset=digits", "--batch_size=7")
    assert (values["model"], values["rounds"], values["batch_size"]) == ("digits_cnn", 20, 7)
    assert (values["local_epochs"], values["local_steps"]) == (1, None)


@pytest.mark.parametrize(
    ("argv", "column", "num_clients"),
    [
        (["--dataset=traffic"], "network", None),
        (["--dataset=traffic", "--partition=groups", "--num_clients=2"], "network", 2),
        (["--dataset=traffic", "--partition=iid"], None, 5),
        (["--dataset=femnist"], None, 100),
    ],
)
def test_group_column_belongs_to_the_partition_of_the_data_set(parsed, argv, column, num_clients):
    values = parsed(*argv)
    assert (values["group_column"], values["num_clients"]) == (column, num_clients)


def test_steps_replace_epochs(parsed):
    values = parsed("--local_steps=3")
    assert (values["local_epochs"], values["local_steps"]) == (None, 3)


@pytest.mark.parametrize(
    "argv",
    [
        ["--dataset=digits"],
        ["--dataset=omniglot"],
        ["--partition=clusters", "--shuffle_fraction=0.2", "--cluster_assignment=nearest"],
        ["--partition=clusters", "--cluster_projection=none", "--allow_empty_test"],
        ["--dataset=traffic", "--shared_classes=5"],
        ["--dataset=femnist", "--partition=iid", "--local_steps=4", "--at_most_one_pass"],
        ["--method=fed_avg", "--client_classes=0,1;2,3", "--num_clients=2", "--noshuffle"],
        ["--method=cgau", "--cgau_variant=shared_one_hot", "--condition_output"],
        ["--positive_label=3", "--class_weights=1,9.5"],
        ["--method=hdafl", "--local_layers=dense_1,output", "--client_learning_rate=1e-7"],
        ["--method=hdafl", "--local_layers="],
        ["--dataset=adult", "--protected=race,sex", "--adversary_weights=0.5,1"],
        ["--dataset=adult", "--protected=sex", "--adversary_layer=dense_1", "--adversary_steps=5"],
        ["--method=lg_fedavg", "--local_loss=rotation", "--local_loss_weight=0.5"],
        ["--method=lg_fedavg", "--norm_weights", "--start_from=/with a space/fed_avg"],
        ["--goal_accuracy=0.975", "--goal_selection=test", "--validation_fraction=0.1"],
        ["--aggregator=dp", "--noise_multiplier=0.7", "--update_clip_norm=1", "--delta=0.001"],
        ["--standardize", "--loss=cross_entropy_of_softmax"],
        ["--data_dir=/with a space/x", "--server_optimizer=yogi", "--server_learning_rate=0.25"],
    ],
)
def test_flags_txt_gives_the_same_flags(parsed, tmp_path, argv):
    before = parsed(*argv)
    name = before["method"][0]
    path = tmp_path / "flags.txt"
    path.write_text(configure.flagfile(name))
    flags.FLAGS.unparse_flags()
    for module in GROUPS:
        for flag in flags.FLAGS.flags_by_module_dict()[module.__name__]:
            flag.unparse()
    after = parsed(f"--flagfile={path}")
    assert after == before | {"method": [name]}


@pytest.mark.parametrize("path", PRESETS, ids=lambda path: path.stem)
def test_presets_say_what_they_set(parsed, path):
    """Each line is a flag of the program, and is not overwritten by a later one."""
    values = parsed(f"--flagfile={path}")
    lines = [line for line in path.read_text().splitlines() if line.startswith("--")]
    given = dict(line.removeprefix("--").partition("=")[::2] for line in lines)  # '': a switch.
    assert {"dataset", "method", "rounds"} <= set(given) and len(given) == len(lines)
    assert set(values["method"]) <= set(methods.names())
    for name, text in given.items():
        assert values[name] == flags.FLAGS[name].parser.parse(text or "true"), name


def test_learning_rate_decays_from_the_second_round_on():
    """rate / (1 + decay * t), t = 0, 1, ..., as the help text says."""
    with configure.setup_with(
        {"client_learning_rate": "0.1", "learning_rate_decay": "0.5"}
    ) as made:
        rates = [float(made.training.learning_rate(tf.constant(t))) for t in range(4)]
    assert rates == pytest.approx([0.1, 0.1 / 1.5, 0.1 / 2, 0.1 / 2.5])


@pytest.mark.parametrize("rounds_before", [0, 7])
def test_clients_in_turn(tmp_path, rounds_before):
    """From the first one on, also where the run starts from another."""
    values = {"num_clients": "3", "clients_per_round": "1", "method": "fed_avg", "rounds": "1"}
    if rounds_before:
        with runtime.use("in_process", clients_in_parallel=1):
            train.run(values, tmp_path)
        before = starts.read(tmp_path)
        starts.write(tmp_path, dataclasses.replace(before, rounds=rounds_before))
        values["start_from"] = str(tmp_path)
    with configure.setup_with({**values, "sampling": "in_turn"}) as made:
        cohorts = [list(made.schedule(rounds_before + k)) for k in range(5)]
    assert cohorts == [[0], [1], [2], [0], [1]]
    with configure.setup_with(values) as made:
        drawn = [list(made.schedule(rounds_before + k)) for k in range(20)]
    assert drawn[:5] != cohorts and {client for (client,) in drawn} == {0, 1, 2}
