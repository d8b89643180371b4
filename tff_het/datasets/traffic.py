"""Network traffic: the app behind a flow, from the lengths of its first ten packets."""

import csv
import pathlib

import numpy as np

from tff_het.datasets import files
from tff_het.datasets.dataset import Dataset

_FILES = ("flows_first10.npz", "flows_first10.csv")
_NUM_PACKETS = 10
_NUM_CLASSES = 35
_SPLIT_SEED = 0
_TEST_EVERY = 5  # One unique flow in five is a test flow, with all its repetitions.
_CSV_HEADER = [*(f"p{i}" for i in range(_NUM_PACKETS)), "label", "network"]
_HOW = (
    f"Write <data_dir>/traffic/{_FILES[0]} with np.savez: packet_lengths int16 [n, 10] (lengths of"
    " a flow's first packets in bytes, negative in one of the two directions), label (integers [n]"
    f" from 0), network (integers [n]) and label_names (text, one per label); or {_FILES[1]} with"
    f" the header {','.join(_CSV_HEADER)}, labels as names."
)


@files.explained(_HOW)
def load(data_dir: pathlib.Path | None) -> Dataset:
    """Loads flows of several networks, of which the 35 most frequent classes are kept.

    This is the form of the traffic set of HDAFL (Yang et al. 2020, section 3.2), which is not
    public: 35 applications in two networks, the first 10 packets of each flow.

    Flows repeat: many have exactly the lengths of another one. So it is not flows that are split
    into train and test (about 80/20 of each class, fixed seed) but unique vectors of packet
    lengths, each with all flows that have it. Neither label nor network is part of that key: the
    vector is all that a model sees, and one seen in training under another app or in the other
    network would be known all the same. Repetitions are kept, since how often a flow occurs is part
    of the traffic.

    Args:
      data_dir: Holds `traffic/flows_first10.npz` or `traffic/flows_first10.csv`.

    Returns:
      `x` int16 [n, 10], signed packet lengths in bytes; `y` 0..34, the classes in the order of
      their names; `network` int32 [n].

    Raises:
      FileNotFoundError: There is neither file, or data_dir is None.
      ValueError: The file is corrupt or its arrays do not fit together.
    """
    path = files.find(files.folder(data_dir, "traffic"), *_FILES)
    all_flows, names = _read_csv(path) if path.suffix == ".csv" else _read_npz(path)
    flows, class_names = _most_frequent(all_flows, names)
    in_test = _in_test(flows["x"], flows["y"])
    train = {key: column[~in_test] for key, column in flows.items()}
    test = {key: column[in_test] for key, column in flows.items()}
    return Dataset("traffic", train, test, class_names, f"file {path}")


def _read_npz(path: pathlib.Path) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """All flows, and the names of their labels."""
    arrays = files.read_npz(path, ("packet_lengths", "label", "network", "label_names"))
    lengths, names = arrays["packet_lengths"], arrays["label_names"]
    if lengths.dtype != np.int16 or not lengths.size or lengths.shape[1:] != (_NUM_PACKETS,):
        expected = f"packet_lengths int16 [n, {_NUM_PACKETS}], n > 0"
        raise files.corrupt(path, expected, files.form(lengths))
    labels, networks = (
        files.whole_numbers(path, key, arrays[key], length=len(lengths))
        for key in ("label", "network")
    )
    if names.ndim != 1 or names.dtype.kind != "U" or len(np.unique(names)) != len(names):
        raise files.corrupt(path, "label_names as different texts", files.form(names))
    if labels.min() < 0 or labels.max() >= len(names):
        expected = f"labels 0..{len(names) - 1}, one for each of label_names"
        raise files.corrupt(path, expected, f"{labels.min()}..{labels.max()}")
    return {"x": lengths, "y": labels, "network": networks}, names


def _read_csv(path: pathlib.Path) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """All flows, and the names of their labels."""
    with path.open(newline="", encoding="utf-8", errors="replace") as file:
        try:
            header, *rows = [*csv.reader(file)] or [[]]
        except csv.Error as error:
            raise files.corrupt(path, "comma-separated text", error) from error
    if header != _CSV_HEADER:
        raise files.corrupt(path, f"the header {_CSV_HEADER}", f"{header!r:.200}")
    numbers, labels = np.zeros((len(rows), _NUM_PACKETS + 1), np.int64), []
    for index, row in enumerate(rows):
        try:
            *lengths, label, network = row
            numbers[index] = [*map(int, lengths), int(network)]
            if not label.strip():
                raise ValueError("The label is empty.")
        # Not whole numbers, of too many digits, or not as many as there should be.
        except (ValueError, OverflowError) as error:
            expected = f"{_NUM_PACKETS} whole numbers, a label and a whole number"
            expected += f" in line {index + 2}"
            raise files.corrupt(path, expected, f"{row!r:.200}") from error
        labels.append(label)
    lengths, limits = numbers[:, :_NUM_PACKETS], np.iinfo(np.int16)
    if not rows or lengths.min() < limits.min or lengths.max() > limits.max:
        found = f"{lengths.min()}..{lengths.max()}" if rows else "no flows"
        raise files.corrupt(path, f"flows of lengths {limits.min}..{limits.max}", found)
    names, numbered = np.unique(labels, return_inverse=True)
    networks = files.whole_numbers(path, "networks", numbers[:, _NUM_PACKETS])
    flows = {"x": lengths.astype(np.int16), "y": numbered.astype(np.int32), "network": networks}
    return flows, names


def _most_frequent(
    flows: dict[str, np.ndarray], names: np.ndarray
) -> tuple[dict[str, np.ndarray], tuple[str, ...]]:
    """The flows of the most frequent classes, which are renumbered in the order of names."""
    counts = np.bincount(flows["y"], minlength=len(names))
    by_frequency = np.lexsort((names, -counts))  # Equally frequent ones in the order of names.
    kept = [label for label in by_frequency[:_NUM_CLASSES] if counts[label]]
    kept = sorted(kept, key=lambda label: names[label])
    number = np.full(len(names), -1, np.int32)
    number[kept] = np.arange(len(kept))
    rows = number[flows["y"]] >= 0
    columns = {key: column[rows] for key, column in flows.items()}
    return columns | {"y": number[columns["y"]]}, tuple(str(names[label]) for label in kept)


def _in_test(lengths: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Marks the test flows: bool [n]."""
    _, first, vector, counts = np.unique(
        lengths, axis=0, return_index=True, return_inverse=True, return_counts=True
    )
    # Every fifth vector of those ordered by class and frequency, so that a few vectors with many
    # flows cannot shift a class's share; which one is chance. A vector counts for the class of its
    # first flow.
    chance = np.random.default_rng(_SPLIT_SEED).permutation(len(first))
    order = np.lexsort((chance, -counts, labels[first]))
    in_test = np.zeros(len(first), bool)
    in_test[order[_TEST_EVERY // 2 :: _TEST_EVERY]] = True
    return in_test[vector.reshape(-1)]
