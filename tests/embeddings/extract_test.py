"""The job as a program: what it leaves, that it can be repeated, and how it fails."""

import json
import os
import pathlib
import resource
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import tensorflow as tf

pytest.importorskip("apache_beam")
pytest.importorskip("soxr")
soundfile = pytest.importorskip("soundfile")

from embeddings import audio, extract, images, outputs  # noqa: E402 (needs what may not be installed)
from tff_het import datasets  # noqa: E402

ROOT = pathlib.Path(__file__).parents[2]
CLIPS = {  # name: (label, source, seconds); those of c have two channels and 22,050 Hz.
    "train": {
        f"{kind}{i}.wav": (kind, f"s{i % 2}", 1.0 + i / 3) for kind in "abc" for i in range(6)
    },
    "test": {f"t{kind}{i}.wav": (kind, "s0", 1.5) for kind in "abc" for i in range(2)},
}
SHORT = "b0.wav"


@pytest.fixture
def folder(tmp_path) -> pathlib.Path:
    """24 clips in the simple layout, one of them shorter than a patch."""
    root = tmp_path / "input"
    (root / "audio").mkdir(parents=True)
    rng = np.random.default_rng(0)
    for split, clips in CLIPS.items():
        lines = ["fname,label,source"]
        for name, (label, source, seconds) in clips.items():
            rate, channels = (22_050, 2) if label == "c" else (16_000, 1)
            samples = int(rate * (0.5 if name == SHORT else seconds))
            noise = rng.uniform(-1, 1, (samples, channels))
            soundfile.write(root / "audio" / name, noise, rate)
            lines.append(f"{name},{label},{source}")
        (root / f"{split}.csv").write_text("\n".join(lines) + "\n")
    return root


@pytest.fixture
def call(folder, yamnet, tmp_path, capsys):
    """Runs the program; gives its exit code, and what it printed but for the progress."""
    clips = f"--input={folder}"

    def run(*argv, output="out", source=clips):
        flags = [source, f"--module={yamnet}", "--model=yamnet"]
        code = extract.main(["extract", *flags, f"--output={tmp_path / output}", *argv])
        captured = capsys.readouterr()
        errors = [line for line in captured.err.splitlines() if line.startswith("error:")]
        return code, captured.out, "\n".join(errors)

    return run


def content(folder) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def metadata(folder) -> dict:
    return json.loads((folder / "metadata.json").read_text())


def raw_records(folder) -> list[tf.train.Example]:
    paths = sorted(map(str, folder.glob("*.tfrecord")))
    return [tf.train.Example.FromString(raw.numpy()) for raw in tf.data.TFRecordDataset(paths)]


def test_records_and_metadata(call, folder, tmp_path, yamnet, by_hand):
    code, out, err = call("--examples_per_shard=10")
    assert (code, err) == (0, "") and "24 embeddings of dimension 1024, skipped: none" in out
    made = tmp_path / "out"
    assert sorted(content(made)) == [
        *(f"embeddings-0000{i}-of-00003.tfrecord" for i in range(3)),
        "errors.jsonl",
        "metadata.json",
    ]
    about = metadata(made)
    assert about["class_names"] == ["a", "b", "c"] and about["sources"] == ["s0", "s1"]
    assert about["counts"] == {"test": dict.fromkeys("abc", 2), "train": dict.fromkeys("abc", 6)}
    assert (about["dimension"], about["num_examples"], about["padded"]) == (1024, 24, 1)
    assert about["skipped"] == {} and list(about["files"].values()) == [10, 10, 4]
    assert about["module"] == yamnet and len(about["module_fingerprint"]) == 64
    assert about["settings"] == {"sample_rate": 16_000, "short_clips": "pad"}

    loaded = tf.saved_model.load(yamnet)
    found = {}
    for record in raw_records(made):
        feature = record.features.feature
        texts = {k: feature[k].bytes_list.value[0].decode() for k in ("id", "label", "split")}
        split, name = texts["id"].split("/")
        label, source, _ = CLIPS[split][name]
        assert (split, label) == (texts["split"], texts["label"])
        assert feature["source"].bytes_list.value[0].decode() == source
        found[name] = np.array(feature["embedding"].float_list.value, np.float32)
    assert len(found) == 24
    for name, embedding in found.items():
        waveform = audio.decode((folder / "audio" / name).read_bytes())
        np.testing.assert_array_equal(embedding, by_hand(loaded, waveform))


