"""Questions about images: words, images by number, and the data sets that hold them."""

import gzip
import io
import json
import pathlib
import tarfile

import numpy as np
import pytest
import tensorflow as tf

from embeddings import records
from embeddings.examples import Item
from tff_het import datasets
from tff_het.datasets import embedding_files, visual_questions, vqa

DIMENSION = 3
ANSWERS = ["circle", "red", "yes", "no"]
EASY = {
    "train": [
        ["what colour is it?", "red", 0],
        ["Is there a circle?", "yes", 2],
        ["is it red?", "no", 2],
    ],
    "test": [["is it a TRIANGLE or a circle?", "circle", 0]],
}


def embed(folder: pathlib.Path, names: dict[str, list[str]]) -> pathlib.Path:
    """Writes embeddings of images: [number, position of the split, 7] for one of that number."""
    folder.mkdir(parents=True)
    items = [
        (Item(f"{split}/{name}", name.split("/")[0], split), split, int(name[-5]))
        for split, of in names.items()
        for name in of
    ]
    serialized = [
        records.serialize(item, np.array([number, split == "test", 7], np.float32))
        for item, split, number in items
    ]
    counts: dict[str, dict[str, int]] = {}
    for item, split, _ in items:
        counts.setdefault(split, {}).setdefault(item.label, 0)
        counts[split][item.label] += 1
    with tf.io.TFRecordWriter(str(folder / "embeddings.tfrecord")) as writer:
        for record in serialized:
            writer.write(record)
    metadata = {
        "format": 1,
        "model": "image",
        "dimension": DIMENSION,
        "class_names": sorted({item.label for item, *_ in items}),
        "sources": [""],
        "counts": counts,
        "checksum": embedding_files.checksum_text(embedding_files.checksum(serialized)),
        "files": {"embeddings.tfrecord": len(serialized)},
    }
    (folder / "metadata.json").write_text(json.dumps(metadata))
    return folder


def easy_files(questions=EASY, answers=ANSWERS) -> dict[str, str]:
    return {"data/answers.txt": "\n".join(answers)} | {
        f"data/{split}/questions.json": json.dumps(of) for split, of in questions.items()
    }


def save_easy(root: pathlib.Path, files=None, *, packed=False) -> pathlib.Path:
    files = easy_files() if files is None else files
    images = {"train": ["images/0.png", "images/1.png", "images/2.png"], "test": ["images/0.png"]}
    embed(root / "easy_vqa" / "embeddings", images)
    if packed:
        with tarfile.open(root / "easy_vqa" / "easy_vqa.tar.gz", "w:gz") as archive:
            for name, text in files.items():
                member = tarfile.TarInfo(f"./{name}")
                member.size = len(text.encode())
                archive.addfile(member, io.BytesIO(text.encode()))
        return root
    for name, text in files.items():
        path = root / "easy_vqa" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def test_words_have_no_capitals_and_no_punctuation():
    assert visual_questions.words("What's the  Man's COLOR, no. 3?") == [
        *("what's", "the", "man's", "color", "no", "3")
    ]


def test_words_as_numbers():
    known = visual_questions.vocabulary(["b a", "C?"])
    assert known == ("<padding>", "<unknown>", "a", "b", "c")
    found = visual_questions.encode(["a b", "B d c a", ""], known, 3)
    np.testing.assert_array_equal(found, [[2, 3, 0], [3, 1, 4], [0, 0, 0]])
    assert found.dtype == np.int32


