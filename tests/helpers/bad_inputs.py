"""Bad input, as data: what is given to which program, and what has to happen.

`bad_inputs_test.py` runs each row. A new one is a line.
"""

import contextlib
import io
import json
import pathlib
import shutil
import sqlite3
import zipfile
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

REFUSED, WORKS, FAILS, STOPPED = 2, 0, 1, 130

Maker = Callable[[pathlib.Path], None]


class Row(NamedTuple):
    """A command, and how it ends.

    Attributes:
      flags: Its flags; `{in}` is a folder with what `makes` makes, `{out}` the output folder,
        which is given to the program where the flags do not say otherwise.
      says: Words of the one line that it prints where it does not work.
      code: Its exit code.
      program: The module that runs.
      makes: Makes the files that it reads, in a folder that is there.
      request: How it is run, see `forking.py`.
    """

    flags: str
    says: str = ""
    code: int = REFUSED
    program: str = "experiments.train"
    makes: Maker | None = None
    request: Mapping[str, Any] = {}


_DP = "--aggregator=dp --noise_multiplier=1 --update_clip_norm=1"
FLAGS = [
    Row("--nonsense=1", "Unknown command line flag 'nonsense'"),
    Row("positional", "Not a flag: positional"),
    Row("--flagfile=/does/not/exist", "/does/not/exist"),
    Row("--rounds=0", "--rounds=0"),
    Row("--rounds=many", "--rounds=many"),
    Row("--dataset=nope", "--dataset=nope"),
    Row("--method=nope", "--method=nope: should be one of <fed_avg|"),
    Row("--method=hdafl,nope", "found nope"),
    Row("--method=", "--method needs one or more"),
    Row("--method=hdafl,hdafl", "--method needs one or more different methods"),
    Row("--local_epochs=1 --local_steps=3", "either --local_epochs or --local_steps"),
    Row("--at_most_one_pass", "at_most_one_pass limits `steps`"),
    Row("--num_clients=11", "num_clients must be from 1 to 10"),
    Row("--partition=iid --num_clients=100000", "100000"),
    Row("--clients_per_round=6", "clients_per_round must lie between 1 and the number of clients"),
    Row("--evaluate_clients=6", "evaluate_clients must lie between 1 and the number of clients, 5"),
    Row("--evaluate_clients=0", "--evaluate_clients=0"),
    Row("--dataset=mnist --data_dir=/does/not/exist", "'/does/not/exist' does not exist"),
    Row("--dataset=mnist --data_dir=.", "Expected train-images-idx3-ubyte.gz"),
    Row("--dataset=npz", "pass it as data_dir"),
    Row(
        "--model=vqa_lstm", "--model=vqa_lstm reads x, question; data set 'digits' has no question"
    ),
    Row("--dataset=easy_vqa", "'easy_vqa' is read from files: pass data_dir"),
    Row("--dirichlet.alpha=0.3", "--dirichlet.alpha belongs to --partition=dirichlet"),
    Row("--partition=iid --shards_per_client=3", "belongs to --partition=multimodal or shards"),
    Row("--partition=iid --single_class", "--single_class belongs to --partition=shards"),
    Row("--minority_clients=2", "--minority_clients belongs to --partition=multimodal"),
    Row(
        "--partition=multimodal --minority_classes=even --minority_clients=1",
        "--minority_classes=even: expected a whole number",
    ),
    Row("--partition=multimodal --minority_clients=1", "minority_classes must be different ones"),
    Row(
        "--partition=multimodal --minority_classes=1 --minority_clients=5",
        "minority_clients must be from 1 to 4",
    ),
    Row("--local_test_fraction=0", "expected a number above 0 and at most 0.9; found 0"),
    Row("--merge_test", "--merge_test belongs to --local_test_fraction: give that too"),
    Row("--local_test_fraction=1", "--local_test_fraction=1"),
    Row("--ray_deadline=5", "--ray_deadline belongs to --runtime=ray; found in_process"),
    Row("--runtime=ray --ray_deadline=0", "--ray_deadline=0: expected a number above 0"),
    Row("--q=1 --method=hdafl", "--q belongs to --method=q_ffl; found --method=hdafl"),
    Row("--q=-1 --method=q_ffl", "--q=-1"),
    Row("--partition=iid --max_groups=3", "--max_groups belongs to --partition=groups"),
    Row("--partition=iid --shared_classes=3", "--shared_classes belongs to --partition=groups"),
    Row("--partition=iid --shuffle_fraction=0.5", "--shuffle_fraction belongs to --partition=cl"),
    Row("--partition=clusters --shuffle_fraction=1.5", "--shuffle_fraction=1.5"),
    Row("--partition=clusters --clusters.projection=umap", "should be one of <pca|none|tsne>"),
    Row("--partition=clusters --clusters.num_components=65", "num_components must be from 1 to 64"),
    Row("--partition=iid --num_clients=361", "accept it with allow_empty_test=True"),
    Row("--class_weights=1,50", "a positive number for each of the 10 classes"),
    Row(
        "--partition=iid --positive_label=3 --class_weights=1,x",
        "--class_weights=1,x: expected a number above 0",
    ),
    Row("--positive_label=ten", "has no single class 'ten' beside others"),
    Row("--method=fed_avg --cgau.variant=private", "--cgau.variant belongs to --method=cgau"),
    Row("--method=hdafl --condition_output", "--condition_output belongs to --method=cgau"),
    Row("--dataset=embedded --data_dir=.", "Expected metadata.json"),
    Row("--disjoint_classes.classes=a,b", "--disjoint_classes.classes=a,b: expected a whole"),
    Row("--disjoint_classes.classes=0,1;2 --num_clients=3", "classes"),
    Row("--server_optimizer=adam", "--server_optimizer belongs to --server_learning_rate: give"),
    Row("--server_learning_rate=0.1", "--server_learning_rate belongs to --server_optimizer"),
    Row(
        "--server_optimizer=adam --server_learning_rate=0.1 --method=local_only",
        "--server_optimizer has no meaning for local_only",
    ),
    Row(
        "--local_layers=output --method=fed_avg",
        "--local_layers belongs to --method=fed_recon or hdafl",
    ),
    Row("--local_layers=nope --method=hdafl", "No layer with variables is called 'nope'"),
    Row("--client_optimizer=adam --client_momentum=0.9", "--client_momentum belongs to"),
    Row("--client_learning_rate=0", "expected a number above 0 and at most 3.403e+38; found 0"),
    Row("--clip_norm=-1", "--clip_norm=-1: expected a number above 0"),
    Row("--goal_accuracy=0.9", "needs --validation_fraction, or --goal_selection=test"),
    Row("--goal_selection=test", "--goal_selection belongs to --goal_accuracy: give that too"),
    Row("--goal_accuracy=1.5", "--goal_accuracy=1.5"),
    Row(
        "--goal_accuracy=0 --goal_selection=test",
        "--goal_accuracy=0: expected a number above 0 and at most 1",
    ),
    Row("--start_from=/does/not/exist", "There is no /does/not/exist/weights.npz: a run that"),
    Row("--loss=hinge", "should be one of <cross_entropy|cross_entropy_of_softmax>"),
    Row(
        "--loss=cross_entropy_of_softmax --class_weights=1,1,1,1,1,1,1,1,1,9",
        "--class_weights weigh the cross entropy; found --loss=cross_entropy_of_softmax",
    ),
    Row("--local_loss=supervised --method=hdafl", "--local_loss belongs to --method=lg_fedavg"),
    Row("--local_loss_weight=2 --method=hdafl", "--local_loss_weight belongs to --method=lg_f"),
    Row("--norm_weights --method=fed_avg", "--norm_weights belongs to --method=lg_fedavg"),
    Row("--proximal_strength=1 --method=fed_avg", "--proximal_strength belongs to --method"),
    Row(
        "--local_loss=jigsaw --method=lg_fedavg",
        "should be one of <supervised|autoencoder|rotation>",
    ),
    Row("--local_loss_weight=2 --method=lg_fedavg", "is what a local_loss counts: give that too"),
    Row(
        "--local_loss=supervised --local_loss_weight=0 --method=lg_fedavg",
        "--local_loss_weight=0: expected a number above 0",
    ),
    Row(
        "--local_loss=supervised --local_layers=output --method=lg_fedavg",
        "from the first on; found output",
    ),
    Row(
        "--local_loss=supervised --local_layers= --method=lg_fedavg",
        "from the first on; found none",
    ),
    Row("--model=lenet5", "Model 'lenet5' does not take examples of shape"),
    Row("--adversary_weights=1", "--adversary_weights belongs to --protected"),
    Row("--adversary_layer=dense_1", "--adversary_layer belongs to --protected"),
    Row("--adversary_steps=2", "--adversary_steps belongs to --protected"),
    Row("--protected=sex", "none in 'digits'; found sex"),
    Row("--pool_size=9", "--pool_size belongs to --acquisition: give that too"),
    Row("--kept_per_class=0", "--kept_per_class belongs to --acquisition"),
    Row("--acquisition=entropy", "should be one of <random|max_entropy|bald|variation_ratios>"),
    Row("--acquisition=random --dropout_samples=3", "--dropout_samples has no meaning for --acq"),
    Row(
        "--acquisition=random --acquisition_size=9 --pool_size=8",
        "An acquisition of 9 examples does not fit a pool of 8",
    ),
    Row("--acquisition=bald", "this model draws nothing: take a network with dropout"),
    Row("--acquisition=random --method=q_ffl", "q_ffl weighs a client by its loss on all of its"),
    Row("--acquisition=random --method=fed_recon", "These steps are made on all of a client's"),
    Row("--acquisition=random --method=ifca", "no acquisition: it reads all labels"),
    Row("--local_statistics", "Moving statistics are to be local, but the model has none"),
    Row("--tracking=wandb", "different ones of tensorboard, mlflow; found wandb"),
    Row("--aggregator=median", "should be one of <mean|robust|dp|compressed>"),
    Row("--noise_multiplier=1", "--noise_multiplier belongs to --aggregator=dp; found mean"),
    Row("--quantization_bits=4 --aggregator=dp", "belongs to --aggregator=compressed; found dp"),
    Row("--aggregator=robust --method=local_only", "and there is none in local_only: leave it"),
    Row(_DP + " --method=hdafl,centralized", "and there is none in centralized: leave"),
    Row("--aggregator=dp", "--aggregator=dp needs --noise_multiplier"),
    Row("--aggregator=dp --noise_multiplier=1", "--aggregator=dp needs --update_clip_norm"),
    Row(
        "--aggregator=dp --noise_multiplier=1 --update_clip_norm=0",
        "--update_clip_norm=0: expected a number above 0",
    ),
    Row(
        _DP + " --delta=1",
        "--delta=1: expected a number above 0 and below 1",
    ),
    Row(
        _DP + " --goal_accuracy=0.9 --goal_selection=test",
        "--aggregator=dp promises nothing with --goal_accuracy",
    ),
    Row(
        _DP + " --method=q_ffl",
        "q_ffl's weights h_k would be lost",
    ),
    Row(
        _DP + " --method=lg_fedavg --norm_weights",
        "weights by norm would be lost",
    ),
    Row(
        _DP + " --method=fed_avg --model=cnn_edge_digits_bn",
        "noise to the moving statistics that fed_avg averages (norm_of_conv_1/moving_mean, "
        "norm_of_conv_1/moving_variance, ...), and variances must stay positive: give "
        "--local_statistics, or a --model without batch normalisation",
    ),
    Row("--aggregator=compressed --method=hdafl", "no variable has more than 20000 numbers"),
]