def test_two_runs_are_the_same_bytes_and_shards_do_not_matter(call, tmp_path):
    assert call(output="one")[0] == call(output="two")[0] == 0
    assert content(tmp_path / "one") == content(tmp_path / "two")
    assert call("--examples_per_shard=7", "--batch_size=3", output="three")[0] == 0
    one, three = metadata(tmp_path / "one"), metadata(tmp_path / "three")
    assert len(three["files"]) == 4
    assert one["checksum"] == three["checksum"]


def test_the_result_is_a_data_set(call, tmp_path):
    assert call(output="embedded")[0] == 0
    data = datasets.load("embedded", tmp_path)
    assert data.train["x"].shape == (18, 1024) and data.test["x"].shape == (6, 1024)
    assert data.class_names == ("a", "b", "c")


def test_the_same_command_does_nothing(call, tmp_path, folder):
    assert call()[0] == 0
    before = (tmp_path / "out").stat().st_mtime_ns
    moved = shutil.move(folder, tmp_path / "elsewhere")
    code, out, _ = call(f"--input={moved}", "--batch_size=5")  # Does not define the result.
    assert code == 0 and "is complete: nothing to do" in out
    assert (tmp_path / "out").stat().st_mtime_ns == before


def test_another_result_is_replaced_on_demand_alone(call, tmp_path, folder):
    assert call()[0] == 0
    before = content(tmp_path / "out")
    code, _, err = call("--short_clips=skip")
    assert code == 2 and "different: settings" in err and "--overwrite" in err
    (folder / "audio" / "a0.wav").unlink()
    code, _, err = call()
    assert code == 2 and "different: input_fingerprint" in err
    assert content(tmp_path / "out") == before
    assert call("--short_clips=skip", "--overwrite", "--max_error_fraction=0.1")[0] == 0
    assert metadata(tmp_path / "out")["skipped"] == {"missing": 1, "too_short": 1}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["input", "out"]


def test_a_damaged_or_foreign_folder_is_not_taken_for_complete(call, tmp_path):
    assert call()[0] == 0
    next((tmp_path / "out").glob("*.tfrecord")).unlink()
    code, _, err = call()
    assert code == 2 and "is damaged" in err
    foreign = tmp_path / "thesis"
    foreign.mkdir()
    (foreign / "chapter").write_text("1")
    for more in ((), ("--overwrite",)):
        code, _, err = call(*more, output="thesis")
        assert code == 2 and "in the way" in err
    assert content(foreign) == {"chapter": b"1"}


@pytest.mark.parametrize("name", ["thesis", ".hidden", "more/chapter", "errors.jsonl/chapter"])
def test_only_embeddings_are_overwritten(call, tmp_path, name):
    assert call()[0] == 0
    path = tmp_path / "out" / name
    if path.parent.is_file():
        path.parent.unlink()
    path.parent.mkdir(exist_ok=True)
    path.write_text("1")
    code, _, err = call("--overwrite", "--short_clips=skip")
    assert code == 2 and f"found {name.split('/')[0]}" in err and path.read_text() == "1"


@pytest.mark.parametrize("text", ["{}", "[]", '{"files": {}}', '{"files": [1]}', '{"format": 1}'])
def test_a_folder_that_merely_has_metadata_is_not_overwritten(call, tmp_path, text):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "metadata.json").write_text(text)
    code, _, err = call("--overwrite")
    assert code == 2 and "out is not replaced: expected embeddings and nothing else" in err
    assert content(tmp_path / "out") == {"metadata.json": text.encode()}


