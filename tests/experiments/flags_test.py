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
from tff_het.models import architectures
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


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        ("--nonsense=1", "Unknown command line flag 'nonsense'"),
        ("positional", "Not a flag: positional"),
        ("--flagfile=/does/not/exist", "/does/not/exist"),
        ("--rounds=0", "--rounds=0"),
        ("--rounds=many", "--rounds=many"),
        ("--dataset=nope", "--dataset=nope"),
        ("--method=nope", "no method 'nope'; there are: fed_avg"),
        ("--method=hdafl,nope", "no method 'nope'"),
        ("--method=", "--method needs one or more"),
        ("--method=hdafl,hdafl", "--method needs one or more different methods"),
        ("--local_epochs=1 --local_steps=3", "either --local_epochs or --local_steps"),
        ("--at_most_one_pass", "at_most_one_pass limits `steps`"),
        ("--num_clients=11", "num_clients must be from 1 to 10"),
        ("--partition=iid --num_clients=100000", "100000"),
        ("--clients_per_round=6", "clients_per_round must lie between 1 and the number of clients"),
        ("--dataset=mnist --data_dir=/does/not/exist", "'/does/not/exist' does not exist"),
        ("--dataset=mnist --data_dir=.", "Expected train-images-idx3-ubyte.gz"),
        ("--dataset=npz", "pass it as data_dir"),
        (
            "--model=vqa_lstm",
            "--model=vqa_lstm reads x, question; data set 'digits' has no question",
        ),
        ("--dataset=easy_vqa", "'easy_vqa' is read from files: pass data_dir"),
        ("--dirichlet_alpha=0.3", "--dirichlet_alpha belongs to --partition=dirichlet"),
        ("--partition=iid --shards_per_client=3", "belongs to --partition=shards or multimodal"),
        ("--partition=iid --single_class", "--single_class belongs to --partition=shards"),
        ("--minority_clients=2", "--minority_clients belongs to --partition=multimodal"),
        (
            "--partition=multimodal --minority_classes=even --minority_clients=1",
            "--minority_classes=even is not of the form it has",
        ),
        ("--partition=multimodal --minority_clients=1", "minority_classes must be different ones"),
        (
            "--partition=multimodal --minority_classes=1 --minority_clients=5",
            "minority_clients must be from 1 to 4",
        ),
        ("--local_test_fraction=0", "fraction must be between 0 and 1; found 0.0"),
        ("--local_test_fraction=1", "--local_test_fraction=1"),
        ("--worker_deadline=5", "--worker_deadline belongs to --workers"),
        ("--shared_examples_dir=.", "--shared_examples_dir belongs to --workers"),
        ("--workers=", "Expected the address of a worker, host:port; found none"),
        ("--workers=a:1,b", "Expected a worker's address as host:port, found 'b'"),
        ("--workers=a:1 --worker_deadline=0", "more than 0 seconds, found 0"),
        ("--workers=a:1 --shared_examples_dir=/does/not/exist", "examples at /does/not/exist"),
        ("--q=1 --method=hdafl", "--q has no meaning for hdafl"),
        ("--q=-1 --method=q_ffl", "--q=-1"),
        ("--partition=iid --max_groups=3", "--max_groups belongs to --partition=groups"),
        ("--partition=iid --shared_classes=3", "--shared_classes belongs to --partition=groups"),
        ("--partition=iid --shuffle_fraction=0.5", "--shuffle_fraction belongs to --partition=cl"),
        ("--partition=clusters --shuffle_fraction=1.5", "--shuffle_fraction=1.5"),
        ("--partition=clusters --cluster_projection=umap", "should be one of <pca|none|tsne>"),
        ("--partition=clusters --cluster_components=65", "num_components must be from 1 to 64"),
        ("--partition=iid --num_clients=361", "accept it with allow_empty_test=True"),
        ("--class_weights=1,50", "a positive number for each of the 10 classes"),
        (
            "--partition=iid --positive_label=3 --class_weights=1,x",
            "a positive number for each of the 2 classes",
        ),
        ("--positive_label=ten", "has no single class 'ten' beside others"),
        ("--method=fed_avg --cgau_variant=private", "--cgau_variant has no meaning for fed_avg"),
        ("--method=hdafl --condition_output", "--condition_output has no meaning for hdafl"),
        ("--dataset=embedded --data_dir=.", "Expected metadata.json"),
        ("--client_classes=a,b", "--client_classes=a,b is not of the form"),
        ("--client_classes=0,1;2 --num_clients=3", "classes"),
        ("--server_optimizer=adam", "--server_optimizer and --server_learning_rate"),
        ("--server_learning_rate=0.1", "--server_optimizer and --server_learning_rate"),
        (
            "--server_optimizer=adam --server_learning_rate=0.1 --method=local_only",
            "--server_optimizer has no meaning for local_only",
        ),
        ("--local_layers=output --method=fed_avg", "--local_layers has no meaning for fed_avg"),
        ("--local_layers=nope --method=hdafl", "No layer with variables is called 'nope'"),
        ("--client_optimizer=adam --client_momentum=0.9", "--client_momentum belongs to"),
        ("--client_learning_rate=0", "--client_learning_rate must be positive"),
        ("--clip_norm=-1", "clip_norm must be positive"),
        ("--goal_accuracy=0.9", "give --validation_fraction (0.1, say), or --goal_selection=test"),
        ("--goal_selection=test", "says how to judge --goal_accuracy: give that too"),
        ("--goal_accuracy=1.5", "--goal_accuracy=1.5"),
        ("--goal_accuracy=0 --goal_selection=test", "an accuracy in (0, 1], found 0"),
        ("--start_from=/does/not/exist", "There is no /does/not/exist/weights.npz: a run that"),
        ("--loss=hinge", "should be one of <cross_entropy|cross_entropy_of_softmax>"),
        (
            "--loss=cross_entropy_of_softmax --class_weights=1,1,1,1,1,1,1,1,1,9",
            "--class_weights weigh the cross entropy; found --loss=cross_entropy_of_softmax",
        ),
        ("--local_loss=supervised --method=hdafl", "--local_loss has no meaning for hdafl"),
        ("--local_loss_weight=2 --method=hdafl", "--local_loss_weight has no meaning for hdafl"),
        ("--norm_weights --method=fed_avg", "--norm_weights has no meaning for fed_avg"),
        ("--proximal_strength=1 --method=fed_avg", "--proximal_strength has no meaning for"),
        ("--local_loss=jigsaw", "should be one of <supervised|autoencoder|rotation>"),
        ("--local_loss_weight=2 --method=lg_fedavg", "is what a local_loss counts: give that too"),
        (
            "--local_loss=supervised --local_loss_weight=0 --method=lg_fedavg",
            "The weight of a local loss is positive, found 0",
        ),
        (
            "--local_loss=supervised --local_layers=output --method=lg_fedavg",
            "from the first on; found output",
        ),
        (
            "--local_loss=supervised --local_layers= --method=lg_fedavg",
            "from the first on; found none",
        ),
        ("--model=lenet5", "Model 'lenet5' does not take examples of shape"),
        ("--adversary_weights=1", "--adversary_weights belongs to --protected"),
        ("--adversary_layer=dense_1", "--adversary_layer belongs to --protected"),
        ("--adversary_steps=2", "--adversary_steps belongs to --protected"),
        ("--protected=sex", "of which data set 'digits' has: none; found sex"),
        ("--pool_size=9", "--pool_size belongs to --acquisition: give one of random, max_entropy"),
        ("--kept_per_class=0", "--kept_per_class belongs to --acquisition"),
        ("--acquisition=entropy", "should be one of <random|max_entropy|bald|variation_ratios>"),
        ("--acquisition=random --dropout_samples=3", "--dropout_samples has no meaning for --acq"),
        (
            "--acquisition=random --acquisition_size=9 --pool_size=8",
            "An acquisition of 9 examples does not fit a pool of 8",
        ),
        ("--acquisition=bald", "this model draws nothing: take a network with dropout"),
        ("--acquisition=random --method=q_ffl", "q_ffl weighs a client by its loss on all of its"),
        ("--acquisition=random --method=fed_recon", "These steps are made on all of a client's"),
        ("--local_statistics", "Moving statistics are to be local, but the model has none"),
        ("--tracking=wandb", "different ones of tensorboard, mlflow; found wandb"),
        ("--aggregator=median", "should be one of <mean|robust|dp|compressed>"),
        ("--noise_multiplier=1", "--noise_multiplier belongs to --aggregator=dp; found mean"),
        ("--quantization_bits=4 --aggregator=dp", "belongs to --aggregator=compressed; found dp"),
        ("--aggregator=robust --method=local_only", "and there is none in local_only: leave it"),
        ("--aggregator=dp --method=hdafl,centralized", "and there is none in centralized: leave"),
        ("--aggregator=dp", "--aggregator=dp needs --noise_multiplier"),
        ("--aggregator=dp --noise_multiplier=1", "--aggregator=dp needs --update_clip_norm"),
        (
            "--aggregator=dp --noise_multiplier=1 --update_clip_norm=0",
            "Updates are clipped to a positive norm, found 0",
        ),
        (
            "--aggregator=dp --noise_multiplier=1 --update_clip_norm=1 --delta=1",
            "--delta must lie between 0 and 1, found 1",
        ),
        (
            "--aggregator=dp --noise_multiplier=1 --update_clip_norm=1 --goal_accuracy=0.9 "
            "--goal_selection=test",
            "--aggregator=dp promises nothing with --goal_accuracy",
        ),
        (
            "--aggregator=dp --noise_multiplier=1 --update_clip_norm=1 --method=q_ffl",
            "q_ffl's weights h_k would be lost",
        ),
        (
            "--aggregator=dp --noise_multiplier=1 --update_clip_norm=1 --method=lg_fedavg "
            "--norm_weights",
            "weights by norm would be lost",
        ),
        (
            "--aggregator=dp --noise_multiplier=1 --update_clip_norm=1 --method=fed_avg "
            "--model=cnn_edge_digits_bn",
            "noise to the moving statistics that fed_avg averages (norm_of_conv_1/moving_mean, "
            "norm_of_conv_1/moving_variance, ...), and variances must stay positive: give "
            "--local_statistics, or a --model without batch normalisation",
        ),
        ("--aggregator=compressed --method=hdafl", "no variable has more than 20000 numbers"),
    ],
)
def test_wrong_use_is_one_line_before_any_work(call, tmp_path, argv, message):
    code, out, err = call(*argv.split())
    assert (code, out) == (2, "")
    assert err.startswith("error: ") and err.count("\n") == 1 and err.endswith("\n")
    assert message in err
    assert list(tmp_path.iterdir()) == []


def test_failed_download_is_one_line(call, monkeypatch):
    def load(*_):
        raise RuntimeError("Could not get 'mnist'.\nPass data_dir.")

    monkeypatch.setattr(datasets, "load", load)
    assert call("--dataset=mnist") == (2, "", "error: Could not get 'mnist'. Pass data_dir.\n")


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
        assert defaults.model in architectures.NETWORKS
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