# --- Numbers ----------------------------------------------------------------------------------

# Of flags that are checked alike, one gets all numbers; `run/config_test.py` has all flags.
NUMBERS = [
    *(
        Row(f"--{flag}={value}", f"--{flag}={value}: expected a number")
        for flag, values in {
            "client_learning_rate": ("nan", "inf", "-1", "1e39", "1e400", "many", "0x1"),
            "weight_decay": ("-1",),
            "clip_norm": ("nan",),
            "server_learning_rate": ("-1",),
        }.items()
        for value in values
    ),
    *(
        Row(f"--{flag}={value}", f"--{flag}={value}: expected a whole number from 1 to 2147483647")
        for flag, values in {
            "rounds": ("-3", "1.5", "1e20", 2**31, 2**63, "nan"),
            "batch_size": ("0",),
            "local_epochs": ("0",),
            "local_steps": ("0",),
        }.items()
        for value in values
    ),
    *(
        Row(f"--num_clients={value}", f"--num_clients={value}: expected a whole number from 0")
        for value in ("-3", 2**31)
    ),
    Row("--client_learning_rate=" + "9" * 400, "found 9999999999999999999999999999999999999999..."),
    Row("--client_learning_rate=1e-50", "expected a number above 0 and at most 3.403e+38"),
    Row("--runtime=ray --ray_deadline=nan", "--ray_deadline=nan: expected a number above 0"),
    Row("--proximal_strength=nan --method=fed_prox", "--proximal_strength=nan: expected a number"),
    Row("--client_momentum=nan", "--client_momentum=nan: expected a number"),
    Row("--noise_multiplier=1e308", "--noise_multiplier=1e308: expected a number"),
    Row("--dirichlet.alpha=nan --partition=dirichlet", "--dirichlet.alpha=nan: expected a number"),
    Row("--class_weights=1,1,1,1,1,1,1,1,1,nan", "expected a number above 0"),
    Row("--class_weights=1,1,1,1,1,1,1,1,1,inf", "expected a number above 0"),
    Row("--minority_classes=1.5 --partition=multimodal --minority_clients=1", "whole number"),
    Row(
        "--disjoint_classes.classes=0,99999999999",
        "expected a whole number from 0",
    ),
    Row("--method=waffle --factors=dense_1=1e9", "--factors"),
    Row("--method=waffle --factors=dense_1", "--factors"),
    Row("--local_epochs=2147483647", "expected at most 50000000 examples in all"),
    Row("--local_steps=2147483647", "expected at most 50000000 examples in all"),
    Row("--rounds=1 --batch_size=1000000000", code=WORKS),
    Row("--rounds=1 --batch_size=2147483647 --method=hdafl,centralized", code=WORKS),
    Row(
        "--rounds=3 --model=mlp --client_learning_rate=2 --server_optimizer=sgd "
        "--server_learning_rate=3e38 --eval_every=10 --method=fed_avg",
        "diverged",
        FAILS,
    ),
]