@pytest.mark.parametrize("bytes_", [100, 3_000, 20_000, 40_000])
def test_a_full_disk_is_one_line_and_the_same_command_works_later(call, tmp_path, bytes_):
    assert call(output="whole")[0] == 0
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (bytes_, limits[1]))
    try:
        code, out, err = call()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert (code, out) == (1, "") and f"{tmp_path / 'out'} could not be written" in err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["input", "whole"]
    assert call()[0] == 0 and content(tmp_path / "out") == content(tmp_path / "whole")


def break_some(folder):
    (folder / "audio" / "a0.wav").write_bytes(b"")
    (folder / "audio" / "a1.wav").write_text("not audio")
    (folder / "audio" / "ta0.wav").unlink()
    soundfile.write(folder / "audio" / "c3.wav", np.full(20_000, np.nan), 16_000, subtype="FLOAT")


def test_unusable_files_are_skipped_counted_and_listed(call, tmp_path, folder):
    break_some(folder)
    code, out, _ = call("--max_error_fraction=0.2", "--short_clips=skip", "--examples_per_shard=3")
    expected = {"empty": 1, "missing": 1, "not_finite": 1, "too_short": 1, "undecodable": 1}
    assert code == 0 and "19 embeddings" in out and "1 undecodable" in out
    about = metadata(tmp_path / "out")
    assert about["skipped"] == expected and about["num_examples"] == 19
    listed = (tmp_path / "out" / "errors.jsonl").read_text().splitlines()
    errors = {entry["id"]: entry for entry in map(json.loads, listed)}
    assert {id_: entry["reason"] for id_, entry in errors.items()} == {
        "test/ta0.wav": "missing",
        "train/a0.wav": "empty",
        "train/a1.wav": "undecodable",
        "train/b0.wav": "too_short",
        "train/c3.wav": "not_finite",
    }
    assert list(errors) == sorted(errors) and all(entry["detail"] for entry in errors.values())
    assert len(datasets.load("embedded", tmp_path / "out").train["y"]) == 14


def test_too_many_unusable_files_fail_the_job(call, tmp_path, folder):
    break_some(folder)
    code, _, err = call("--max_error_fraction=0.15")
    assert code == 1
    for part in ("at most 15.00% of 24", "found 16.67%", "1 empty", "test/ta0.wav", "errors.jsonl"):
        assert part in err
    assert not (tmp_path / "out").exists()
    assert len((tmp_path / "out.errors.jsonl").read_text().splitlines()) == 4
    # What is left out by choice is no error.
    assert call("--max_error_fraction=0.17", "--short_clips=skip")[0] == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["input", "out"]


def test_nothing_usable_fails_the_job(call, folder, tmp_path):
    for path in (folder / "audio").iterdir():
        path.write_bytes(b"")
    code, _, err = call("--max_error_fraction=1")
    assert code == 1 and "24 empty" in err and not (tmp_path / "out").exists()


def test_a_job_that_fails_leaves_what_was_there(call, tmp_path, monkeypatch):
    assert call()[0] == 0
    before = content(tmp_path / "out")
    embed, calls = audio.YamNet.embed, []

    def fail_late(network, waveforms):
        calls.append(1)
        if len(calls) > 3:
            raise ValueError("stop")
        return embed(network, waveforms)

    monkeypatch.setattr(audio.YamNet, "embed", fail_late)
    flags = ("--examples_per_shard=2", "--overwrite", "--short_clips=skip")
    assert call(*flags)[0] == 1
    assert content(tmp_path / "out") == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["input", "out"]


