"""PerMFL's released pFedMe, written again in NumPy, without this suite's processes.

Facts of sourasb05/PerMFL_1: all clients train in each round, of which those drawn are averaged. A
client goes on in its batches where it stopped in the round before, and is tested with its u.
"""

import itertools
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from experiments.run import setup
from tff_het.datasets import Examples

_INNER_STEPS, _DECAY = 5, 0.001  # K, and mu of its optimizer.


def p_fed_me(
    *, seed: int, data_dir: str | None, flags: Mapping[str, Any], **_: Any
) -> dict[str, float]:
    """Trains logistic regression as the flags of `experiments.train` say, and tests in all rounds.

    Gives accuracies in [0, 1], each example counting the same: of the best round and the last one.
    """
    made = setup.of_flags(flags, seed=seed, data_dir=data_dir)
    own, run, rng = made.config.given_to("p_fed_me"), made.config.run, np.random.default_rng(seed)
    train = [_columns(client.train) for client in made.population]
    test = [_columns(client.test) for client in made.population]
    orders = [rng.permutation(len(y)) for _, y in train]
    batches = [_batches(len(o), made.config.training.batch_size, o) for o in orders]
    features, classes = train[0][0].shape[1], made.dataset.num_classes
    bound = (features - 1) ** -0.5
    w = rng.uniform(-bound, bound, (features, classes)).astype(np.float32)
    one_hot = np.eye(classes, dtype=np.float32)
    rate, strength = made.config.training.client_learning_rate, own["proximal_strength"]
    inner, mixing = own["personal_rate"], own["server_mixing"]
    found = []
    for _round in range(run.rounds):
        models = []
        for (x, y), own_batches in zip(train, batches, strict=True):
            u, theta = w, w
            for rows in itertools.islice(own_batches, made.config.training.local_steps):
                for _step in range(_INNER_STEPS):
                    slope = x[rows].T @ (_softmax(x[rows] @ theta) - one_hot[y[rows]]) / len(rows)
                    theta = theta - inner * (slope + strength * (theta - u) + _DECAY * theta)
                u = u - rate * strength * (u - theta)
            models.append(u)
        hits = [np.argmax(x @ u, axis=1) == y for (x, y), u in zip(test, models, strict=True)]
        found.append(float(np.concatenate(hits).mean()))
        chosen = rng.choice(len(models), run.clients_per_round or len(models), replace=False)
        sizes = [len(train[client][1]) for client in chosen]
        mean = np.average([models[client] for client in chosen], axis=0, weights=sizes)
        w = ((1 - mixing) * w + mixing * mean).astype(np.float32)
    return {"best": max(found), "last": found[-1]}


def _columns(examples: Examples) -> tuple[np.ndarray, np.ndarray]:
    """Pixels from -1 to 1 with a 1 for the bias, float32 [n, features + 1], and classes [n]."""
    x, y = examples["x"], examples["y"]
    scaled = x.reshape(len(y), -1).astype(np.float32) / (255 if x.dtype == np.uint8 else 1)
    return np.pad(2 * scaled - 1, ((0, 0), (0, 1)), constant_values=1), y


def _batches(number: int, size: int, order: np.ndarray) -> Iterator[np.ndarray]:
    """The same passes for ever; the last batch of each may be short."""
    return itertools.cycle([order[start : start + size] for start in range(0, number, size)])


def _softmax(logits: np.ndarray) -> np.ndarray:
    raised = np.exp(logits - logits.max(axis=1, keepdims=True))
    return raised / raised.sum(axis=1, keepdims=True)