# --- Folders and the environment --------------------------------------------------------------


def file(name: str, data: bytes = b"A file.") -> Maker:
    """Makes a file."""

    def make(folder: pathlib.Path) -> None:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)

    return make


_ONE = "--rounds=1 --method=fed_avg"
_QUICK = "--method=local_only --model=mlp"  # Is built soonest: where to is asked after that.
PLACES = [
    Row("--partition=iid --num_clients=0", "--num_clients=0 needs --partition=groups; found iid"),
    Row("--partition=file --path=/does/not/exist", "/does/not/exist"),
    Row("--partition=file", "give --file.path"),
    Row("--partition=file --initial_examples=9", "leave out those that no client gets"),
    Row("--partition=file --path={in}/a", "expected a partition", makes=file("a")),
    Row("--partition=file --path={in}/a --num_clients=-1", "--num_clients=-1: expected a whole"),
    Row("--dataset=pfllib --data_dir={in}", "Expected 0.npz, 1.npz, ... without a gap"),
    Row("--dataset=pfllib", "'pfllib' is read from files: pass data_dir"),
    Row("--save_initial_weights=a.txt", "expected a file that ends with .npz"),
    Row("--save_initial_weights=a.npz --start_from=b.npz", "are in a file already"),
    Row("--start_from=/does/not/exist.npz", "There is no /does/not/exist.npz: write it with"),
    Row("--start_from={in}/a.npz", "a.npz is damaged", makes=file("a.npz")),
    Row("--partition_seed=-1", "--partition_seed=-1: expected a whole number from 0"),
    Row("--model_seed=1.5", "--model_seed=1.5: expected a whole number"),
    Row("--config=/does/not/exist.yaml", "--config=/does/not/exist.yaml cannot be read"),
    Row("--config={in}/a", "cannot be read: while parsing", makes=file("a", b"a: [b")),
    Row("--config={in}/a", "cannot be read: maximum rec", makes=file("a", b"a: " + b"[" * 3000)),
    Row("--config={in}/a", "expected settings by name", makes=file("a", b"- a")),
    Row(
        "--config={in}/a",
        "/a: roundz: there is no such setting (--help lists all). Did you mean rounds?",
        makes=file("a", b"roundz: 3"),
    ),
    Row("--config={in}/a", "a: rounds=0: expected a whole number", makes=file("a", b"rounds: 0")),
    Row("--config={in}/a", "a: rounds=True: expected a whole", makes=file("a", b"rounds: true")),
    Row("--method=ifca --num_clusters=100000", "expected a whole number from 1 to 1000"),
    Row("--method=fed_dyn --proximal_strength=1e-38", "expected a number above 0"),
    Row("--plugin=/does/not/exist.py", "there is no such file"),
    Row(
        "--plugin={in}/names.py",
        "A method's name has letters, digits and _; found '../x'",
        makes=file("names.py", b"from tff_het.methods import METHODS\nMETHODS.register('../x', 1)"),
    ),
    Row("--plugin=no_such_module", "--plugin=no_such_module cannot be imported"),
    Row("--plugin={in}/bad_plugin.py", "SyntaxError", makes=file("bad_plugin.py", b"a b")),
    Row("--plugin={in}/exits.py", "SystemExit", makes=file("exits.py", b"raise SystemExit(0)")),
    Row("--plugin=/does/not/exist/json.py", "there is no such file"),
    Row("--plugin={in}/json.py", "rename it, json names another", makes=file("json.py", b"")),
    Row("--plugin={in}/my.method.py", "rename it", makes=file("my.method.py", b"")),
    Row("--dirichlet_alpha=0.5", "Did you mean: dirichlet.alpha ?"),
    Row("--output_dir=", "--output_dir is empty: name a folder"),
    Row(_QUICK + " --output_dir={in}/a", "{in}/a", makes=file("a")),
    Row(_QUICK + " --output_dir={in}/a/b", "{in}/a", makes=file("a")),
    Row(_QUICK + " --output_dir=/proc/nowhere", "/proc/nowhere"),
    Row("--flagfile={in}/flags", "utf-8", makes=file("flags", bytes(range(256)))),
    Row("--flagfile={in}", "{in}"),
    Row(_ONE, code=WORKS, request={"env": {"MPLBACKEND": "foo"}}),
    Row(_ONE + " --output_dir={in}/caf\xe9_\u2713", code=WORKS),
]