@pytest.mark.parametrize("packed", [False, True])
def test_easy_vqa(tmp_path, packed):
    data = datasets.load("easy_vqa", save_easy(tmp_path, packed=packed))
    assert data.class_names == tuple(ANSWERS)
    # The words of training questions alone, and no more words than the longest of these has.
    words = ("a", "circle", "colour", "is", "it", "red", "there", "what")
    assert data.vocabulary == ("<padding>", "<unknown>", *words)
    texts = [[data.vocabulary[n] for n in row] for row in data.train["question"]]
    assert texts == [
        ["what", "colour", "is", "it"],
        ["is", "there", "a", "circle"],
        ["is", "it", "red", "<padding>"],
    ]
    assert [data.vocabulary[n] for n in data.test["question"][0]] == [
        *("is", "it", "a", "<unknown>")
    ]
    # Each split's image of that number.
    np.testing.assert_array_equal(data.train["x"], [[0, 0, 7], [2, 0, 7], [2, 0, 7]])
    np.testing.assert_array_equal(data.test["x"], [[0, 1, 7]])
    # Other images than those of training, though files count from 0 in both.
    np.testing.assert_array_equal(data.train["image"], [0, 2, 2])
    np.testing.assert_array_equal(data.test["image"], [3])
    assert [data.class_names[y] for y in data.train["y"]] == ["red", "yes", "no"]


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"data/train/questions.json": "[[1"}, "expected data/train/questions.json as JSON"),
        ({"data/train/questions.json": "[" * 100_000}, "train/questions.json as JSON; found max"),
        ({"data/train/questions.json": "{}"}, "expected data/train/questions.json as a list"),
        (easy_files({**EASY, "test": [["q", "blue", 0]]}), r"one of 4 answers.*'blue'"),
        (easy_files({**EASY, "test": [["q", "red"]]}), r"image number\]; found \['q', 'red'\]"),
        (easy_files({**EASY, "test": []}), "expected test questions; found 0"),
        (easy_files({**EASY, "test": [["q", "red", 5]]}), r"found none of 1 .* number 5.*extract"),
        (easy_files(answers=["red", "red"]), "answers.txt with different answers"),
    ],
)
@pytest.mark.parametrize("packed", [False, True])
def test_damaged_easy_vqa_is_refused(tmp_path, files, message, packed):
    root = save_easy(tmp_path, easy_files() | files, packed=packed)
    with pytest.raises(ValueError, match=message):
        datasets.load("easy_vqa", root)


def test_cut_off_archive(tmp_path):
    path = save_easy(tmp_path, packed=True) / "easy_vqa" / "easy_vqa.tar.gz"
    path.write_bytes(path.read_bytes()[:-60])
    with pytest.raises(ValueError, match=r"easy_vqa.tar.gz: expected a whole .tar.gz; found"):
        datasets.load("easy_vqa", tmp_path)


def test_archive_without_a_file(tmp_path):
    files = easy_files()
    del files["data/test/questions.json"]
    with pytest.raises(ValueError, match=r"found no data/test/questions\.json"):
        datasets.load("easy_vqa", save_easy(tmp_path, files, packed=True))


def test_without_embeddings_the_command_is_named(tmp_path):
    save_easy(tmp_path)
    for path in (tmp_path / "easy_vqa" / "embeddings").iterdir():
        path.unlink()
    with pytest.raises(FileNotFoundError, match=r"metadata.json.*embeddings.extract --input="):
        datasets.load("easy_vqa", tmp_path)


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["images/0.png", "images/00.png"], "one image of each number in a split; found a second"),
        (["images/0.png", "images/x.000000000005.tiff2"], None),
        (["images/00a.b"], "images named <number>.png, .* 9 digits; found 'train/images/00a.b'"),
        (["images/2147483648.png"], "9 digits; found 'train/images/2147483648.png'"),
    ],
)
def test_images_are_known_by_the_number_of_their_file(tmp_path, names, message):
    folder = tmp_path / "e"
    made = [(Item(f"train/{name}", "images", "train"), np.ones(3, np.float32)) for name in names]
    folder.mkdir()
    serialized = [records.serialize(item, value) for item, value in made]
    with tf.io.TFRecordWriter(str(folder / "a")) as writer:
        for record in serialized:
            writer.write(record)
    metadata = {"format": 1, "model": "image", "dimension": 3, "class_names": ["images"]}
    metadata |= {"sources": [""], "counts": {"train": {"images": len(names)}}}
    metadata |= {"files": {"a": len(names)}}
    metadata["checksum"] = embedding_files.checksum_text(embedding_files.checksum(serialized))
    (folder / "metadata.json").write_text(json.dumps(metadata))
    if message is None:
        found = visual_questions.image_embeddings(folder)
        assert found["train"].rows == {0: 0, 5: 1} and found["test"].rows == {}
        return
    with pytest.raises(ValueError, match=message):
        visual_questions.image_embeddings(folder)


