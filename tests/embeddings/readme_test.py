"""The commands of embeddings/README.md run, from the first to the last.

What they name and is not here has a small stand-in: networks, clips, images.
"""

import json
import pathlib
import re
import shlex
import subprocess

import numpy as np
import pytest
import tensorflow as tf

pytest.importorskip("apache_beam")
pytest.importorskip("soxr")
soundfile = pytest.importorskip("soundfile")

from embeddings import extract  # noqa: E402 (needs what may not be installed)
from experiments.run import one  # noqa: E402
from experiments.run.config import RunConfig  # noqa: E402
from tff_het import datasets  # noqa: E402
from tff_het.simulation import runtime  # noqa: E402

README = (pathlib.Path(__file__).parents[2] / "embeddings" / "README.md").read_text()
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
COMMANDS = [
    shlex.split(line)
    for language, text in BLOCKS
    if language == "sh"
    for line in text.replace("\\\n", " ").splitlines()
]
# Named in the README -> what takes its place: folders that `stand_ins` writes, a smaller data set.
STAND_INS = {
    "--module=https://tfhub.dev/google/yamnet/1": "--module=YAMNET",
    "--module=https://tfhub.dev/google/imagenet/inception_v3/feature_vector/5": "--module=IMAGES",
    "--module=MOBILENET_V2": "--module=IMAGES",
    "--dataset=cifar10": "--dataset=digits",
}
# One method, and as many clients as there are clips for.
CUT_DOWN = {"method": "fed_avg", "rounds": "1", "num_clients": "2"}


class MeanColour(tf.Module):
    """A network of TF-Hub's image interface, for images of any size."""

    @tf.function(input_signature=[tf.TensorSpec([None, None, None, 3], tf.float32)])
    def __call__(self, images):
        return tf.reduce_mean(images, axis=[1, 2])


@pytest.fixture
def stand_ins(tmp_path, monkeypatch, yamnet):
    """All that the commands read, in the folder that they are given in."""
    monkeypatch.chdir(tmp_path)
    pathlib.Path("YAMNET").symlink_to(yamnet)
    tf.saved_model.save(MeanColour(), "IMAGES")
    rng = np.random.default_rng(0)
    fsd = pathlib.Path("FSDKaggle2018")
    (fsd / "FSDKaggle2018.meta").mkdir(parents=True)
    lists = {"train": "train_post_competition", "test": "test_post_competition_scoring_clips"}
    for split, name in lists.items():
        (fsd / f"FSDKaggle2018.audio_{split}").mkdir()
        lines = ["fname,label"]
        for clip in range(40):
            path = fsd / f"FSDKaggle2018.audio_{split}" / f"{clip}.wav"
            soundfile.write(path, rng.uniform(-1, 1, 16_000), 16_000)
            lines.append(f"{path.name},{('Cough', 'Bark')[clip % 2]}")
        (fsd / "FSDKaggle2018.meta" / f"{name}.csv").write_text("\n".join(lines))
    packed, easy = pathlib.Path("packed"), pathlib.Path("DIR/easy_vqa")
    easy.mkdir(parents=True)
    for split in ("train", "test"):
        (packed / "data" / split / "images").mkdir(parents=True)
        image = tf.io.encode_png(rng.integers(0, 256, (9, 9, 3), dtype=np.uint8)).numpy()
        (packed / "data" / split / "images" / "0.png").write_bytes(image)
        (packed / "data" / split / "questions.json").write_text('[["is it red?", "no", 0]]')
    (packed / "data" / "answers.txt").write_text("no\nyes\n")
    subprocess.run(["tar", "-czf", easy / "easy_vqa.tar.gz", "-C", packed, "."], check=True)


def run(words: list[str]) -> None:
    """Runs one command as it stands, but for what has a stand-in."""
    if words[0] == "tar":
        subprocess.run(words, check=True)
        return
    start = words.index("-m")
    assert " ".join(words[:start]) in ("uv run python", "uv run --extra embeddings python")
    program, *flags = [STAND_INS.get(word, word) for word in words[start + 1 :]]
    if program == "embeddings.extract":
        assert extract.main([program, *flags]) == 0
        return
    assert program == "experiments.train"
    values = dict(flag.removeprefix("--").split("=") for flag in flags)
    with runtime.use("in_process"):
        one.run(RunConfig.of(**{**values, **CUT_DOWN}), pathlib.Path("run")).close()


@pytest.mark.slow
def test_commands_run(stand_ins):
    for words in COMMANDS:
        run(words)
    assert (
        json.loads(pathlib.Path("run/summary.json").read_text(encoding="utf-8"))["dataset"]
        == "fsd_cough"
    )
    assert datasets.load("cifar10_embeddings", "DIR").train["x"].shape[1:] == (3,)
    assert datasets.load("easy_vqa", "DIR").train["x"].shape == (1, 3)


def test_every_block_says_what_it_is():
    assert {language for language, _ in BLOCKS} == {"sh", "text"}
    assert README.count("```") == 2 * len(BLOCKS)


def test_stand_ins_are_of_what_is_named():
    assert STAND_INS.keys() <= {word for words in COMMANDS for word in words}
