"""FEMNIST: handwritten characters by writer, from LEAF's JSON files or through TFF."""

import pathlib
from typing import Any

import numpy as np

from tff_het.datasets import download, files
from tff_het.datasets.dataset import Dataset

_CLASS_NAMES = tuple("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")
_IMAGE_SHAPE = (28, 28)
_NUM_PIXELS = 28 * 28
# Where TFF gets it, and what it leaves in the user's folder.
_URL = "https://storage.googleapis.com/tff-datasets-public/emnist_all.sqlite.lzma"
_DOWNLOADED = "~/.tff/emnist_all.sqlite"
_HOW_BY_HAND = (
    "In data/femnist/ of a clone of https://github.com/TalwalkarLab/leaf run"
    " './preprocess.sh -s niid --sf 1.0 -k 0 -t sample' and copy its data/train and data/test to"
    " <data_dir>/femnist/."
)
_HOW = _HOW_BY_HAND + download.OR

_Writers = dict[str, tuple[np.ndarray, np.ndarray]]
"""Writer -> images uint8 [n, 28, 28] and labels int32 [n]."""


@files.explained(_HOW)
def load(data_dir: pathlib.Path | None) -> Dataset:
    """Loads FEMNIST (Caldas et al. 2018, LEAF): 62 classes, 0-9, A-Z, a-z, about 3,500 writers.

    Args:
      data_dir: Holds `femnist/train/*.json` and `femnist/test/*.json` as LEAF writes them. None
        downloads through TFF (`tff.simulation.datasets.emnist`, derived from LEAF, 3,400 writers).

    Returns:
      `x` uint8 [n, 28, 28, 1]: the sources' floats in [0, 1], times 255, rounded (a white
      background is 255); `y` 0..61; `writer` int32 [n]: the place of the writer's id among the
      sorted ids of train and test. Examples of a writer stand together.

    Raises:
      FileNotFoundError: A folder holds no JSON files.
      ValueError: A file is truncated, corrupt or of another form.
      RuntimeError: The download failed.
    """
    if data_dir is None:
        train, test = _download()
        source = "tff.simulation.datasets.emnist"
    else:
        folder = data_dir / "femnist"
        train, test = _read_split(folder / "train"), _read_split(folder / "test")
        source = f"LEAF files {folder}"
    numbers = {writer: number for number, writer in enumerate(sorted({*train, *test}))}
    return Dataset(
        "femnist", _examples(train, numbers), _examples(test, numbers), _CLASS_NAMES, source
    )


def _examples(writers: _Writers, numbers: dict[str, int]) -> dict[str, np.ndarray]:
    ordered = sorted(writers)
    sizes = [len(writers[writer][1]) for writer in ordered]
    own_numbers = np.array([numbers[writer] for writer in ordered], np.int32)
    return {
        "x": np.concatenate([writers[writer][0] for writer in ordered])[..., None],
        "y": np.concatenate([writers[writer][1] for writer in ordered]),
        "writer": np.repeat(own_numbers, sizes),
    }


def _to_uint8(pixels: np.ndarray) -> np.ndarray:
    """Values 0..1 [..., 784 or 28, 28] as uint8 0..255 [n, 28, 28]."""
    return np.rint(pixels * 255.0).astype(np.uint8).reshape(-1, *_IMAGE_SHAPE)


def _read_split(folder: pathlib.Path) -> _Writers:
    paths = sorted(folder.glob("*.json"))
    if not paths:
        found = "none there" if folder.is_dir() else "no such folder"
        raise files.MissingError(f"Expected LEAF's .json files in {folder}; {found}.")
    writers: _Writers = {}
    for path in paths:
        for writer, examples in _read_file(path).items():
            if writer in writers:
                found = f"{writer!r} in an earlier one too"
                raise files.corrupt(path, "each writer in one file", found)
            writers[writer] = examples
    if not writers:
        raise files.corrupt(folder, "a writer with examples", "none")
    return writers


def _read_file(path: pathlib.Path) -> _Writers:
    content = files.from_json(path, "a complete JSON file", path.read_bytes())
    keys = ("users", "num_samples", "user_data")
    if not isinstance(content, dict) or any(key not in content for key in keys):
        found = sorted(content) if isinstance(content, dict) else type(content).__name__
        raise files.corrupt(path, f"an object with {keys}", found)
    users, sizes, entries = (content[key] for key in keys)
    expected = "one name, one size and one entry in user_data for each user"
    for key, value, form in zip(keys, (users, sizes, entries), (list, list, dict), strict=True):
        if not isinstance(value, form):
            raise files.corrupt(path, expected, f"{key} is {type(value).__name__}")
    are_names = all(isinstance(user, str) for user in users)
    if not are_names or len(users) != len(sizes) or sorted(users) != sorted(entries):
        found = f"{len(users)} users, {len(sizes)} sizes, {len(entries)} entries"
        raise files.corrupt(path, expected, found)
    writers = {}
    for writer, size in zip(users, sizes, strict=True):
        images, labels = _read_writer(path, writer, entries[writer])
        if len(labels) != size:
            raise files.corrupt(path, f"{size} examples of writer {writer!r}", len(labels))
        if size:
            writers[writer] = images, labels
    return writers


def _read_writer(path: pathlib.Path, writer: str, entry: Any) -> tuple[np.ndarray, np.ndarray]:
    try:
        # NumPy is told no dtype: it would make numbers of texts.
        pixels, labels = np.array(entry["x"]), np.array(entry["y"]).reshape(-1)
    except (KeyError, TypeError, ValueError) as error:
        raise files.corrupt(path, f"numbers x and y of writer {writer!r}", repr(error)) from error
    if not pixels.size and not labels.size:
        return np.zeros((0, *_IMAGE_SHAPE), np.uint8), np.zeros(0, np.int32)
    labels = files.whole_numbers(path, f"y of writer {writer!r}", labels)
    if pixels.shape != (len(labels), _NUM_PIXELS) or pixels.dtype.kind not in "iuf":
        expected = f"numbers x [{len(labels)}, {_NUM_PIXELS}] of writer {writer!r}"
        raise files.corrupt(path, expected, files.form(pixels))
    if not (pixels.min() >= 0 and pixels.max() <= 1):  # Written so that NaN is refused as well.
        found = f"{pixels.min():g}..{pixels.max():g}"
        raise files.corrupt(path, f"pixels 0..1 of writer {writer!r}", found)
    return _to_uint8(pixels), labels


def _download() -> tuple[_Writers, _Writers]:
    try:
        # Imported here: it takes seconds, and those who have files need no TensorFlow.
        from tff_het.backend.names import tff

        if not pathlib.Path(_DOWNLOADED).expanduser().exists():
            download.announce("femnist", _URL)
        train, test = tff.simulation.datasets.emnist.load_data(only_digits=False)
        return _writers_of(train), _writers_of(test)
    # TFF and Keras raise errors of many kinds (no network, no disk): all mean the same here.
    except Exception as error:
        raise RuntimeError(
            f"Could not get 'femnist' through TFF ({type(error).__name__}: {error}). Pass data_dir"
            f" to read files instead: {_HOW_BY_HAND}"
        ) from error


def _writers_of(client_data: Any) -> _Writers:
    """All examples of a `tff.simulation.datasets.ClientData` of EMNIST."""
    writers = {}
    for writer in client_data.client_ids:
        examples = list(client_data.create_tf_dataset_for_client(writer).as_numpy_iterator())
        pixels = np.stack([example["pixels"] for example in examples])
        labels = np.array([example["label"] for example in examples], np.int32).reshape(-1)
        writers[writer] = _to_uint8(pixels), labels
    return writers
