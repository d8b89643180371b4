"""One config: the same from flags, YAML and Python, with defaults, names and refusals."""

import dataclasses
import pathlib
import subprocess
import sys

import pytest
import tensorflow as tf

from experiments import train
from experiments.run import command_line, config, data, one, options, plugins, setup, training
from experiments.run.config import Layer, RunConfig, resolve
from experiments.run.defaults import DEFAULTS
from tff_het import datasets, kinds
from tff_het.learning import acquisition
from tff_het.methods import METHODS
from tff_het.models import auxiliary, keras_model
from tff_het.simulation import runtime
from tff_het.simulation import start as starts

ROOT = pathlib.Path(__file__).parents[3]
PRESETS = sorted((ROOT / "experiments" / "presets").glob("*.flags"))


def read(*argv: str) -> RunConfig:
    return command_line.run_config(argv, None)


@pytest.fixture
def call(tmp_path, capsys):
    """Runs the training program in this process; gives its exit code and what it printed."""

    def run_program(*argv: str):
        with pytest.raises(SystemExit) as exit_:
            train.main([f"--output_dir={tmp_path / 'run'}", *argv])
        captured = capsys.readouterr()
        return exit_.value.code, captured.out, captured.err

    return run_program


def test_failed_download_is_one_line(call, monkeypatch):
    def load(*_):
        raise RuntimeError("Could not get 'mnist'.\nPass data_dir.")

    monkeypatch.setattr(datasets, "load", load)
    assert call("--dataset=mnist") == (2, "", "error: Could not get 'mnist'. Pass data_dir.\n")


@pytest.mark.parametrize("value", ["nan", "inf", "-inf", "-1e39", "1e400", "x", "", "9" * 5000])
def test_no_setting_takes_what_is_no_number_to_compute_with(value):
    known = [*config.FIELDS.values(), *(f for _, _, own in options.owners() for f in own.values())]
    numeric = [field for field in known if "number" in kinds.hint(field.kind).split(",")[0]]
    assert len(numeric) > 45
    for field in numeric:
        if value == "" and "with commas" in kinds.hint(field.kind):
            continue  # A list of none.
        with pytest.raises(ValueError, match="expected"):
            field.parsed(value)


def test_help_lists_every_setting_with_its_meaning(call):
    code, out, err = call("--help")
    assert (code, err) == (0, "")
    for name, field in config.FIELDS.items():
        assert f"  --[no]{name}:" in out if field.kind is bool else f"  --{name}:" in out
        assert field.help
    for _, owner, known in options.owners():
        for name, field in known.items():
            assert f"{owner}.{name}:" in out and field.help, f"{owner}.{name}"


def test_help_and_config_come_without_tensorflow():
    """So within a second."""
    code = (
        "import sys\nfrom experiments import train\n"
        "try:\n    train.main(sys.argv[1:])\nexcept SystemExit as error:\n"
        "    assert 'tensorflow' not in sys.modules\n"
    )
    for flag in ("--help", "--print_config", "--nonsense"):
        ended = subprocess.run(
            [sys.executable, "-c", code, flag], capture_output=True, text=True, cwd=ROOT
        )
        assert ended.returncode == 0, ended.stderr


def test_choices_are_the_librarys():
    def choices(name):
        return set(kinds.hint(config.FIELDS[name].kind).split(", "))

    assert choices("acquisition") == set(acquisition.NAMES)
    assert choices("initialization") == set(keras_model.INITIALIZATIONS)
    assert choices("runtime") == set(runtime.RUNTIMES)
    hint = kinds.hint(options.of("method", "lg_fedavg")["local_loss"].kind)
    assert hint == ", ".join(auxiliary.LOCAL_LOSSES)


def test_every_data_set_has_defaults_that_fit():
    assert set(DEFAULTS) <= set(datasets.names())
    for name in datasets.names():
        found = RunConfig.of(dataset=name)
        assert found.data.dataset == name


