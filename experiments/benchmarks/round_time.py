"""Times a round against TensorFlow Federated's own federated averaging.

  python -m experiments.benchmarks.round_time --only=W1,W3

Random data. Ours is the whole training loop, in process, with a checkpoint after each round. TFF's
is `process.next` alone, in both of its forms, through its worker. "Bare" is the clients' steps
alone, in a graph without federation: what the machine takes for the arithmetic. They take turns,
block by block. Figures are medians over rounds; speedup is the faster of TFF's forms over ours.
The rows: W1, W2, W3, PFLlib, pfl-research, BlazeFL (experiments/benchmarks/README.md).
"""

import collections
import concurrent.futures
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import tensorflow as tf

from experiments.benchmarks import measuring
from experiments.benchmarks.measuring import Workload
from tff_het.backend.names import keras, tff
from tff_het.clients import Client, Population
from tff_het.datasets import Examples
from tff_het.learning import steps
from tff_het.models import networks
from tff_het.models.layers import Layers
from tff_het.models.model import EXAMPLE_WEIGHT, ClientContext
from tff_het.simulation import runtime

_ROUNDS_A_BLOCK = 5  # Of ours, so that what a save does beside the next round is timed as well.

_CONVOLUTIONS = networks.convolutions_and_dense((32, 64), 5, (512,), "same")
_PFLLIB = networks.convolutions_and_dense((32, 64), 5, (512,), "valid")
_BLAZEFL = networks.convolutions_and_dense((6, 16), 5, (120, 84), "valid")


def _pfl_research(x: tf.Tensor, num_classes: int, layers: Layers):
    for index, filters in enumerate((32, 64)):
        x = layers.conv(filters, 3, f"conv_{index + 1}", "valid")(x)
    x = networks.Dropout(0.25)(keras.layers.MaxPool2D()(x))
    x = layers.dense(128, "dense_1")(keras.layers.Flatten()(x))
    return x, layers.output(num_classes)(networks.Dropout(0.5)(x))


WORKLOADS = {
    "W1": Workload(networks.mlp([200]), (600, (784,), "uint8", 10), 4, 10),
    "W2": Workload(_CONVOLUTIONS, (200, (28, 28, 1), "uint8", 62), 1, 20),
    "W3": Workload(networks.mlp([64, 64], dropout=0.5), (320, (1024,), "float32", 2), 1, 32),
    "PFLlib": Workload(_PFLLIB, (2625, (28, 28, 1), "uint8", 10), 1, 10, 20, 2),
    "pfl-research": Workload(_pfl_research, (50, (32, 32, 3), "uint8", 10), 1, 10, 50, 2),
    "BlazeFL": Workload(_BLAZEFL, (500, (32, 32, 3), "uint8", 10), 5, 50, 100, 2),
}


def _rows(names: Sequence[str]) -> Iterator[tuple[str, dict[str, float]]]:
    with runtime.use("worker") as worker, runtime.use("in_process"):
        for name in names:
            yield name, _measured(WORKLOADS[name], worker)


def _measured(workload: Workload, worker: tff.framework.SyncContext) -> dict[str, float]:
    """Returns seconds a round of each contender on a workload, and the speedup."""
    forms = tff.learning.LoopImplementation
    clients = [measuring.examples(seed, *workload.form) for seed in range(workload.clients)]
    theirs = {f.name.lower(): _theirs(workload, clients, worker, f) for f in forms}
    others = theirs | {"bare": _bare(workload, clients)}
    seconds: dict[str, list[float]] = {name: [] for name in (*others, "ours")}
    began = time.perf_counter()

    def after_round(row: Mapping[str, Any], _: float) -> None:
        nonlocal began  # The seconds given are without what lies between two rounds.
        seconds["ours"].append(time.perf_counter() - began)
        for name, run_round in others.items() if row["round"] % _ROUNDS_A_BLOCK == 0 else ():
            started = time.perf_counter()
            run_round()
            seconds[name].append(time.perf_counter() - started)
        began = time.perf_counter()

    few = Population(Client(str(k), own, own, own) for k, own in enumerate(clients))
    rounds = workload.blocks * _ROUNDS_A_BLOCK
    with tempfile.TemporaryDirectory() as folder:
        measuring.train(workload.process(), few, Path(folder), rounds, after_round)
    # Without the first block, in which all are traced.
    medians = {k: statistics.median(v[len(v) // workload.blocks :]) for k, v in seconds.items()}
    return {**medians, "speedup": min(medians[name] for name in theirs) / medians["ours"]}


def _theirs(
    workload: Workload, clients: Sequence[Examples], worker: tff.framework.SyncContext, form: Any
) -> Callable[[], None]:
    """Builds TFF's averaging of the same network, in a form of its loop; returns a round of it."""
    data = [tf.data.Dataset.from_tensor_slices(collections.OrderedDict(own)) for own in clients]
    data = [own.shuffle(len(own)).repeat(workload.epochs) for own in data]
    data = [own.batch(workload.batch_size) for own in data]

    def model_fn():
        # TFF has no seed for our dropout: the same network with Keras's own.
        with mock.patch.object(networks, "Dropout", keras.layers.Dropout):
            full = workload.architecture().build(Layers())
        return tff.learning.models.from_keras_model(
            keras.Model(full.inputs, full.output["logits"]),
            loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
            input_spec=data[0].element_spec,
            metrics=[keras.metrics.SparseCategoricalAccuracy()],
        )

    sgd = tff.learning.optimizers.build_sgdm(measuring.LEARNING_RATE)
    build = tff.learning.algorithms.build_weighted_fed_avg
    process = build(model_fn, sgd, loop_implementation=form)
    with tff.framework.get_context_stack().install(worker):
        state = process.initialize()

    def run_round() -> None:
        nonlocal state
        with tff.framework.get_context_stack().install(worker):
            state = process.next(state, data).state

    return run_round


def _bare(workload: Workload, clients: Sequence[Examples]) -> Callable[[], Any]:
    """Builds the clients' steps on batches in a fixed order; returns a round of them."""
    model, size = workload.process().model, workload.batch_size

    @tf.function
    def train(variables, examples):
        number = len(examples["y"])
        client = ClientContext(0, number, 0)

        def step(index, variables):
            rows = tf.range(index * size, (index + 1) * size) % number
            batch = {name: tf.gather(column, rows) for name, column in examples.items()}
            batch[EXAMPLE_WEIGHT] = tf.ones([size])
            gradient, _ = steps.gradient(model, variables, batch, client, tf.stack([index, 0]))
            return index + 1, steps.moved(variables, gradient, -measuring.LEARNING_RATE)

        count = workload.epochs * -(-number // size)
        return tf.while_loop(lambda index, _: index < count, step, (0, variables))

    begun = tf.nest.map_structure(tf.constant, model.initial_variables(0))
    placed = [tf.nest.map_structure(tf.constant, dict(own)) for own in clients]
    threads = concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0)))
    return lambda: list(threads.map(lambda own: train(begun, own), placed))


if __name__ == "__main__":
    measuring.main(__doc__, tuple(WORKLOADS), _rows)