# --- Runs that are there already --------------------------------------------------------------

RUN = pathlib.Path()  # A finished run of these flags; the test puts its folder here.
RUN_FLAGS = "--method=fed_avg --rounds=2"
_GOES_ON = "--method=fed_avg --rounds=3 --output_dir={in}/run"
_STARTS = "--method=hdafl --rounds=1 --start_from={in}/run/fed_avg"


def run(change: Callable[[pathlib.Path], Any] = lambda folder: None) -> Maker:
    """Makes a finished run of FedAvg, changed."""

    def make(folder: pathlib.Path) -> None:
        shutil.copytree(RUN, folder / "run")
        change(folder / "run" / "fed_avg")

    return make


def sql(statement: str) -> Maker:
    """Makes a run whose checkpoint file was edited."""

    def change(folder: pathlib.Path) -> None:
        path = folder / "checkpoints" / "run.sqlite"
        with contextlib.closing(sqlite3.connect(path)) as db, db:
            assert db.execute(statement).rowcount != 0

    return run(change)


def weights(**changes: Any) -> Maker:
    """Makes a run whose weights were changed; None: left out. In names, `__` is a slash."""

    def change(folder: pathlib.Path) -> None:
        with np.load(folder / "weights.npz") as saved:
            arrays = dict(saved)
        for name, value in changes.items():
            path = name.replace("__", "/")
            assert path in arrays
            arrays[path] = value(arrays[path]) if callable(value) else np.asarray(value)
        np.savez(folder / "weights.npz", **arrays)

    return run(change)