def test_what_a_killed_job_has_left_is_removed_by_one_that_writes(call, tmp_path):
    left = tmp_path / "out.partial-01234567"
    left.mkdir()
    (left / "embeddings-00000-of-00003.tfrecord").write_bytes(b"some")
    assert call()[0] == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["input", "out"]
    left.mkdir()
    assert call()[0] == 0 and call("--short_clips=skip")[0] == 2  # There is nothing to write.
    assert left.exists()


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_stopped_program_leaves_nothing_in_place(call, tmp_path, folder, yamnet, number):
    many = [f"x{i}.wav,a" for i in range(3_000)]
    for line in many:
        os.link(folder / "audio" / "a5.wav", folder / "audio" / line.split(",")[0])
    with (folder / "train.csv").open("a") as file:
        file.write("\n".join(f"{line},s" for line in many) + "\n")
    argv = ["--model=yamnet", f"--module={yamnet}", f"--input={folder}", "--examples_per_shard=5"]
    argv += [f"--output={tmp_path / 'out'}"]
    program = subprocess.Popen(
        [sys.executable, "-m", "embeddings.extract", *argv], cwd=ROOT, stderr=subprocess.DEVNULL
    )
    deadline = time.monotonic() + 120
    while not list(tmp_path.glob("out.partial-*/*.tfrecord")):
        assert program.poll() is None and time.monotonic() < deadline
        time.sleep(0.01)
    program.send_signal(number)
    assert program.wait(30) != 0
    assert not (tmp_path / "out").exists()
    if number != signal.SIGKILL:
        assert not list(tmp_path.glob("out.partial-*"))
    assert call()[0] == 0
    assert metadata(tmp_path / "out")["num_examples"] == 3_024
    assert not list(tmp_path.glob("out.partial-*"))


def test_progress_is_shown_to_the_end(tmp_path, folder, yamnet, capsys):
    argv = ["--model=yamnet", f"--module={yamnet}", f"--input={folder}"]
    assert extract.main(["extract", *argv, f"--output={tmp_path / 'out'}"]) == 0
    last = capsys.readouterr().err.replace("\r", "\n").strip().splitlines()[-1]
    assert "24/24" in last and "examples/s" in last


def test_image_folders(image_module, tmp_path, capsys):
    root, rng = tmp_path / "pictures", np.random.default_rng(0)
    for split, number in (("train", 5), ("test", 2)):
        for label in ("cat", "dog"):
            (root / split / label).mkdir(parents=True)
            for i in range(number):
                image = rng.integers(0, 256, (8 + i, 8, 1 + 2 * (i % 2)), dtype=np.uint8)
                (root / split / label / f"{i}.png").write_bytes(tf.io.encode_png(image).numpy())
    (root / "train" / "cat" / "broken.jpg").write_bytes(b"\xff\xd8 and nothing else")
    argv = ["--model=image", "--image_size=8", f"--module={image_module}", f"--input={root}"]
    argv += [f"--output={tmp_path / 'embedded'}", "--max_error_fraction=0.1", "--batch_size=4"]
    assert extract.main(["extract", *argv]) == 0, capsys.readouterr().err
    assert metadata(tmp_path / "embedded")["skipped"] == {"undecodable": 1}
    data = datasets.load("embedded", tmp_path)
    assert data.train["x"].shape == (10, 5) and data.class_names == ("cat", "dog")
    # Eight by eight, so that nothing is resized: the first cat of the training set.
    image = tf.io.decode_png((root / "train" / "cat" / "0.png").read_bytes(), channels=3)
    expected = tf.saved_model.load(image_module)(tf.cast(image, tf.float32)[None] / 255)[0]
    np.testing.assert_allclose(data.train["x"][0], expected, atol=1e-5)


