"""easy-VQA: simple questions about images of one coloured shape, with embeddings of the images."""

import pathlib
import tarfile
import zlib

from tff_het.datasets import embedding_files, files, visual_questions
from tff_het.datasets.dataset import Dataset
from tff_het.datasets.visual_questions import Question

_ARCHIVE = "easy_vqa.tar.gz"
_ANSWERS = "data/answers.txt"
_QUESTIONS = "data/{}/questions.json"
_HOW = (
    "Put the folder data/ of https://github.com/vzhou842/easy-VQA (easy_vqa/data) at"
    f" <data_dir>/easy_vqa/data, or pack it into <data_dir>/easy_vqa/{_ARCHIVE}."
)
_HOW_IMAGES = (
    "Compute it with python -m embeddings.extract --input=<data_dir>/easy_vqa/data"
    " --output=<data_dir>/easy_vqa/embeddings, of the unpacked images (embeddings/README.md has the"
    " command); if it is there but damaged, remove it first."
)


@files.explained(_HOW)
def load(data_dir: pathlib.Path | None) -> Dataset:
    """Loads easy-VQA (V. Zhou 2019): 38,575 questions to train on, 9,673 to test on, 13 answers.

    Args:
      data_dir: Holds `easy_vqa/data/` (answers.txt, train/questions.json, test/questions.json) or
        `easy_vqa/easy_vqa.tar.gz` with the same, and `easy_vqa/embeddings/`, embeddings of the
        images data/train/images/<number>.png and data/test/images/<number>.png.

    Returns:
      As `visual_questions.dataset`; `x` float32 [n, dimension].

    Raises:
      FileNotFoundError: A file is missing, or data_dir is None.
      ValueError: A file is truncated, corrupt or of another form.
    """
    folder = files.folder(data_dir, "easy_vqa")
    unpacked = (folder / _ANSWERS).is_file()
    path = folder / _ANSWERS if unpacked else files.find(folder, _ARCHIVE, _ANSWERS)
    names = {split: _QUESTIONS.format(split) for split in embedding_files.SPLITS}
    wanted = (_ANSWERS, *names.values())
    if unpacked:
        content = {name: files.find(folder, name).read_bytes() for name in wanted}
    else:
        content = _unpack(path, wanted)
    answers = content[_ANSWERS].decode("utf-8", errors="replace").split()
    if not answers or len(set(answers)) < len(answers):
        raise files.corrupt(path, f"{_ANSWERS} with different answers", f"{answers!r:.200}")
    asked = {s: _questions(path, name, content[name], answers) for s, name in names.items()}
    with files.explained(_HOW_IMAGES):
        images = visual_questions.image_embeddings(folder / "embeddings")
        return visual_questions.dataset("easy_vqa", asked, images, answers, f"files in {folder}")


def _unpack(path: pathlib.Path, names: tuple[str, ...]) -> dict[str, bytes]:
    """The contents of files of the archive."""
    found = {}
    try:
        with tarfile.open(path) as archive:
            for member in archive:
                name = member.name.removeprefix("./")
                content = archive.extractfile(member) if name in names else None
                if content is not None:
                    found[name] = content.read()
    except (tarfile.TarError, EOFError, KeyError, OSError, zlib.error) as error:
        raise files.corrupt(path, "a whole .tar.gz", error) from error
    missing = [name for name in names if name not in found]
    if missing:
        raise files.corrupt(path, f"the files {', '.join(names)}", f"no {missing[0]}")
    return found


def _questions(path: pathlib.Path, name: str, content: bytes, answers: list[str]) -> list[Question]:
    """Questions of one split: JSON [[question, answer, number of the image], ...]."""
    rows = files.from_json(path, f"{name} as JSON", content)
    if not isinstance(rows, list):
        raise files.corrupt(path, f"{name} as a list", f"{rows!r:.60}")
    known, found = set(answers), []
    for row in rows:
        match row:
            case [str(text), str(answer), int(image)] if answer in known:
                found.append(Question(text, answer, image))
            case _:
                expected = f"{name} with [question, one of {len(known)} answers, image number]"
                raise files.corrupt(path, expected, f"{row!r:.200}")
    return found