def cut(name: str, share: float = 0.5) -> Maker:
    """Makes a run of which a file lost its end."""

    def change(folder: pathlib.Path) -> None:
        data = (folder / name).read_bytes()
        (folder / name).write_bytes(data[: int(share * len(data))])

    return run(change)


def text(name: str, content: str) -> Maker:
    """Makes a run of which a file has other content."""
    return run(lambda folder: (folder / name).write_text(content))


_DAMAGED = "{in}/run/fed_avg/checkpoints/run.sqlite is damaged or no checkpoint file"
_WEIGHTS = "{in}/run/fed_avg/weights.npz is damaged"
RUNS = [
    Row(_GOES_ON, code=WORKS, makes=run()),
    Row(_GOES_ON + " --seed=1", "belongs to a run with other settings (", makes=run()),
    Row(_GOES_ON.replace("3", "1"), "has 2 rounds already, more than the 1", makes=run()),
    Row(_GOES_ON, _DAMAGED, makes=cut("checkpoints/run.sqlite")),
    Row(_GOES_ON, _DAMAGED, makes=text("checkpoints/run.sqlite", "Not SQLite. " * 999)),
    *(
        Row(_GOES_ON, _DAMAGED, makes=sql(statement))
        for statement in (
            "UPDATE rows SET value = replace(value, '1', '2') WHERE round = 1",
            "UPDATE rows SET round = 7 WHERE round = 1 AND owner = 'metrics'",
            "UPDATE rows SET value = 17",
            "UPDATE rows SET value = NULL",
            "DELETE FROM rows WHERE round = 1",
            "DELETE FROM clients WHERE owner = 2",
            "UPDATE blocks SET checksums = zeroblob(1024)",
            "DELETE FROM blocks",
            "UPDATE servers SET state = zeroblob(10)",
            "UPDATE servers SET state = 'text'",
            "UPDATE servers SET round = 1000000 WHERE round = 2",
            "UPDATE about SET value = '{}' WHERE key = 'config'",
            "UPDATE about SET value = NULL WHERE key = 'config'",
            "DROP TABLE servers",
            "DROP TABLE rows",
            "DROP TABLE blocks",
            "ALTER TABLE rows ADD COLUMN more",
        )
    ),
    Row(_GOES_ON, "a value differs", FAILS, makes=sql("UPDATE clients SET value = zeroblob(9)")),
    Row(_GOES_ON, "has format 2, this", makes=sql("UPDATE about SET value = 2 WHERE key='format'")),
    Row(_STARTS, code=WORKS, makes=run()),
    Row(_STARTS, _WEIGHTS, makes=cut("weights.npz")),
    Row(_STARTS, _WEIGHTS, makes=text("weights.npz", "")),
    Row(_STARTS, _WEIGHTS, makes=weights(rounds=[1, 2])),
    Row(_STARTS, _WEIGHTS, makes=weights(rounds=-1)),
    Row(_STARTS, _WEIGHTS, makes=weights(rounds=1.5)),
    Row(_STARTS, _WEIGHTS, makes=weights(rounds=2**40)),
    *(
        Row(_STARTS, _WEIGHTS, makes=weights(output__bias=change))
        for change in (
            lambda old: old * np.nan,
            lambda old: old + np.inf,
            lambda old: old.astype(str),
            lambda old: old.astype(np.int64),
            lambda old: old + 1j,
            lambda old: old.astype(object),
        )
    ),
    Row(_STARTS, "Variable output/bias has shape (10,)", makes=weights(output__bias=np.zeros(3))),
    Row(_STARTS + " --model=mlp", "Start from a run with the same network", makes=run()),
    Row(_STARTS, "{in}/run/fed_avg/summary.json", makes=text("summary.json", "{")),
    Row(_STARTS, "{in}/run/fed_avg/summary.json", makes=text("summary.json", "[1]")),
    Row(_STARTS, "{in}/run/fed_avg/summary.json", makes=text("summary.json", "{}")),
    Row(_STARTS, "summary.json", makes=run(lambda folder: (folder / "summary.json").unlink())),
    Row("--start_from={in}", "There is no {in}/weights.npz: a run that training starts from"),
]


# --- Data -------------------------------------------------------------------------------------


def npz(**changes: Any) -> Maker:
    """Makes a data set of the user's, of which arrays are changed; None: left out."""
    arrays = {
        "x_train": np.linspace(0, 1, 240, dtype=np.float32).reshape(60, 4),
        "y_train": np.arange(60) % 3,
        "x_test": np.linspace(0, 1, 120, dtype=np.float32).reshape(30, 4),
        "y_test": np.arange(30) % 3,
    }

    def make(folder: pathlib.Path) -> None:
        made = {
            name: change(arrays[name]) if callable(change) else change
            for name, change in {**arrays, **changes}.items()
        }
        np.savez(folder / "data.npz", **{k: v for k, v in made.items() if v is not None})

    return make


