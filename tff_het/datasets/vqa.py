"""VQA v2: questions that people asked about photographs, with embeddings of the images."""

import collections
import gzip
import pathlib
import zlib
from collections.abc import Mapping
from typing import Any

from tff_het.datasets import embedding_files, files, visual_questions
from tff_het.datasets.dataset import Dataset
from tff_het.datasets.visual_questions import Images, Question

_NUM_ANSWERS = 1000  # K of Antol et al. (2015).
# Split -> the official files, and those of smaller selections in the same form. The answers to the
# official test questions are not public: the validation questions are tested on.
_QUESTIONS = {
    "train": ("v2_OpenEnded_mscoco_train2014_questions.json", "vqa_questions_train.gzip"),
    "test": ("v2_OpenEnded_mscoco_val2014_questions.json", "vqa_questions_test.gzip"),
}
_ANNOTATIONS = {
    "train": ("v2_mscoco_train2014_annotations.json", "vqa_annotatons_train.gzip"),
    "test": ("v2_mscoco_val2014_annotations.json", "vqa_annotatons_test.gzip"),
}
_HOW = (
    "Download the questions and annotations (v2, train and validation) of"
    " https://visualqa.org/download.html and unpack them in <data_dir>/vqa/."
)
_HOW_IMAGES = (
    "Compute it with python -m embeddings.extract --input=COCO --output=<data_dir>/vqa/embeddings,"
    " where COCO/train/ holds train2014/ and COCO/test/ holds val2014/ (embeddings/README.md has"
    " the command); if it is there but damaged, remove it first."
)


@files.explained(_HOW)
def load(data_dir: pathlib.Path | None) -> Dataset:
    """Loads VQA v2 (Goyal et al. 2017).

    The classes are the 1,000 most frequent answers of the training questions (the one that most
    people gave to a question), equally frequent ones in the order of the alphabet. Questions with
    other answers are left out, of the test too, so accuracies are those on the questions that a
    model can answer, and not the official measure, which gives part of a point for an answer that
    one or two of ten people gave.

    All questions of an image hold its embedding: 444,000 training questions with 1,280 numbers each
    take 2 GB.

    Args:
      data_dir: Holds `vqa/` with the JSON files, as they are or packed with gzip, and
        `vqa/embeddings/`, embeddings of images whose file names end with COCO's number.

    Returns:
      As `visual_questions.dataset`; `x` float32 [n, dimension].

    Raises:
      FileNotFoundError: A file is missing, or data_dir is None.
      ValueError: A file is truncated, corrupt or of another form.
    """
    folder = files.folder(data_dir, "vqa")
    asked = {split: _questions(folder, split) for split in embedding_files.SPLITS}
    counts = collections.Counter(question.answer for question in asked["train"])
    answers = sorted(counts, key=lambda answer: (-counts[answer], answer))[:_NUM_ANSWERS]
    known = set(answers)
    asked = {split: [q for q in of if q.answer in known] for split, of in asked.items()}
    with files.explained(_HOW_IMAGES):
        train, test = visual_questions.image_embeddings(folder / "embeddings").values()
        # All for both splits: COCO's numbers are unique, and selections may mix its splits.
        images = dict.fromkeys(asked, Images(train.x, {**train.rows, **test.rows}))
        return visual_questions.dataset("vqa", asked, images, answers, f"files in {folder}")


def _questions(folder: pathlib.Path, split: str) -> list[Question]:
    """All questions of a split that have an answer, in the order of their file."""
    path = files.find(folder, *_QUESTIONS[split])
    answers_path = files.find(folder, *_ANNOTATIONS[split])
    answers: dict[int, str] = {}
    for entry in _entries(answers_path, "annotations"):
        match entry:
            case {"question_id": int(number), "multiple_choice_answer": str(answer)}:
                answers[number] = answer
            case _:
                expected = "annotations with question_id and multiple_choice_answer"
                raise files.corrupt(answers_path, expected, f"{entry!r:.200}")
    found = []
    for entry in _entries(path, "questions"):
        match entry:
            case {"question_id": int(number), "image_id": int(image), "question": str(text)}:
                if number not in answers:
                    expected = f"an answer to question {number} of {path.name}"
                    raise files.corrupt(answers_path, expected, "none")
                found.append(Question(text, answers[number], image))
            case _:
                expected = "questions with question_id, image_id and question"
                raise files.corrupt(path, expected, f"{entry!r:.200}")
    return found


def _entries(path: pathlib.Path, key: str) -> list[Mapping[str, Any]]:
    """The list under a key of a JSON file, packed with gzip or not."""
    content, expected = path.read_bytes(), "JSON, packed with gzip or not"
    try:
        if content.startswith(b"\x1f\x8b"):
            content = gzip.decompress(content)
    except (EOFError, OSError, zlib.error) as error:  # Cut off.
        raise files.corrupt(path, expected, error) from error
    found = files.from_json(path, expected, content)
    if not isinstance(found, dict) or not isinstance(found.get(key), list):
        raise files.corrupt(path, f"a JSON object with a list {key!r}", f"{found!r:.60}")
    return found[key]
