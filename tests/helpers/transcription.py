"""A small network in NumPy, float64, for transcriptions of methods from their formulas.

A test runs a method's process over three rounds with `federate`, and writes the same rounds out in
NumPy, from the paper's formulas: with `gradients`, on the batches that `batches` gives.
"""

import collections
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from tff_het import methods, seeding
from tff_het.backend.names import tff
from tff_het.learning.local_training import LocalTraining
from tff_het.models import architectures

FEATURES, UNITS, CLASSES, RATE, BATCH = 4, 3, 3, 0.1, 4
# Three rounds of two of three clients, of unequal sizes: each round's cohort.
SIZES = (7, 4, 10)
COHORTS = ((0, 1), (1, 2), (0, 2))

Parameters = list[np.ndarray]  # Kernel and bias of the hidden layer, then of the output.
Examples = Mapping[str, np.ndarray]


def examples_of(client: int) -> Examples:
    """A client's examples; classes differ by client."""
    rng = np.random.default_rng(client)
    n = SIZES[client]
    return collections.OrderedDict(
        x=(rng.normal(size=(n, FEATURES)) + client).astype(np.float32),
        y=((np.arange(n) + client) % CLASSES).astype(np.int32),
    )


def gradients(parameters: Sequence[np.ndarray], batch: Examples) -> Parameters:
    """Gradients of the mean cross entropy of a batch."""
    kernel_1, bias_1, kernel_2, bias_2 = parameters
    x, y = batch["x"].astype(np.float64), batch["y"]
    hidden = np.maximum(x @ kernel_1 + bias_1, 0)
    error = _softmax(hidden @ kernel_2 + bias_2)
    error[np.arange(len(y)), y] -= 1
    error /= len(y)
    back = (error @ kernel_2.T) * (hidden > 0)
    return [x.T @ back, back.sum(0), hidden.T @ error, error.sum(0)]


def loss(parameters: Sequence[np.ndarray], examples: Examples) -> float:
    """The mean cross entropy."""
    probabilities = _softmax(logits(parameters, examples["x"]))
    return float(-np.log(probabilities[np.arange(len(examples["y"])), examples["y"]]).mean())


def logits(parameters: Sequence[np.ndarray], x: np.ndarray) -> np.ndarray:
    """Float64 [n, classes]."""
    return features(parameters, x) @ parameters[2] + parameters[3]


def features(parameters: Sequence[np.ndarray], x: np.ndarray) -> np.ndarray:
    """What the hidden layer gives, float64 [n, units]."""
    return np.maximum(x.astype(np.float64) @ parameters[0] + parameters[1], 0)


def _softmax(values: np.ndarray) -> np.ndarray:
    exponentials = np.exp(values - values.max(axis=1, keepdims=True))
    return exponentials / exponentials.sum(axis=1, keepdims=True)


def batches(examples: Examples, epochs: int = 2) -> Iterator[Examples]:
    """The batches of local training, in order; the last one of a pass is short."""
    for _ in range(epochs):
        for start in range(0, len(examples["y"]), BATCH):
            yield {name: column[start : start + BATCH] for name, column in examples.items()}


def sgd(
    parameters: Sequence[np.ndarray],
    examples: Examples,
    *,
    epochs: int = 2,
    rate: float = RATE,
    added: Callable[[Parameters], Sequence[Any]] = lambda w: [0.0] * len(w),
    trains: Sequence[bool] = (True,) * 4,
) -> Parameters:
    """Plain SGD; `added` to each gradient, given the parameters of the moment."""
    w = [np.array(value, np.float64) for value in parameters]
    for batch in batches(examples, epochs):
        steps = zip(w, gradients(w, batch), added(w), trains, strict=True)
        w = [v - rate * (g + a) if on else v for v, g, a, on in steps]
    return w


def build(method: str, **options: Any):
    """The method's process: plain SGD, two epochs in the order of the examples."""
    element = {"x": (np.dtype(np.float32), (FEATURES,)), "y": (np.dtype(np.int32), ())}

    def network(x, num_classes, layers):
        hidden = layers.dense(UNITS, "dense_1")(x)
        return hidden, layers.output(num_classes)(hidden)

    architecture = architectures.make("small", element, CLASSES, network)
    training = LocalTraining(
        tff.learning.optimizers.build_sgdm(RATE), batch_size=BATCH, epochs=2, shuffle=False
    )
    return methods.build(method, architecture, training, seed=1, **options)


def federate(process, cohorts: Sequence[Sequence[int]] = COHORTS) -> tuple[Any, dict[int, Any]]:
    """Runs rounds; returns the server's state, and the states of those who took part."""
    state, states = process.initialize(), {}
    for round_num, cohort in enumerate(cohorts):
        clients = [
            collections.OrderedDict(
                client=np.int32(client),
                seed=seeding.stateless_seed(1, seeding.CLIENT_WORK, round_num, client),
                examples=examples_of(client),
                state=states.get(client) or process.init_state(client, 1, state),
            )
            for client in cohort
        ]
        output = process.next(state, clients)
        state = output.state
        states |= {int(one["client"]): one["state"] for one in output.client_states}
    return state, states


def start_of(process) -> Parameters:
    """The initial parameters, in the model's order, global or local."""
    state = process.initialize()
    variables = (state.weights, state.initial_local)
    return [np.array(v, np.float64) for v in process.model.join(_Variables(*variables))]


_Variables = collections.namedtuple("_Variables", ["global_weights", "local_weights"])