def huge_npz(folder: pathlib.Path) -> None:
    """Makes a data set whose header claims 10^12 values."""
    npz()(folder)
    header = io.BytesIO()
    form = {"descr": "<f8", "fortran_order": False, "shape": (10**12,)}
    np.lib.format.write_array_header_1_0(header, form)
    with (
        zipfile.ZipFile(folder / "data.npz") as good,
        zipfile.ZipFile(folder / "huge.npz", "w") as bad,
    ):
        for name in good.namelist():
            bad.writestr(name, header.getvalue() if name == "x_train.npy" else good.read(name))
    (folder / "huge.npz").replace(folder / "data.npz")


def leaf(change: Callable[[dict], Any] | str) -> Maker:
    """Makes FEMNIST as LEAF writes it, its training file changed: by a function, or to a text."""

    def make(folder: pathlib.Path) -> None:
        writers = {f"w{k}": {"x": [[0.5] * 784] * 3, "y": [0, 1, 2]} for k in range(4)}
        content = {"users": [*writers], "num_samples": [3] * 4, "user_data": writers}
        for split in ("test", "train"):
            if split == "train" and not isinstance(change, str):
                change(content)
            text = change if split == "train" and isinstance(change, str) else json.dumps(content)
            file(f"femnist/{split}/all_data.json", text.encode())(folder)

    return make


def drawings(**changes: Any) -> Maker:
    """Makes Omniglot, of which arrays are changed."""

    def make(folder: pathlib.Path) -> None:
        label, writer = np.meshgrid(np.arange(5), np.arange(10))
        arrays = {"label": label.ravel(), "writer": writer.ravel(), "alphabet": np.zeros(50, int)}
        (folder / "omniglot").mkdir()
        path = folder / "omniglot" / "omniglot_small28.npz"
        np.savez(path, **{"x": np.zeros((50, 28, 28), np.uint8), **arrays, **changes})

    return make


def flows(line: str) -> Maker:
    """Makes network traffic with one more line."""
    head = ",".join([*(f"p{i}" for i in range(10)), "label", "network"])
    lines = [f"{k},2,3,4,5,6,7,8,9,10,app{k % 2},{k % 2}" for k in range(40)]
    return file("traffic/flows_first10.csv", "\n".join([head, *lines, line]).encode())


