"""Questions about the digits of scikit-learn: visual questions, there without a download."""

import pathlib
from collections.abc import Iterator

import numpy as np

from tff_het.datasets import digits, visual_questions
from tff_het.datasets.dataset import Dataset, Examples
from tff_het.datasets.visual_questions import Images, Question

_SEED = 0  # Which digit is asked for.
_NAMES = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
_ANSWERS = (*_NAMES, "yes", "no")


def load(data_dir: pathlib.Path | None) -> Dataset:
    """Makes three questions about each of the 1,797 digits.

    'which digit is this?', 'is this a three?' (of a digit that is, with equal chance, the image's
    own or drawn at random) and 'is the digit even?'. No question can be answered without the image.

    Args:
      data_dir: Not used.

    Returns:
      As `visual_questions.dataset`; `x` uint8 [n, 8, 8, 1], `image` the row in `digits`, those of
      test behind those of train.
    """
    data = digits.load(data_dir)
    rng = np.random.default_rng(_SEED)
    splits = {"train": data.train, "test": data.test}
    return visual_questions.dataset(
        "digits_vqa",
        {split: list(_questions(of, rng)) for split, of in splits.items()},
        {s: Images(of["x"], {row: row for row in range(len(of["y"]))}) for s, of in splits.items()},
        _ANSWERS,
        f"questions about {data.source}",
    )


def _questions(examples: Examples, rng: np.random.Generator) -> Iterator[Question]:
    for image, label in enumerate(examples["y"].tolist()):
        asked = label if rng.random() < 0.5 else int(rng.integers(len(_NAMES)))
        yield Question("which digit is this?", _NAMES[label], image)
        yield Question(f"is this a {_NAMES[asked]}?", "yes" if asked == label else "no", image)
        yield Question("is the digit even?", "no" if label % 2 else "yes", image)