def test_a_registered_data_set(image_module, tmp_path, monkeypatch):
    sizes, embed = [], images.ImageNetwork.embed

    def counting(network, batch):
        sizes.append(len(batch))
        return embed(network, batch)

    monkeypatch.setattr(images.ImageNetwork, "embed", counting)
    argv = ["--model=image", "--image_size=8", f"--module={image_module}", "--dataset=digits"]
    assert extract.main(["extract", *argv, f"--output={tmp_path / 'embedded'}"]) == 0
    # One to try the module; then shards of 1,024 and 773 examples in whole batches.
    assert sizes == [1, *[128] * 14, 5]
    found, data = datasets.load("embedded", tmp_path), datasets.load("digits")
    np.testing.assert_array_equal(found.train["y"], data.train["y"])
    rgb = np.repeat(data.test["x"], 3, axis=3).astype(np.float32) / 255
    expected = tf.saved_model.load(image_module)(rgb).numpy()
    np.testing.assert_allclose(found.test["x"], expected, atol=1e-5)


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        ("--module=", "--module is empty"),
        ("--model=vgg", "--model=vgg"),
        ("--shrot_clips=pad", "Not a flag of this program or of Beam: shrot_clips"),
        ("--runner=Nonsense", "Unexpected pipeline runner: Nonsense"),
        ("--direct_num_workers=x", "argument --direct_num_workers: invalid int value"),
        ("--direct_num_workers=-3", "--direct_num_workers: expected a whole number from 0 to 1024"),
        ("--model=\udcfc", "has letters that the locale does not have"),
        ("--runner=X positional", "Not a flag of this program or of Beam: positional"),
        ("--image_size=8", "--image_size belongs to --model=image"),
        ("--model=image", "--model=image needs --image_size"),
        ("--model=inception --short_clips=pad", "--short_clips belongs to --model=yamnet"),
        ("--dataset=digits", "either --input or --dataset"),
        ("--data_dir=.", "--data_dir belongs to --dataset"),
        ("--output=", "--output is empty"),
        ("--output={in}/b", "--output lies in --input"),
        ("--input=", "--input is empty"),
        ("--input= --dataset=digits", "--input is empty"),
        ("--batch_size=0", "--batch_size: expected a whole number from 1 to 65536; found 0"),
        ("--batch_size=1e20", "--batch_size=1e20"),
        (f"--examples_per_shard={2**63}", "--examples_per_shard: expected a whole number from 1"),
        ("--model=image --image_size=1000000", "--image_size: expected a whole number from 1 to 4"),
        ("--max_error_fraction=2", "--max_error_fraction: expected a number from 0 to 1; found 2"),
        ("--max_error_fraction=nan", "--max_error_fraction: expected a number from 0 to 1; found"),
        ("--input=/does/not/exist", "Expected train.csv and test.csv"),
        ("--module=/does/not/exist", "Cannot use the module '/does/not/exist'"),
    ],
)
def test_wrong_use_is_one_line_before_any_work(call, tmp_path, argv, message):
    code, out, err = call(*argv.replace("{in}", str(tmp_path / "input")).split())
    assert (code, out) == (2, "")
    assert message in err and err.count("\n") == 0
    assert [path.name for path in tmp_path.iterdir()] == ["input"]


def test_module_that_does_not_fit_is_refused_before_any_work(call, image_module, yamnet, tmp_path):
    code, _, err = call(f"--module={image_module}")
    assert code == 2 and f"The module {image_module!r} does not take" in err
    of_images = ["--model=image", f"--module={image_module}"]
    code, _, err = call(*of_images, "--image_size=9", source="--dataset=digits")
    assert code == 2 and f"The module {image_module!r} does not take" in err
    of_images = ["--model=image", f"--module={yamnet}"]
    assert call(*of_images, "--image_size=8", source="--dataset=digits")[0] == 2
    assert [path.name for path in tmp_path.iterdir()] == ["input"]


def test_data_set_without_images_is_refused_before_any_work(call, image_module, tmp_path):
    np.savez(
        tmp_path / "my.npz",
        x_train=np.zeros((4, 3)),
        x_test=np.zeros((2, 3)),
        y_train=np.arange(4) % 2,
        y_test=np.arange(2),
    )
    argv = [f"--data_dir={tmp_path / 'my.npz'}", "--model=image", f"--module={image_module}"]
    code, _, err = call(*argv, "--image_size=8", source="--dataset=npz")
    assert code == 2 and "Choose a data set of images" in err
    assert not (tmp_path / "out").exists()


