"""Examples that a network takes."""

import numpy as np
import pytest

from tff_het.models import architectures

VOCABULARY_SIZE, WORDS = 11, 6


@pytest.fixture
def for_network():
    """Name of a network -> columns of three examples, and what `architectures.make` takes."""

    def made(name: str, num_classes: int):
        rng = np.random.default_rng(0)
        x = rng.integers(0, 256, (3, 28, 28, 1), np.uint8)
        columns = {
            "x": rng.integers(0, 256, (3, 10), np.int16) if name == "traffic_cnn" else x,
            "question": rng.integers(1, VOCABULARY_SIZE, (3, WORDS), np.int32),
        }
        batch = {column: columns[column] for column in architectures.inputs(name)}
        spec = {column: (value.dtype, value.shape[1:]) for column, value in batch.items()}
        spec["y"] = (np.dtype(np.int32), ())
        size = VOCABULARY_SIZE if "question" in batch else 0
        return batch, architectures.make(name, spec, num_classes, vocabulary_size=size)

    return made
