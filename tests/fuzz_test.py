"""Files with a flipped bit or without their end: refused, or the same bytes as with whole ones."""

import gzip
import json
import os
import pathlib
import shutil
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import bad_inputs
import numpy as np
import pytest
import tensorflow as tf
from programs import Programs

from embeddings import records
from embeddings.examples import Item
from tff_het.datasets import embedding_files

CASES = int(os.environ.get("TFF_HET_FUZZ_CASES", "70"))
SECONDS, MEGABYTES = 30.0, 2000.0
TRAIN = ["-m", "experiments.train", "--method=fed_avg"]
SWEEP = ["-m", "experiments.sweep", *bad_inputs.MATRIX_FLAGS.split()]


class Kind(NamedTuple):
    """Files of one kind, and the program that reads them.

    Attributes:
      makes: Makes data in a folder.
      flags: Name the data.
      begins: The command that leaves what is damaged.
      reads: The command that is given with the damage.
      damaged: What is damaged, as a pattern of paths in the folder.
      same: What has to be the same, likewise.
    """

    makes: bad_inputs.Maker
    flags: str
    begins: Sequence[str]
    reads: Sequence[str]
    damaged: str
    same: Sequence[str] = (
        "out/*/metrics.csv",
        "out/*/clients.csv",
        "out/*/summary.json",
        "out/*/weights.npz",
    )


def _nothing(folder: pathlib.Path) -> None:
    pass


def _goes_on(damaged: str, makes: bad_inputs.Maker = _nothing, flags: str = "") -> Kind:
    """A run of two rounds that goes on to a third."""
    return Kind(makes, flags, [*TRAIN, "--rounds=2"], [*TRAIN, "--rounds=3"], damaged)


def _idx(folder: pathlib.Path) -> None:
    """Makes MNIST of few images."""
    (folder / "mnist").mkdir()
    for prefix, count in (("train", 40), ("t10k", 20)):
        for name, content in (
            ("images-idx3", np.arange(count * 784, dtype=np.uint32).reshape(count, 28, 28)),
            ("labels-idx1", np.arange(count) % 10),
        ):
            head = bytes([0, 0, 8, content.ndim]) + np.array(content.shape, ">u4").tobytes()
            data = gzip.compress(head + content.astype(np.uint8).tobytes(), mtime=0)
            (folder / "mnist" / f"{prefix}-{name}-ubyte.gz").write_bytes(data)


def _pfllib(folder: pathlib.Path) -> None:
    """Makes two clients' files as PFLlib writes them."""
    for split, count in (("train", 20), ("test", 10)):
        (folder / split).mkdir()
        for client in range(2):
            labels = np.arange(count) % 4
            x = np.full((count, 3), client, np.float32) + labels[:, None].astype(np.float32)
            # PFLlib's arrays are dictionaries.
            whole: Any = {"x": x, "y": labels}
            np.savez_compressed(folder / split / f"{client}.npz", data=whole)


def _embedded(folder: pathlib.Path) -> None:
    """Makes embeddings, as a job of `embeddings` leaves them."""
    (folder / "embedded").mkdir()
    items = [
        Item(f"{split}/{i:02}", "ab"[i % 2], split, "s")
        for split in ("test", "train")
        for i in range(20)
    ]
    written = [
        records.serialize(item, np.arange(4, dtype=np.float32) + n) for n, item in enumerate(items)
    ]
    with tf.io.TFRecordWriter(str(folder / "embedded" / "embeddings.tfrecord")) as writer:
        for record in written:
            writer.write(record)
    metadata = {
        "format": embedding_files.FORMAT,
        "model": "image",
        "dimension": 4,
        "class_names": ["a", "b"],
        "sources": ["s"],
        "counts": {split: {"a": 10, "b": 10} for split in ("test", "train")},
        "checksum": embedding_files.checksum_text(embedding_files.checksum(written)),
        "files": {"embeddings.tfrecord": len(written)},
    }
    (folder / "embedded" / "metadata.json").write_text(json.dumps(metadata))