def test_defaults_follow_the_data_set():
    found = read("--dataset=digits", "--batch_size=7")
    assert (found.method.model, found.run.rounds) == ("digits_cnn", 20)
    assert (found.training.batch_size, found.training.local_epochs) == (7, 1)
    assert found.origins["rounds"] == "suits digits" and found.origins["batch_size"] == "flag"


@pytest.mark.parametrize(
    ("argv", "column", "num_clients"),
    [
        (["--dataset=traffic"], "network", None),
        (["--dataset=traffic", "--partition=groups", "--num_clients=2"], "network", 2),
        (["--dataset=traffic", "--partition=iid"], None, 5),
        (["--dataset=femnist"], None, 100),
    ],
)
def test_group_column_belongs_to_the_partition_of_the_data_set(argv, column, num_clients):
    found = read(*argv)
    assert found.given_to("groups").get("column") == column
    assert found.data.num_clients == num_clients


def test_steps_replace_epochs():
    found = read("--local_steps=3").training
    assert (found.local_epochs, found.local_steps) == (None, 3)


@pytest.mark.parametrize(
    "argv",
    [
        ["--dataset=digits"],
        ["--dataset=omniglot"],
        ["--partition=clusters", "--shuffle_fraction=0.2", "--clusters.assignment=nearest"],
        ["--partition=clusters", "--clusters.projection=none", "--allow_empty_test"],
        ["--dataset=traffic", "--shared_classes=5"],
        ["--dataset=femnist", "--partition=iid", "--local_steps=4", "--at_most_one_pass"],
        ["--method=fed_avg", "--classes=0,1;2,3", "--num_clients=2", "--noshuffle"],
        ["--method=cgau", "--variant=shared_one_hot", "--condition_output"],
        ["--positive_label=3", "--class_weights=1,9.5"],
        ["--method=hdafl", "--local_layers=dense_1,output", "--client_learning_rate=1e-7"],
        ["--method=hdafl", "--local_layers="],
        ["--dataset=adult", "--protected=race,sex", "--adversary_weights=0.5,1"],
        ["--dataset=adult", "--protected=sex", "--adversary_layer=dense_1", "--adversary_steps=5"],
        ["--method=lg_fedavg", "--local_loss=rotation", "--local_loss_weight=0.5"],
        ["--method=lg_fedavg", "--norm_weights", "--start_from=/with a space/fed_avg"],
        ["--method=waffle", "--factors=dense_1=3,dense_2=4", "--temperature=0.5"],
        ["--goal_accuracy=0.975", "--goal_selection=test", "--validation_fraction=0.1"],
        ["--aggregator=dp", "--noise_multiplier=0.7", "--update_clip_norm=1", "--delta=0.001"],
        ["--standardize", "--loss=cross_entropy_of_softmax", "--tracking="],
        ["--data_dir=/with a space/x", "--server_optimizer=yogi", "--server_learning_rate=0.25"],
    ],
)
def test_flags_txt_and_yaml_give_the_same_config(tmp_path, argv, capsys):
    before = read(*argv)
    name = before.method.method[0]
    flagfile, yaml = tmp_path / "flags.txt", tmp_path / "run.yaml"
    flagfile.write_text(before.flagfile(name))
    assert read(f"--flagfile={flagfile}").defining(name) == before.defining(name)
    yaml.write_text(command_line.as_yaml(before))
    assert read(f"--config={yaml}").values() == before.values()
    assert RunConfig.of(**before.values()).values() == before.values()


def test_later_sources_win(tmp_path):
    first, second = tmp_path / "first.yaml", tmp_path / "second.yaml"
    first.write_text("rounds: 3\nbatch_size: 4\nseed: 7\nwaffle: {temperature: 0.5}\n")
    second.write_text("rounds: 5\n")
    found = read(f"--config={first}", "--seed=9", f"--config={second}", "--method=waffle")
    assert (found.run.rounds, found.training.batch_size, found.run.seed) == (5, 4, 9)
    assert found.given_to("waffle") == {"temperature": 0.5}
    assert found.origins["rounds"] == str(second) and found.origins["seed"] == "flag"
    assert found.origins["waffle.temperature"] == str(first)


