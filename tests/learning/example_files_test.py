"""A client's examples come back from their file as they were."""

import collections

import numpy as np
import pytest
import tensorflow as tf

from tff_het.learning import example_files

SPEC = collections.OrderedDict(
    x=tf.TensorSpec([None, 4, 3], tf.uint8),
    y=tf.TensorSpec([None], tf.int64),
    weight=tf.TensorSpec([None, 2], tf.float32),
    flag=tf.TensorSpec([None], tf.bool),
)


def make_examples(n: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(n)
    return {
        "flag": rng.integers(0, 2, n).astype(bool),  # Not in the order of the spec.
        "weight": rng.normal(size=(n, 2)).astype(np.float32),
        "x": rng.integers(0, 256, (n, 4, 3), np.uint8),
        "y": rng.integers(-(2**40), 2**40, n),
    }


@pytest.mark.parametrize("n", [0, 1, 7])
def test_round_trip(tmp_path, n):
    path = tmp_path / "examples"
    examples = make_examples(n)
    path.write_bytes(b"".join(example_files.to_bytes(examples, SPEC)))
    read = tf.function(lambda p: example_files.read(p, SPEC))(str(path))
    assert list(read) == list(SPEC)
    for name, column in read.items():
        assert column.dtype == SPEC[name].dtype
        np.testing.assert_array_equal(column, examples[name])


def test_columns_that_are_not_contiguous(tmp_path):
    path = tmp_path / "examples"
    examples = make_examples(8)
    every_other = {name: column[::-2] for name, column in examples.items()}
    path.write_bytes(b"".join(example_files.to_bytes(every_other, SPEC)))
    np.testing.assert_array_equal(example_files.read(str(path), SPEC)["x"], examples["x"][::-2])


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (np.zeros(7, np.int32), r"'y' should be int64 .* found int32 \(7,\)"),
        (np.zeros((7, 1), np.int64), r"'y' should be int64 .* found int64 \(7, 1\)"),
        (np.zeros(6, np.int64), "'y' has 6 examples, others have 7"),
    ],
)
def test_columns_that_do_not_fit(column, message):
    with pytest.raises(ValueError, match=message):
        example_files.to_bytes(make_examples(7) | {"y": column}, SPEC)