NPZ = "--dataset=npz --data_dir={in}/data.npz --partition=iid --num_clients=3 --model=mlp"
LEAF = "--dataset=femnist --data_dir={in} --num_clients=2"
_LEAF_FILE = "{in}/femnist/train/all_data.json"
OMNIGLOT = "--dataset=omniglot --data_dir={in} --partition=iid --num_clients=2"
TRAFFIC = "--dataset=traffic --data_dir={in}"
_PACKETS = "1,2,3,4,5,6,7,8,9,"
DATA = [
    Row(NPZ + " --rounds=1", code=WORKS, makes=npz()),
    Row(NPZ + " --rounds=1", code=WORKS, makes=npz(class_names=np.array(["$x_{$", "$", "a"]))),
    *(
        Row(NPZ, says, makes=npz(**changes))
        for changes, says in (
            ({"y_train": lambda y: y + 2**32}, "y_train from -2147483648 to 2147483647; found 429"),
            ({"y_test": lambda y: y - 2**40}, "y_test from -2147483648 to 2147483647; found -109"),
            ({"y_train": lambda y: y + 0.5}, "y_train as integers [n]; found float64 [60]"),
            ({"y_train": lambda y: y[:, None]}, "y_train as integers [n]; found int64 [60, 1]"),
            ({"y_train": lambda y: y + 2_000_000_000}, "labels from 0 on, at most 99999"),
            ({"y_train": lambda y: y + 1, "y_test": lambda y: y + 1}, "found 1 to 3; number the"),
            ({"y_train": lambda y: y - 1}, "labels from 0 on"),
            ({"y_train": lambda y: y[:0]}, "y_train as integers [n], n > 0"),
            ({"y_train": None}, "arrays ['x_train', 'y_train', 'x_test', 'y_test']; found only"),
            (
                {"x_train": np.zeros((60, 0), np.float32)},
                "must hold something; found shape",
            ),
            ({"x_train": np.zeros((60, 0, 2, 1), np.float32)}, "found shape [60, 0, 2, 1]"),
            ({"x_train": np.float32(1)}, "column 'x' must be a NumPy array [n, ...]"),
            ({"x_train": np.full((60, 4), 1e300)}, "must hold finite numbers"),
            ({"x_train": np.full((60, 4), np.nan)}, "must hold finite numbers"),
            ({"x_train": np.full((60, 4), "a")}, "must hold numbers or booleans"),
            ({"x_train": np.full((60, 4), None)}, "without pickled objects"),
            (
                {"class_names": np.array(["a", "a", "b"])},
                "different and not empty; found 'a' twice",
            ),
            (
                {"class_names": np.array(["a", "", "b"])},
                "different and not empty; found ''",
            ),
            ({"class_names": np.array("abc")}, "class_names as text [n]; found <U3 []"),
            ({"class_names": np.array(["a"])}, "labels must be 0..0"),
        )
    ),
    Row(NPZ, "{in}/data.npz", makes=huge_npz),
    Row(NPZ, "{in}/data.npz", makes=file("data.npz", b"PK\x03\x04")),
    Row(NPZ, "{in}/data.npz", makes=file("data.npz", b"")),
    *(
        Row(LEAF, _LEAF_FILE, makes=leaf(change))
        for change in (
            "",
            "{",
            "[1]",
            "[" * 100_000,
            "\udcff".encode(errors="surrogateescape").decode("latin1"),
            lambda c: c.update(users=None),
            lambda c: c.update(users=[1, "a", "b", "c"]),
            lambda c: c.update(users={"w0": 1}),
            lambda c: c.update(num_samples=None),
            lambda c: c.update(num_samples=["3"] * 4),
            lambda c: c.update(user_data=[1]),
            lambda c: c["user_data"].update(w0=None),
            lambda c: c["user_data"]["w0"].update(y=[2**32, 1, 2]),
            lambda c: c["user_data"]["w0"].update(y=[10**30, 1, 2]),
            lambda c: c["user_data"]["w0"].update(y=[0.5, 1, 2]),
            lambda c: c["user_data"]["w0"].update(y=["0", 1, 2]),
            lambda c: c["user_data"]["w0"].update(y=None),
            lambda c: c["user_data"]["w0"].update(x=[[10**400] * 784] * 3),
            lambda c: c["user_data"]["w0"].update(x=[[float("nan")] * 784] * 3),
        )
    ),
    *(
        Row(OMNIGLOT, says, makes=drawings(**changes))
        for changes, says in (
            (
                {"label": np.arange(50) % 5 + 2**32},
                "label from -2147483648 to 2147483647",
            ),
            ({"writer": np.full(50, 2.5)}, "writer as integers [50]; found float64"),
            ({"label": np.arange(50) % 5 + 1}, "labels from 0 on, at most 99999; found 1 to 5"),
            ({"char_names": np.array("abcde")}, "char_names as text [n]; found <U5 []"),
            ({"x": np.uint8(1)}, "x uint8 [n, 28, 28], n > 0; found uint8 []"),
        )
    ),
    *(
        Row(TRAFFIC, says, makes=flows(line))
        for line, says in (
            (_PACKETS + f"10,app,{2**40}", "networks from -2147483648 to 2147483647; found 1099"),
            (
                _PACKETS + "9" * 30 + ",app,0",
                "10 whole numbers, a label and a whole",
            ),
            (_PACKETS + "10,,0", "10 whole numbers, a label and a whole number in line 42"),
            (_PACKETS + "1.5,app,0", "10 whole numbers, a label and a whole number in line 42"),
            (_PACKETS + "40000,app,0", "flows of lengths -32768..32767; found 0..40000"),
        )
    ),
    Row("--dirichlet.alpha=1e-308 --partition=dirichlet", "expected a number from 1e-06"),
    Row(_ONE + " --dirichlet.alpha=1e-6 --partition=dirichlet", code=WORKS),
    Row("--dataset=mnist --data_dir={in}", "Expected train-images-idx3-ubyte.gz"),
]


# --- Tables, comparisons, reports -------------------------------------------------------------

_TABLE, _SWEEP, _REPORT = "experiments.reproduce", "experiments.sweep", "experiments.report"
_HETEROGENEITY, _BOARD = "experiments.heterogeneity", "experiments.boards.enter"
MATRIX_FLAGS = "--over=method=fed_avg --set=partition=iid --seeds=1 --set=rounds=1 --jobs=1"
_AGAIN = MATRIX_FLAGS + " --output_dir={in}/out"
MATRIX = pathlib.Path()  # What a sweep made with these flags; the test puts its folder here.


def matrix(change: Callable[[dict], Any] | str) -> Maker:
    """Makes a sweep whose `result.json` was changed: to a text, or by a function."""

    def make(folder: pathlib.Path) -> None:
        shutil.copytree(MATRIX, folder / "out")
        (path,) = (folder / "out").rglob("result.json")
        if not isinstance(change, str):
            record = json.loads(path.read_text())
            change(record)
            path.write_text(json.dumps(record))
        else:
            path.write_text(change)

    return make


