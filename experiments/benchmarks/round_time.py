"""Times a round against TensorFlow Federated's own federated averaging.

  python -m experiments.benchmarks.round_time
  python -m experiments.benchmarks.round_time --only=W1,W3

Ten clients a round on random data. Ours is the whole training loop: cohorts, client states,
metrics, tables and a checkpoint after each round, in process. TFF's is `process.next` alone, in
both of its forms, through its worker. They take turns, block by block, so that whatever else the
machine does hits all alike; the figures are medians over rounds, and speedup is the faster of TFF's
forms over ours. tests/methods/fed_avg_test.py compares the weights that both give.

  W1  784-200-10, 240 steps of batch 10 a client
  W2  two convolutions of 5 x 5 (32, 64), 512 units, 62 classes; 10 steps of batch 20
  W3  1024-64-64-2 with dropout, 10 steps of batch 32
"""

import collections
import statistics
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import tensorflow as tf

from experiments.benchmarks import measuring
from experiments.benchmarks.measuring import Workload
from tff_het.backend.names import keras, tff
from tff_het.models import networks
from tff_het.models.layers import Layers
from tff_het.simulation import runtime

CLIENTS = 10
_BLOCKS = 7  # After one to warm up.
_ROUNDS_A_BLOCK = 5  # Of ours, so that what a save does beside the next round is timed as well.


def _convolutions(x: tf.Tensor, num_classes: int, layers: Layers):
    for index, filters in enumerate((32, 64)):
        x = keras.layers.MaxPool2D()(layers.conv(filters, 5, f"conv_{index + 1}")(x))
    x = layers.dense(512, "dense_1")(keras.layers.Flatten()(x))
    return x, layers.output(num_classes)(x)


WORKLOADS = {
    "W1": Workload(networks.mlp([200]), (784,), "uint8", 10, 600, 4, 10),
    "W2": Workload(_convolutions, (28, 28, 1), "uint8", 62, 200, 1, 20),
    "W3": Workload(networks.mlp([64, 64], dropout=0.5), (1024,), "float32", 2, 320, 1, 32),
}


def _measured(name: str) -> dict[str, float]:
    """Returns seconds a round of each contender on a workload, and the speedup."""
    workload = WORKLOADS[name]
    with (
        runtime.use("worker") as worker,
        runtime.use("in_process"),
        tempfile.TemporaryDirectory() as folder,
    ):
        forms = tff.learning.LoopImplementation
        clients = [workload.client(seed) for seed in range(CLIENTS)]
        theirs = {f.name.lower(): _Theirs(workload, clients, worker, f) for f in forms}
        seconds: dict[str, list[float]] = {name: [] for name in (*theirs, "ours")}
        began = time.perf_counter()

        def after_round(row: Mapping[str, Any], _: float) -> None:
            nonlocal began  # The seconds given are without what lies between two rounds.
            block, round_in_block = divmod(row["round"], _ROUNDS_A_BLOCK)
            warm = block > 1 or (block == 1 and round_in_block)
            if warm:
                seconds["ours"].append(time.perf_counter() - began)
            for name, contender in theirs.items() if not round_in_block else ():
                started = time.perf_counter()
                contender.run_round()
                if warm:
                    seconds[name].append(time.perf_counter() - started)
            began = time.perf_counter()

        rounds = (_BLOCKS + 1) * _ROUNDS_A_BLOCK
        measuring.train(workload.process(), clients, Path(folder), rounds, after_round)
    medians = {name: statistics.median(values) for name, values in seconds.items()}
    return {**medians, "speedup": min(medians[name] for name in theirs) / medians["ours"]}


class _Theirs:
    """TFF's federated averaging of the same network on the same clients, in its worker."""

    def __init__(
        self,
        workload: Workload,
        clients: Sequence[measuring.Columns],
        worker: tff.framework.SyncContext,
        form: Any,
    ):
        """Builds the process, in a form of its loop, and lets it begin."""
        data = [tf.data.Dataset.from_tensor_slices(collections.OrderedDict(o)) for o in clients]
        data = [own.shuffle(workload.examples).repeat(workload.epochs) for own in data]
        self._batched = [own.batch(workload.batch_size) for own in data]
        self._worker = worker

        def model_fn():
            # TFF has no seed for our dropout: the same network with Keras's own.
            with mock.patch.object(networks, "Dropout", keras.layers.Dropout):
                full = workload.architecture.build(Layers())
            return tff.learning.models.from_keras_model(
                keras.Model(full.inputs, full.output["logits"]),
                loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
                input_spec=self._batched[0].element_spec,
                metrics=[keras.metrics.SparseCategoricalAccuracy()],
            )

        sgd = tff.learning.optimizers.build_sgdm(measuring.LEARNING_RATE)
        build = tff.learning.algorithms.build_weighted_fed_avg
        self._process = build(model_fn, sgd, loop_implementation=form)
        with tff.framework.get_context_stack().install(worker):
            self._state = self._process.initialize()

    def run_round(self) -> None:
        with tff.framework.get_context_stack().install(self._worker):
            self._state = self._process.next(self._state, self._batched).state


if __name__ == "__main__":
    measuring.main(
        __doc__, "", tuple(WORKLOADS), lambda names: ((name, _measured(name)) for name in names)
    )