def vqa_files(asked: list[tuple[int, int, str, str]]) -> tuple[str, str]:
    """(question id, image id, question, answer) as the official files."""
    questions = [{"question_id": q, "image_id": i, "question": text} for q, i, text, _ in asked]
    annotations = [
        {"question_id": q, "image_id": i, "multiple_choice_answer": answer}
        for q, i, _, answer in reversed(asked)
    ]
    return json.dumps({"questions": questions}), json.dumps({"annotations": annotations})


VQA = {
    "train": [
        (41, 4, "What is this?", "a dog"),
        (42, 4, "Is it big?", "yes"),
        (43, 5, "Is it?", "yes"),
        (51, 5, "Who?", "b"),
    ],
    "test": [(61, 6, "Is it big?", "a dog"), (62, 6, "Is it blue?", "no")],
}
NAMES = {
    "official": {
        "train": (
            "v2_OpenEnded_mscoco_train2014_questions.json",
            "v2_mscoco_train2014_annotations.json",
        ),
        "test": (
            "v2_OpenEnded_mscoco_val2014_questions.json",
            "v2_mscoco_val2014_annotations.json",
        ),
    },
    "selection": {
        split: (f"vqa_questions_{split}.gzip", f"vqa_annotatons_{split}.gzip") for split in VQA
    },
}


def save_vqa(root: pathlib.Path, asked=VQA, names="official") -> pathlib.Path:
    """The images of training questions are COCO's training images but for one."""
    coco = {
        "train": ["train2014/COCO_train2014_000000000004.jpg"],
        "test": ["val2014/COCO_val2014_000000000005.jpg", "val2014/COCO_val2014_000000000006.jpg"],
    }
    embed(root / "vqa" / "embeddings", coco)
    for split, of in asked.items():
        for name, text in zip(NAMES[names][split], vqa_files(of), strict=True):
            content = gzip.compress(text.encode()) if name.endswith("gzip") else text.encode()
            (root / "vqa" / name).write_bytes(content)
    return root


@pytest.mark.parametrize("names", NAMES)
def test_vqa_joins_questions_answers_and_images(tmp_path, names, monkeypatch):
    monkeypatch.setattr(vqa, "_NUM_ANSWERS", 2)
    data = datasets.load("vqa", save_vqa(tmp_path, names=names))
    # The most frequent answers of training, then by name; questions with others are left out.
    assert data.class_names == ("yes", "a dog")
    np.testing.assert_array_equal(data.train["y"], [1, 0, 0])
    np.testing.assert_array_equal(data.train["image"], [4, 4, 5])
    np.testing.assert_array_equal(data.train["x"], [[4, 0, 7], [4, 0, 7], [5, 1, 7]])
    np.testing.assert_array_equal(data.test["image"], [6])
    known = [data.vocabulary[number] for number in data.test["question"][0]]
    assert known == ["is", "it", "big"]


def test_damaged_vqa_is_refused(tmp_path):
    folder = save_vqa(tmp_path) / "vqa"
    questions, annotations = (folder / name for name in NAMES["official"]["train"])
    whole = annotations.read_text()
    for path, text, message in (
        (annotations, "{", "expected JSON"),
        (annotations, "[]", "a JSON object with a list 'annotations'"),
        (
            annotations,
            '{"annotations": [{"question_id": 41}]}',
            "and multiple_choice_answer; found",
        ),
        (annotations, '{"annotations": []}', "an answer to question 41"),
        (questions, '{"questions": [{"image_id": 4}]}', "with question_id, image_id and question"),
    ):
        annotations.write_text(whole)
        path.write_text(text)
        with pytest.raises(ValueError, match=message):
            datasets.load("vqa", tmp_path)


