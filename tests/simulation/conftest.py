"""A small population, and the methods' processes on a small network."""

from collections.abc import Callable

import numpy as np
import pytest

from tff_het import methods
from tff_het.backend.names import tff
from tff_het.clients import Client, Population
from tff_het.learning.local_training import LocalTraining
from tff_het.learning.process import FederatedProcess
from tff_het.models import architectures, networks

FEATURES, CLASSES = 4, 3

MakePopulation = Callable[..., Population]
MakeProcess = Callable[..., FederatedProcess]


def _client(index: int, validation: int) -> Client:
    rng = np.random.default_rng(index)
    centres = np.random.default_rng(99).normal(0, 2, (CLASSES, FEATURES))

    def examples(n: int) -> dict[str, np.ndarray]:
        y = rng.integers(CLASSES, size=n)
        x = centres[y] + rng.normal(0, 1, (n, FEATURES))
        # Clients disagree about what the classes are called, so local layers matter.
        return {"x": x.astype(np.float32), "y": ((y + index) % CLASSES).astype(np.int32)}

    return Client(
        f"device {index}", examples(12 + index), examples(validation), examples(6 + index)
    )


@pytest.fixture(scope="session")
def make_population() -> MakePopulation:
    def make(num_clients: int, validation: int = 0) -> Population:
        return Population(_client(index, validation) for index in range(num_clients))

    return make


@pytest.fixture(scope="session")
def make_process() -> MakeProcess:
    """(method, learning rate) -> its process; each is made once."""
    made: dict[tuple[str, float], FederatedProcess] = {}

    def make(method: str, learning_rate: float = 0.1) -> FederatedProcess:
        if (method, learning_rate) not in made:
            element = {"x": (np.dtype(np.float32), (FEATURES,)), "y": (np.dtype(np.int32), ())}
            architecture = architectures.make("small", element, CLASSES, networks.mlp([5]))
            optimizer = tff.learning.optimizers.build_sgdm(learning_rate)
            training = LocalTraining(optimizer, batch_size=4, epochs=1)
            made[method, learning_rate] = methods.build(method, architecture, training, seed=1)
        return made[method, learning_rate]

    return make