PROGRAMS = [
    Row("--over=q=uniform:0:inf", "--over takes uniform:LOW:HIGH", program=_SWEEP),
    Row("--runtime=ray", "programs of many runs have --engine=ray", program=_SWEEP),
    Row("--engine=slurm", "--engine=slurm", program=_SWEEP),
    Row("--jobs=0", "--jobs=0: expected a whole number", program=_SWEEP),
    Row("--over=dataset=nope", "--dataset=nope: should be one of", program=_SWEEP),
    Row("--over=method=hdafl,hdafl", "all once; found 'method=hdafl,hdafl'", program=_SWEEP),
    Row("--over=method=hdafl --set=rounds", "--set takes name=value", program=_SWEEP),
    Row("--over=rounds=1,2 --set=rounds=3", "all once and not in --over", program=_SWEEP),
    Row("--over=seed=1 --set=rounds=1 --set=rounds=2", "all once", program=_SWEEP),
    Row(
        "--over=method=hdafl --set=seed=3",
        "A study itself gives its runs the flags seed",
        program=_SWEEP,
    ),
    Row(
        "--over=rounds=1 --set=runtime=worker",
        "A study itself gives its runs the flags runtime",
        program=_SWEEP,
    ),
    Row("--over=rounds=1 --set=method=hdafl,fed_avg", "has one method", program=_SWEEP),
    Row(
        "--over=method=hdafl --output_dir=",
        "--output_dir is empty: name a folder",
        program=_SWEEP,
    ),
    Row(MATRIX_FLAGS + " --output_dir={in}/a", "{in}/a", program=_SWEEP, makes=file("a")),
    *(
        Row(
            f"{MATRIX_FLAGS} --output_dir={{in}}/out",
            "result.json",
            program=_SWEEP,
            makes=matrix(change),
        )
        for change in (
            "",
            "{",
            "[]",
            '{"status": "ok"}',
            lambda record: record.pop("metrics"),
            lambda record: record["metrics"].update(local_test_accuracy_mean=0.99),
            lambda record: record.update(status="failed"),
        )
    ),
    Row("", "Name a table or figure, such as", program=_TABLE),
    Row(
        "hdafl.table99",
        "(`python -m experiments.list experiments` shows all); found",
        program=_TABLE,
    ),
    Row("experiments.hdafl.table3", "found experiments.hdafl.table3", program=_TABLE),
    Row("hdafl.table3 --scale=huge", "--scale=huge", program=_TABLE),
    Row("hdafl.table3 --seeds=0", "--seeds=0: expected a whole number", program=_TABLE),
    Row("hdafl.table3 --model=mlp", "Unknown command line flag 'model'", program=_TABLE),
    Row("hdafl.table3 positional", "Not a flag: positional", program=_TABLE),
    Row("hdafl.table3 --output_dir=", "--output_dir is empty: name a folder", program=_TABLE),
    Row(
        "hdafl.table3 --scale=smoke --output_dir={in}/a",
        "{in}/a",
        program=_TABLE,
        makes=file("a"),
    ),
    Row("boards.fair", "boards.fair has no scale quick, only smoke", program=_TABLE),
    Row("--setting=nope", "--setting is one of FMNIST", program=_BOARD),
    Row("--own=strength", "--own takes name=value", program=_BOARD),
    Row("--method=fed_avg", "--method names a method of --plugin; found", program=_BOARD),
    Row("--method=centralized", "--method names a method of --plugin; found", program=_BOARD),
    Row("", "There are no runs in {out}", program=_REPORT),
    *(
        Row(flags, "--check and --carry go alone", program=_REPORT)
        for flags in ("--check", "--carry", "--stale --merge")
    ),
    Row("--data_dir=a", "--data_dir is for --carry", program=_REPORT),
    Row("--output_dir=", "--output_dir is empty", program=_REPORT),
    Row("--rounds=1", "Unknown command line flag 'rounds'", program=_REPORT),
    Row("--partition=nope", "--partition=nope", program=_HETEROGENEITY),
    Row(
        "--num_clients=1 --partition=iid",
        "Two clients or more are needed",
        program=_HETEROGENEITY,
    ),
    Row(
        "--partition=iid --output_dir={in}/a",
        "{in}/a",
        program=_HETEROGENEITY,
        makes=file("a"),
    ),
]


# --- Ctrl-C and full disks --------------------------------------------------------------------

_TWO = "--method=fed_avg,hdafl --rounds=1"
STOPS = [
    *(
        Row(_TWO, "Stopped: the same command goes on", STOPPED, request={"interrupt": function})
        for function in (
            "experiments.run.setup:make",
            "experiments.run.processes:build",
            "experiments.run.comparison:describe",
            "experiments.run.summary:of_run",
            "tff_het.simulation.start:write",
            "experiments.run.comparison:write",
        )
    ),
    *(
        Row(
            MATRIX_FLAGS,
            "Stopped: the same command goes on",
            STOPPED,
            _SWEEP,
            request={"interrupt": f},
        )
        for f in ("experiments.study.runner:plan", "experiments.run.one:train_method")
    ),
    *(
        Row(_TWO, "{out}", FAILS, request={"max_file_bytes": size})
        for size in (4_000, 10_000, 20_000, 40_000, 80_000)
    ),
    *(
        Row(
            MATRIX_FLAGS,
            "/run.sqlite cannot be written",
            FAILS,
            _SWEEP,
            request={"max_file_bytes": size},
        )
        for size in (4_000, 20_000)
    ),
]

ROWS = [*FLAGS, *NUMBERS, *PLACES, *RUNS, *DATA, *PROGRAMS, *STOPS]