def test_cut_off_selection(tmp_path):
    folder = save_vqa(tmp_path, names="selection") / "vqa"
    path = folder / NAMES["selection"]["train"][0]
    path.write_bytes(path.read_bytes()[:-12])
    with pytest.raises(ValueError, match=r"vqa_questions_train.gzip: expected JSON, packed"):
        datasets.load("vqa", tmp_path)


def test_an_image_that_is_not_there(tmp_path):
    asked = {**VQA, "test": [(71, 77, "Is it?", "yes")]}
    with pytest.raises(ValueError, match=r"each test question; found none of 1 .*number 77"):
        datasets.load("vqa", save_vqa(tmp_path, asked))


def test_questions_about_digits_have_true_answers():
    data, digits = datasets.load("digits_vqa"), datasets.load("digits")
    names = list(data.class_names[:10])
    seen = set()
    for split in ("train", "test"):
        examples, images = getattr(data, split), getattr(digits, split)
        assert len(examples["y"]) == 3 * len(images["y"])
        shown = examples["image"] - (0 if split == "train" else len(digits.train["y"]))
        np.testing.assert_array_equal(examples["x"], images["x"][shown])
        for question, y, label in zip(
            examples["question"], examples["y"], images["y"][shown], strict=True
        ):
            words = [data.vocabulary[n] for n in question if n]
            if words[0] == "which":
                expected = names[label]
            elif words[-1] == "even":
                expected = "yes" if label % 2 == 0 else "no"
            else:
                expected = "yes" if words[-1] == names[label] else "no"
            assert data.class_names[y] == expected
            seen.add(" ".join(words))
    assert len(seen) == 12
    assert data.fingerprint() == datasets.load("digits_vqa").fingerprint()


def test_the_original_easy_vqa(tmp_path, data_dir):
    """All questions of the original archive; embeddings made up."""
    archive = data_dir / "easy_vqa" / "easy_vqa.tar.gz"
    if not archive.exists():
        pytest.skip(f"there is no {archive}")
    (tmp_path / "easy_vqa").mkdir()
    (tmp_path / "easy_vqa" / archive.name).symlink_to(archive)
    images = {
        split: [f"images/{n:05}.png" for n in range(count)]
        for split, count in (("train", 4000), ("test", 1000))
    }
    embed(tmp_path / "easy_vqa" / "embeddings", images)
    data = datasets.load("easy_vqa", tmp_path)
    assert (len(data.train["y"]), len(data.test["y"]), data.num_classes) == (38_575, 9_673, 13)
    assert data.train["question"].shape[1] == 9 and len(data.vocabulary) == 28
    yes_or_no = [data.class_names.index(answer) for answer in ("yes", "no")]
    assert np.isin(data.train["y"], yes_or_no).sum() == 28_407
    assert np.isin(data.test["y"], yes_or_no).sum() == 7_136
    assert not (data.test["question"] == 1).any()


@pytest.mark.slow
def test_a_selection_of_vqa(tmp_path, data_dir):
    """Real questions and answers; embeddings made up."""
    folder = data_dir / "vqa"
    if not (folder / "vqa_questions_train.gzip").exists():
        pytest.skip(f"there are no questions in {folder}")
    (tmp_path / "vqa").mkdir()
    numbers = {}
    for split in ("train", "test"):
        for kind in ("questions", "annotatons"):
            name = f"vqa_{kind}_{split}.gzip"
            (tmp_path / "vqa" / name).symlink_to(folder / name)
        with gzip.open(folder / f"vqa_questions_{split}.gzip") as file:
            numbers[split] = {entry["image_id"] for entry in json.load(file)["questions"]}
    names = {split: [f"i/{n:012}.jpg" for n in of] for split, of in numbers.items()}
    names["test"] = sorted(set(names["test"]) - set(names["train"]))
    embed(tmp_path / "vqa" / "embeddings", names)
    data = datasets.load("vqa", tmp_path)
    assert data.class_names[:2] == ("yes", "no") and data.num_classes == 1000
    share = len(data.train["y"]) / 48_061
    assert share == pytest.approx(0.905, abs=0.001)  # 905 of a thousand have such an answer.
    assert data.train["question"].shape[1] == 16