def test_beam_gets_its_own_flags():
    values = extract.define_flags()
    ours, of_beam = ["--model=yamnet"], ["--runner=FlinkRunner", "--direct_num_workers", "2"]
    options = extract.parse(values, ["extract", *ours, *of_beam, "--", "--unknown_to_all=3"])
    assert values["model"].value == "yamnet"
    everything = options.get_all_options(retain_unknown_options=True)
    assert everything["runner"] == "FlinkRunner" and everything["direct_num_workers"] == 2
    assert everything["unknown_to_all"] == "3"


def test_help_lists_all_flags(capsys):
    assert extract.main(["extract", "--help"]) == 0
    out = capsys.readouterr().out
    for flag in extract.define_flags():
        assert f"--{flag}:" in out or f"--[no]{flag}:" in out


@pytest.mark.slow
def test_workers_may_be_processes(call, tmp_path):
    assert call(output="one")[0] == 0
    flags = ("--direct_running_mode=multi_processing", "--direct_num_workers=2")
    assert call(*flags, "--examples_per_shard=7", output="two")[0] == 0
    assert metadata(tmp_path / "one")["checksum"] == metadata(tmp_path / "two")["checksum"]


@pytest.mark.slow
def test_real_yamnet_gives_the_data_set_of_coughs(data_dir, tmp_path, by_hand, capsys):
    module, clips = data_dir / "yamnet" / "saved_model", data_dir / "cough_audio"
    if not (module.is_dir() and clips.is_dir()):
        pytest.skip("TFF_HET_DATA_DIR holds no yamnet/saved_model and cough_audio")
    some = tmp_path / "some"
    some.mkdir()
    (some / "audio").symlink_to(clips / "audio")
    for split in ("train", "test"):
        header, *lines = (clips / f"{split}.csv").read_text().splitlines()
        (some / f"{split}.csv").write_text("\n".join([header, *lines[::12]]) + "\n")
    argv = ["--model=yamnet", f"--module={module}", f"--input={some}"]
    for name in ("one", "fsd_cough"):
        assert extract.main(["extract", *argv, f"--output={tmp_path / name}"]) == 0
    assert content(tmp_path / "one") == content(tmp_path / "fsd_cough")
    data = datasets.load("fsd_cough", tmp_path)
    assert data.class_names == ("other", "Cough") and 0 < data.train["y"].mean() < 1
    loaded = tf.saved_model.load(str(module))
    names = sorted(
        line.split(",")[0] for line in (some / "train.csv").read_text().split("\n")[1:-1]
    )
    assert len(names) == len(data.train["y"])
    for name, embedding in zip(names[::3], data.train["x"][::3], strict=True):
        waveform = audio.decode((some / "audio" / name).read_bytes())
        np.testing.assert_allclose(embedding, by_hand(loaded, waveform), atol=1e-5, rtol=0)


def test_a_folder_that_has_lost_files_is_not_published(tmp_path):
    """As where the same job was started again, and removed what it found."""
    output = outputs.Output(str(tmp_path / "out"), dict.fromkeys(outputs.IDENTITY, ""))
    output.begin()
    with pytest.raises(OSError, match=r"has lost a\.tfrecord: is the same job running twice"):
        output.finish({"files": {"a.tfrecord": 1}}, [])
    assert not (tmp_path / "out").exists()
    for name in ("a.tfrecord", "a.tfrecord.half-of-it"):
        (pathlib.Path(output.partial) / name).write_bytes(b"")
    output.finish({"files": {"a.tfrecord": 1}}, [])
    left = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert left == ["a.tfrecord", "errors.jsonl", "metadata.json"]