def test_every_choice_can_be_made():
    """No option of a method, network, data set or partition has the name of a setting."""
    for role, registry in options.REGISTRIES.items():
        for name in registry:
            values = dict.fromkeys(options.REGISTRIES, ()) | {role: name}
            assert name in options.chosen(values, config.FIELDS)


def test_two_methods_have_options_of_their_own():
    argv = ("--method=hdafl,lg_fedavg,fed_avg", "--local_layers=output")
    both = read(*argv).options
    assert both == {name: {"local_layers": ("output",)} for name in ("hdafl", "lg_fedavg")}
    own = read(*argv, "--hdafl.local_layers=dense_1").options
    assert own["hdafl"] == {"local_layers": ("dense_1",)} and own["lg_fedavg"] == both["lg_fedavg"]
    # A later source's bare name counts more than an earlier one's full name.
    layers = [Layer("a", {"method": "hdafl", "hdafl.local_layers": "dense_1"})]
    assert resolve([*layers, Layer("b", {"local_layers": "output"})]).options == {
        "hdafl": {"local_layers": ("output",)}
    }


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"nope": 1}, "--nope: there is no such setting"),
        ({"hdafl.nope": 1}, "--hdafl.nope: there is no such setting"),
        ({"hdafl.local_layer": 1}, "Did you mean local_layers?"),
        ({"methd": "hdafl"}, "Did you mean method?"),
        ({"data": {"dataset": "digits"}}, "--data: there is no such setting"),
        ({"mine": {"a": 1}}, "--mine: there is no such setting"),
        ({"mine.a": 1}, r"nothing is called 'mine' .--plugin registers"),
        ({"q": 1}, "--q belongs to --method=q_ffl; found --method=hdafl,fed_avg"),
        ({"waffle": {"temperature": 1}}, "belongs to --method=waffle"),
        ({"rounds": 1.5}, "--rounds=1.5: expected a whole number"),
        ({"rounds": None}, "--rounds=None: expected a whole number"),
        ({"bias": "perhaps"}, "--bias=perhaps: expected true or false"),
        ({"dataset": ["digits"]}, r"should be one of <adult.*digits.*>; found \['digits'\]"),
        ({"method": {"method": "hdafl"}}, "should be one of <fed_avg"),
        ({"data_dir": ["a"]}, "expected a text"),
        ({"method": "waffle", "factors": "conv_1"}, "expected name=value"),
    ],
)
def test_python_is_refused_what_flags_are(settings, message):
    with pytest.raises(ValueError, match=message):
        RunConfig.of(**settings)


@pytest.mark.parametrize("path", PRESETS, ids=lambda path: path.stem)
def test_presets_say_what_they_set(path):
    """Each line is a flag of the program, and is not overwritten by a later one."""
    found = read(f"--flagfile={path}")
    values = found.values()
    lines = [line for line in path.read_text().splitlines() if line.startswith("--")]
    given = dict(line.removeprefix("--").partition("=")[::2] for line in lines)  # '': a switch.
    assert {"dataset", "method", "rounds"} <= set(given) and len(given) == len(lines)
    assert set(values["method"]) <= set(METHODS)
    for name, text in given.items():
        matching = [value for key, value in values.items() if name in (key, key.partition(".")[2])]
        assert matching, name
        if name in config.FIELDS:
            assert matching == [config.FIELDS[name].parsed(text or "true")], name