_FLAGFILE = b"--partition=iid\n--num_clients=4\n--batch_size=16\n--client_learning_rate=0.05\n"
_FLAGFILE += b"--eval_every=1\n--seed=3\n"
_YAML = _FLAGFILE.replace(b"--", b"").replace(b"=", b": ")
_IID = "--data_dir={in} --partition=iid --num_clients=2 --dataset="
_STARTS = ["-m", "experiments.train", "--method=hdafl", "--rounds=1"]
KINDS = {
    "checkpoints": _goes_on("out/fed_avg/checkpoints/run.sqlite"),
    "files of a run": _goes_on("out/fed_avg/*.*"),
    "npz": _goes_on("in/data.npz", bad_inputs.npz(), bad_inputs.NPZ),
    "LEAF": _goes_on("in/femnist/*/*", bad_inputs.leaf(_nothing), bad_inputs.LEAF),
    "Omniglot": _goes_on("in/omniglot/*", bad_inputs.drawings(), bad_inputs.OMNIGLOT),
    "traffic": _goes_on("in/traffic/*", bad_inputs.flows(""), bad_inputs.TRAFFIC),
    "idx": _goes_on("in/mnist/*", _idx, _IID + "mnist"),
    "PFLlib": _goes_on(
        "in/t*/*.npz",
        _pfllib,
        "--data_dir={in} --dataset=pfllib --partition=groups --num_clients=0 --model=mlp",
    ),
    "embedded": _goes_on("in/embedded/*", _embedded, _IID + "embedded"),
    "flagfile": _goes_on(
        "in/a.flags", bad_inputs.file("a.flags", _FLAGFILE), "--flagfile={in}/a.flags"
    ),
    "YAML": _goes_on("in/a.yaml", bad_inputs.file("a.yaml", _YAML), "--config={in}/a.yaml"),
    "split": Kind(
        _nothing,
        "",
        [*TRAIN, "--rounds=1", "--output_dir={in}/run"],
        [*TRAIN, "--rounds=1", "--partition=file", "--file.path={in}/run/partition.npz"],
        "in/run/partition.npz",
    ),
    "start": Kind(
        _nothing,
        "",
        [*TRAIN, "--rounds=2", "--output_dir={in}/run"],
        [*_STARTS, "--start_from={in}/run/fed_avg"],
        "in/run/fed_avg/[ws]*",
    ),
    "results": Kind(_nothing, "", SWEEP, SWEEP, "out/sweep/runs/**/*.*", ("out/sweep/*.*",)),
}


@pytest.fixture(scope="module")
def forks() -> Iterator[Programs]:
    started = Programs()
    yield started
    started.close()


class Prepared(NamedTuple):
    """A folder in which a command was begun, and what it ends with undisturbed."""

    folder: pathlib.Path
    whole: dict[str, bytes]


def run(forks: Programs, kind: Kind, command: Sequence[str], folder: pathlib.Path):
    words = [*command[:2], *kind.flags.split(), *command[2:]]  # A flagfile comes first.
    argv = [word.replace("{in}", str(folder / "in")) for word in words]
    if not any("--output_dir" in word for word in argv):
        argv.append(f"--output_dir={folder / 'out'}")
    return forks.run(argv, folder)


def content(folder: pathlib.Path, patterns: Sequence[str]) -> dict[str, bytes]:
    paths = [path for pattern in patterns for path in folder.glob(pattern)]
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


@pytest.fixture(scope="module")
def prepared(forks, tmp_path_factory) -> dict[str, Prepared]:
    found = {}
    for name, kind in KINDS.items():
        folder = tmp_path_factory.mktemp("kind")
        (folder / "begun" / "in").mkdir(parents=True)
        kind.makes(folder / "begun" / "in")
        ended = run(forks, kind, kind.begins, folder / "begun")
        assert ended.code == 0, ended.printed
        shutil.copytree(folder / "begun", folder / "whole")
        place(folder / "whole", folder)
        found[name] = Prepared(folder, finish(forks, kind, folder))
    return found


def place(source: pathlib.Path, folder: pathlib.Path) -> pathlib.Path:
    """Puts a copy where all runs of a kind are: some files name their folder."""
    shutil.rmtree(folder / "at", ignore_errors=True)
    shutil.copytree(source, folder / "at")
    return folder / "at"


def finish(forks: Programs, kind: Kind, folder: pathlib.Path) -> dict[str, bytes]:
    ended = run(forks, kind, kind.reads, folder / "at")
    assert ended.code == 0, ended.printed
    return content(folder / "at", kind.same)


def damage(data: bytes, rng: np.random.Generator) -> bytes:
    place = int(rng.integers(max(len(data), 1)))
    if not data or rng.random() < 0.25:
        return data[:place]
    return data[:place] + bytes([data[place] ^ (1 << int(rng.integers(8)))]) + data[place + 1 :]


@pytest.mark.slow
@pytest.mark.parametrize("case", range(CASES))
def test_damage_is_refused_or_harmless(case, forks, prepared):
    rng = np.random.default_rng(case)
    name = list(KINDS)[case % len(KINDS)]
    kind, (folder, whole) = KINDS[name], prepared[name]
    at = place(folder / "begun", folder)
    paths = sorted(path for path in at.glob(kind.damaged) if path.is_file())
    path = paths[int(rng.integers(len(paths)))]
    path.write_bytes(damage(path.read_bytes(), rng))
    ended = run(forks, kind, kind.reads, at)
    where = f"{name}, {path.relative_to(at)}: {ended}"
    print(where)
    assert "Traceback" not in ended.printed, where
    assert ended.seconds < SECONDS and ended.megabytes < MEGABYTES, where
    if ended.code == 0:
        assert content(at, kind.same) == whole, where
    else:
        assert ended.code in (1, 2) and "error: " in ended.printed, where
