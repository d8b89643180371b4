"""Logits, accuracy and loss of each client's model, one thread per core; all tests share it."""

import collections
import concurrent.futures
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeVar

import numpy as np
import scipy.special

from tff_het import seeding
from tff_het.clients import Population
from tff_het.learning.client_work import ClientState
from tff_het.learning.process import FederatedProcess, ServerState
from tff_het.models.model import Weights

# So many results a thread are held: clients that take long let others go ahead of them.
_HELD_PER_THREAD = 2
_Result = TypeVar("_Result")


class Judged(NamedTuple):
    """What logits are worth.

    Attributes:
      accuracy: In [0, 1].
      loss: Mean cross entropy in nats; nan where logits are not finite.
    """

    accuracy: float
    loss: float


def in_client_order(function: Callable[[int], _Result], num_clients: int) -> Iterator[_Result]:
    """Gives function(0), function(1), ..., which a thread a core computes.

    However long each takes, no more results are held at a time than twice the number of cores.
    """
    num_threads = len(os.sched_getaffinity(0))
    waiting: collections.deque[concurrent.futures.Future[_Result]] = collections.deque()
    # A client a thread, as in training: TensorFlow may have been told to use one thread each.
    with concurrent.futures.ThreadPoolExecutor(num_threads) as pool:
        for client in range(num_clients):
            if len(waiting) == _HELD_PER_THREAD * num_threads:
                yield waiting.popleft().result()
            waiting.append(pool.submit(function, client))
        while waiting:
            yield waiting.popleft().result()


def own_predictions(
    process: FederatedProcess,
    server_state: ServerState,
    state: ClientState,
    population: Population,
    client: int,
    examples: Mapping[str, np.ndarray],
    *,
    seed: int,
) -> Mapping[str, np.ndarray]:
    """Returns what a client's own model says, adapted first where the method has it so.

    Args:
      process: The process.
      server_state: Its server state.
      state: The client's.
      population: The clients.
      client: The client's index.
      examples: Columns that the network reads, [n, ...].
      seed: Of the run, for what adapting and sampling draw.

    Returns:
      Outputs by name, [n, ...] each, as in the local test of the same round.
    """
    train = population[client].train
    drawn = seeding.stateless_seed(seed, seeding.EVALUATION, int(server_state.round), client)
    model = process.adapt(server_state, state, train, client=client, seed=drawn)
    return process.predict(
        *model, examples, client=client, num_examples=len(train["y"]), seed=drawn
    )


def logits_of(
    process: FederatedProcess,
    weights: Weights,
    state: ClientState,
    examples: Mapping[str, np.ndarray],
    client: int = 0,
    num_train_examples: int | None = None,
    seed: Sequence[int] | np.ndarray = (0, 0),
) -> np.ndarray:
    """Returns one model's logits, float64 [n, classes].

    Args:
      process: The process.
      weights: Its global variables; tensors are not converted at each call.
      state: The client's.
      examples: Columns [n, ...], n > 0, among them `y`, integers [n].
      client: The client's index.
      num_train_examples: How many examples the client trains on, for models that ask.
      seed: int32 [2], for models that draw samples.

    Raises:
      ValueError: If the model gives no logits, or a label is not one of its classes.
      KeyError: If the examples lack a column of the model.
    """
    columns = {name: examples[name] for name in process.model.example_spec}
    outputs = process.predict(
        weights, state, columns, client=client, num_examples=num_train_examples, seed=seed
    )
    if "logits" not in outputs:
        raise ValueError(f"The model gives no logits to test, only {', '.join(outputs)}.")
    labels = np.asarray(examples["y"])
    logits = outputs["logits"].astype(np.float64)
    num_classes = logits.shape[-1]
    if labels.min() < 0 or labels.max() >= num_classes:
        raise ValueError(
            f"The model has classes 0 to {num_classes - 1}, found labels from {labels.min()} to "
            f"{labels.max()}."
        )
    return logits


def judge(logits: np.ndarray, labels: np.ndarray) -> Judged:
    """Returns what logits [n, classes] are worth beside labels [n], n > 0."""
    labels = np.asarray(labels)
    # Not sklearn's log_loss: it takes probabilities, which it has to clip, so that a confident
    # mistake would cost at most 36 nats. A diverged model's nan is an answer, not a warning.
    with np.errstate(invalid="ignore"):
        log_probabilities = scipy.special.log_softmax(logits, axis=-1)
    loss = -np.mean(log_probabilities[np.arange(len(labels)), labels])
    return Judged(float(np.mean(labels == logits.argmax(axis=-1))), float(loss))