def test_learning_rate_decays_from_the_second_round_on():
    """rate / (1 + decay * t), t = 0, 1, ..., as the help text says."""
    made = setup.make(RunConfig.of(client_learning_rate=0.1, learning_rate_decay=0.5))
    rates = [float(made.training.learning_rate(tf.constant(t))) for t in range(4)]
    assert rates == pytest.approx([0.1, 0.1 / 1.5, 0.1 / 2, 0.1 / 2.5])


def test_local_training_is_as_the_settings_say():
    steps = {"batch_size": 7, "local_steps": 5, "at_most_one_pass": True, "shuffle": False}
    config = RunConfig.of(**steps, weight_decay=0.1, clip_norm=2.0, augment=True)
    made = training.local_training(config)
    assert (made.batch_size, made.steps, made.epochs) == (7, 5, None)
    assert made.at_most_one_pass and not made.shuffle and made.augment is not None
    assert (made.weight_decay, made.clip_norm) == (0.1, 2.0)
    made = training.local_training(RunConfig.of(local_epochs=3))
    assert (made.epochs, made.steps, made.augment, made.clip_norm) == (3, None, None, None)


def test_test_examples_are_split_too_where_they_are_merged():
    of = {"dataset": "digits", "partition": "iid", "num_clients": 4, "local_test_fraction": 0.25}
    apart, merged = (data.deal(RunConfig.of(**of, merge_test=m)) for m in (False, True))
    whole = datasets.load("digits")
    sizes = [len(part["y"]) for part in (whole.train, whole.test)]
    for dealt, held in ((apart, sizes[0]), (merged, sum(sizes))):
        parts = dealt.partition.train, dealt.partition.test
        train, test = (sum(map(len, part)) for part in parts)
        assert train + test == held and test == pytest.approx(held / 4, abs=4)


@pytest.mark.parametrize("rounds_before", [0, 7])
def test_clients_in_turn(tmp_path, rounds_before):
    """From the first one on, also where the run starts from another."""
    values = {"num_clients": 3, "clients_per_round": 1, "method": "fed_avg", "rounds": 1}
    if rounds_before:
        with runtime.use("in_process", clients_in_parallel=1):
            one.run(RunConfig.of(**values), tmp_path).close()
        before = starts.read(tmp_path)
        starts.write(tmp_path, dataclasses.replace(before, rounds=rounds_before))
        values["start_from"] = str(tmp_path)
    made = setup.make(RunConfig.of(**values, sampling="in_turn"))
    cohorts = [list(made.schedule(rounds_before + k)) for k in range(5)]
    assert cohorts == [[0], [1], [2], [0], [1]]
    made = setup.make(RunConfig.of(**values))
    drawn = [list(made.schedule(rounds_before + k)) for k in range(20)]
    assert drawn[:5] != cohorts and {client for (client,) in drawn} == {0, 1, 2}


def test_a_flagfile_says_that_each_group_is_a_client():
    config = RunConfig.of(dataset="femnist", num_clients=0)
    assert config.data.num_clients is None
    assert "--num_clients=0\n" in config.flagfile("hdafl")


def test_a_data_sets_momentum_is_for_sgd_alone():
    config = RunConfig.of(dataset="easy_vqa", client_optimizer="adam")
    assert not config.training.client_momentum


def test_packages_beside_a_plugin_belong_to_it(tmp_path):
    plugin, inner = tmp_path / "mine.py", tmp_path / "inner" / "deep" / "a.py"
    inner.parent.mkdir(parents=True)
    inner.write_text("A = 1")
    plugin.write_text("import inner.deep.a\nimport tff_het\n")
    (tmp_path / "tff_het").mkdir()
    (tmp_path / "tff_het" / "b.py").write_text("")
    assert plugins.beside(plugin) == [inner]


def test_a_shown_command_leaves_out_where_runs_are():
    argv = ["--over=a=1", "--output_dir", "of mine", "--data_dir=x", "-jobs=2", "--seeds=3"]
    shown = command_line.without(argv, "output_dir", "data_dir", "jobs")
    assert shown == "--over=a=1 --seeds=3"
