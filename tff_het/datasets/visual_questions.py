"""Questions about images as data sets: words as numbers, and the image that each one is about."""

import pathlib
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from tff_het.datasets import embedding_files, files
from tff_het.datasets.dataset import Dataset

PADDING, UNKNOWN = "<padding>", "<unknown>"  # Words 0 and 1.
_MAX_WORDS = 16  # Of VQA v2, one question in a thousand is longer.
_WORD = re.compile(r"[a-z0-9']+")
_FILE_NUMBER = re.compile(r"(?<!\d)0*(\d{1,9})\.\w+$")  # Those fit int32.


class Question(NamedTuple):
    """A question, its answer, and the number of the image that it is about."""

    text: str
    answer: str
    image: int


class Images(NamedTuple):
    """What the network sees of images.

    Attributes:
      x: [images, ...], of a dtype that a `Dataset` takes.
      rows: An image's number -> its row in `x`.
    """

    x: np.ndarray
    rows: Mapping[int, int]


def words(text: str) -> list[str]:
    """The words of a text in small letters, without punctuation."""
    return _WORD.findall(text.lower())


def vocabulary(texts: Sequence[str]) -> tuple[str, ...]:
    """All words of some texts, sorted, behind the two that stand for none and for any other."""
    return (PADDING, UNKNOWN, *sorted({word for text in texts for word in words(text)}))


def encode(texts: Sequence[str], known: Sequence[str], length: int) -> np.ndarray:
    """Texts as numbers of words.

    Args:
      texts: n of them.
      known: The vocabulary.
      length: How many words are kept of each.

    Returns:
      int32 [n, length]: positions in `known`, that of `UNKNOWN` for other words; behind the last
      word 0.
    """
    number = {word: index for index, word in enumerate(known)}
    unknown = number[UNKNOWN]
    found = np.zeros((len(texts), length), np.int32)
    for row, text in zip(found, texts, strict=True):
        numbers = [number.get(word, unknown) for word in words(text)[:length]]
        row[: len(numbers)] = numbers
    return found


def image_embeddings(folder: pathlib.Path) -> dict[str, Images]:
    """Embeddings of images, by split and by the number at the end of the image's file name.

    Args:
      folder: As `embeddings.extract` writes it.

    Raises:
      FileNotFoundError: A file is missing.
      ValueError: A file is damaged, an image's name has no number, or two have the same.
    """
    records = embedding_files.read(folder)
    path = folder / embedding_files.METADATA
    found: dict[str, dict[int, int]] = {split: {} for split in embedding_files.SPLITS}
    for row, (name, split) in enumerate(zip(records.ids.tolist(), records.splits, strict=True)):
        match = _FILE_NUMBER.search(name.decode())
        if match is None:
            expected = "images named <number>.png, a number of at most 9 digits"
            raise files.corrupt(path, expected, f"{name.decode()!r}")
        rows = found[embedding_files.SPLITS[split]]
        if rows.setdefault(int(match[1]), row) != row:
            expected = "one image of each number in a split"
            raise files.corrupt(path, expected, f"a second one, {name.decode()!r}")
    return {split: Images(records.embeddings, rows) for split, rows in found.items()}


def dataset(
    name: str,
    asked: Mapping[str, Sequence[Question]],
    images: Mapping[str, Images],
    answers: Sequence[str],
    source: str,
) -> Dataset:
    """Makes a data set with a row for each question.

    Args:
      name: The data set's.
      asked: The questions of 'train' and 'test'; their answers are among `answers`.
      images: What they are about.
      answers: The classes.
      source: Where it all comes from, for people.

    Returns:
      `x`, the image, once for each question about it; `question` int32 [n, words], its words in
      the vocabulary of the training questions, up to 16 (fewer, if no training question has that
      many); `y`, the answer; `image` int32, the image's number. Where train and test number their
      images alike, those of test come behind those of train.

    Raises:
      ValueError: A split has no questions, or they are about images that are not there.
    """
    for split, questions in asked.items():
        if not questions:
            raise files.UnusableError(f"{source}: expected {split} questions; found 0.")
        missing = {question.image for question in questions} - set(images[split].rows)
        if missing:
            raise files.UnusableError(
                f"{source}: expected the image of each {split} question; found none of"
                f" {len(missing)} of them, such as number {min(missing)}."
            )
    texts = {split: [question.text for question in asked[split]] for split in asked}
    known = vocabulary(texts["train"])
    length = min(_MAX_WORDS, max(len(words(text)) for text in texts["train"]))
    number = {answer: index for index, answer in enumerate(answers)}
    numbers = {split: {question.image for question in asked[split]} for split in asked}
    shared = numbers["train"] & numbers["test"]
    first = {"train": 0, "test": 1 + max(numbers["train"]) if shared else 0}
    columns = {
        split: {
            "x": images[split].x[[images[split].rows[question.image] for question in questions]],
            "question": encode(texts[split], known, length),
            "y": np.array([number[question.answer] for question in questions], np.int32),
            "image": np.array([first[split] + one.image for one in questions], np.int32),
        }
        for split, questions in asked.items()
    }
    return Dataset(name, columns["train"], columns["test"], tuple(answers), source, known)
