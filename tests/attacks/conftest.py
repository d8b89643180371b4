"""Clients whose examples can be learnt by heart alone, and what is seen of their last round."""

import collections
import dataclasses
import sys
from typing import Any

import numpy as np
import pytest

from tff_het import methods, seeding
from tff_het.attacks.membership import Target
from tff_het.attacks.observation import observe
from tff_het.backend.names import keras, tff
from tff_het.learning.local_training import LocalTraining
from tff_het.learning.process import FederatedProcess, ServerState
from tff_het.models import architectures, networks

FEATURES, CLASSES, SEED = 12, 4, 1
# Of methods that diverge at the others' rate: WAFFLe's penalty is large beside 40 examples.
_RATES = {"waffle": 0.01}


_SELECTION = {"opt_fl", "mix_fl"}


def draw(n: int, *keys: int) -> dict[str, np.ndarray]:
    """Examples whose labels have nothing to do with them."""
    rng = seeding.generator(SEED, seeding.DATA, *keys)
    x = rng.normal(size=(n, FEATURES)).astype(np.float32)
    return {"x": x, "y": rng.integers(0, CLASSES, n).astype(np.int32)}


# Methods that take plain SGD alone, and at what rate that learns as much; and options.
_PLAIN = {"scaffold": 0.5, "p_fed_me": 0.5}
_OPTIONS = {
    "ditto": {"proximal_strength": 0.1},  # As a penalty it keeps from learning by heart.
    "scaffold": {"num_clients": 8},
    "fed_dyn": {"num_clients": 8},
    "p_fed_me": {"proximal_strength": 1.0, "personal_rate": 0.5},
}


def training(epochs: int, rate: float = 0.1, momentum: float | None = 0.9) -> LocalTraining:
    optimizer = tff.learning.optimizers.build_sgdm(rate, momentum)
    return LocalTraining(optimizer, batch_size=8, epochs=epochs)


def normalized(x, num_classes, layers):
    hidden = keras.layers.BatchNormalization(name="norm")(layers.dense(48, "dense_1")(x))
    return hidden, layers.output(num_classes)(hidden)


def build(method: str, epochs: int = 30, **options) -> FederatedProcess:
    element = {"x": (np.dtype(np.float32), (FEATURES,)), "y": (np.dtype(np.int32), ())}
    network = normalized if method == "fed_bn" else networks.mlp([48])
    architecture = architectures.make("small", element, CLASSES, network)
    options = _OPTIONS.get(method, {}) | options
    rate = _RATES.get(method, 0.1)
    settings = training(epochs, rate)
    if method in _PLAIN:
        settings = training(epochs, _PLAIN[method], None)
    if method in _SELECTION:
        options = {"selection": draw(60, 99), "ensemble_dropout_samples": 1, **options}
    return methods.build(method, architecture, settings, seed=SEED, **options)


def inputs(process, state, clients, round_num: int, kept: dict) -> list[collections.OrderedDict]:
    """What the process takes of clients, given with their examples by index."""
    return [
        collections.OrderedDict(
            client=np.int32(client),
            seed=seeding.stateless_seed(SEED, seeding.CLIENT_WORK, round_num, client),
            examples=collections.OrderedDict(examples),
            state=kept.get(client) or process.init_state(client, SEED, state),
        )
        for client, examples in clients.items()
    ]


@dataclasses.dataclass
class Federation:
    """Clients, and a process before its last round with them."""

    process: FederatedProcess
    state: ServerState
    last: list[collections.OrderedDict]
    members: dict[int, dict[str, np.ndarray]]
    others: dict[int, dict[str, np.ndarray]]

    def targets(self, **options: Any) -> list[Target]:
        """All clients, as they are seen in the last round."""
        seen = observe(self.process, self.state, self.last, **options)
        return [
            Target(one, self.members[one.client], self.others[one.client]) for one in seen.clients
        ]


def train(process, *, group: int, num_clients: int, n: int = 40, rounds: int = 2) -> Federation:
    """Clients of a group train together; groups share no examples."""
    members = {client: draw(n, group, client, 0) for client in range(num_clients)}
    others = {client: draw(n, group, client, 1) for client in range(num_clients)}
    state, kept = process.initialize(), {}
    for round_num in range(rounds - 1):
        output = process.next(state, inputs(process, state, members, round_num, kept))
        state = output.state
        kept = {int(one["client"]): one["state"] for one in output.client_states}
    last = inputs(process, state, members, rounds - 1, kept)
    return Federation(process, state, last, members, others)


@pytest.fixture(scope="session")
def world():
    """This module's functions."""
    return sys.modules[__name__]
