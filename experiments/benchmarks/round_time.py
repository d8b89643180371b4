"""Times a round against TensorFlow Federated's own federated averaging.

  python -m experiments.benchmarks.round_time
  python -m experiments.benchmarks.round_time --workloads=W1,W3 --blocks=9

Ten clients a round on random data. Ours is the whole training loop: cohorts, client states,
metrics, tables and a checkpoint after each round, in process. TFF's is `process.next` alone, in
both of its forms, through its worker. They take turns, block by block, so that whatever else the
machine does hits all alike; the figures are medians over rounds, and speedup is the faster of TFF's
forms over ours. It fails if the weights differ from TFF's after two steps.

  W1  784-200-10, 240 steps of batch 10 a client
  W2  two convolutions of 5 x 5 (32, 64), 512 units, 62 classes; 10 steps of batch 20
  W3  1024-64-64-2 with dropout, 10 steps of batch 32
"""

import collections
import dataclasses
import functools
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from experiments.benchmarks import measuring
from experiments.run import command_line
from tff_het.backend.names import keras, tff
from tff_het.kinds import Whole
from tff_het.models import architectures, networks
from tff_het.models.layers import Layers
from tff_het.simulation import feeding, loop, runtime

CLIENTS = 10
_ROUNDS_A_BLOCK = 5  # Of ours, so that what a save does beside the next round is timed as well.


@dataclasses.dataclass(frozen=True)
class Workload:
    """A network, and how much data of which form each client trains on."""

    network: networks.Network
    shape: tuple[int, ...]
    dtype: str
    classes: int
    examples: int
    epochs: int
    batch_size: int
    without_dropout: networks.Network | None = None  # Where it has some.

    @property
    def architecture(self) -> architectures.Architecture:
        """For such data."""
        return measuring.architecture(self.network, self.shape, self.dtype, self.classes)

    @functools.cached_property
    def clients(self) -> list[measuring.Columns]:
        """All clients' examples."""
        form = (self.examples, self.shape, self.dtype, self.classes)
        return [measuring.examples(client, *form) for client in range(CLIENTS)]


def _convolutions(x: tf.Tensor, num_classes: int, layers: Layers):
    for index, filters in enumerate((32, 64)):
        x = keras.layers.MaxPool2D()(layers.conv(filters, 5, f"conv_{index + 1}")(x))
    x = layers.dense(512, "dense_1")(keras.layers.Flatten()(x))
    return x, layers.output(num_classes)(x)


_TWO_LAYERS = functools.partial(networks.mlp, [64, 64])
WORKLOADS = {
    "W1": Workload(networks.mlp([200]), (784,), "uint8", 10, 600, 4, 10),
    "W2": Workload(_convolutions, (28, 28, 1), "uint8", 62, 200, 1, 20),
    "W3": Workload(_TWO_LAYERS(0.5), (1024,), "float32", 2, 320, 1, 32, _TWO_LAYERS()),
}


@dataclasses.dataclass(frozen=True)
class Settings:
    """Settings of this program.

    Attributes:
      workloads: Which of W1, W2, W3.
      blocks: Blocks timed of each, after one to warm up.
    """

    workloads: Sequence[str] = ("W1", "W2", "W3")
    blocks: Whole = 7


def main(argv: Sequence[str]) -> None:
    """Measures, and prints a table of seconds a round."""
    settings = command_line.settings(Settings, argv, __doc__)
    found = ((name, measure(WORKLOADS[name], settings.blocks)) for name in settings.workloads)
    measuring.report("", found)


def measure(workload: Workload, blocks: int) -> dict[str, float]:
    """Returns seconds a round of each contender, and the speedup.

    Raises:
      AssertionError: If ours and TFF's weights differ after two steps.
    """
    with (
        runtime.use("worker") as worker,
        runtime.use("in_process"),
        tempfile.TemporaryDirectory() as folder,
    ):
        _check(workload, worker)
        forms = tff.learning.LoopImplementation
        theirs = {form.name.lower(): _tff(workload, form, worker) for form in forms}
        seconds: dict[str, list[float]] = {name: [] for name in (*theirs, "ours")}
        began = time.perf_counter()

        def after_round(row: Mapping[str, Any], _: float) -> None:
            nonlocal began  # The seconds given are without what lies between two rounds.
            block, round_in_block = divmod(row["round"], _ROUNDS_A_BLOCK)
            warm = block > 1 or (block == 1 and round_in_block)
            if warm:
                seconds["ours"].append(time.perf_counter() - began)
            for name, run_round in theirs.items() if not round_in_block else ():
                started = time.perf_counter()
                run_round()
                if warm:
                    seconds[name].append(time.perf_counter() - started)
            began = time.perf_counter()

        train(workload, Path(folder), (blocks + 1) * _ROUNDS_A_BLOCK, after_round)
    medians = {name: statistics.median(values) for name, values in seconds.items()}
    return {**medians, "speedup": min(medians[name] for name in theirs) / medians["ours"]}


def train(workload: Workload, folder: Path, rounds: int, on_round: loop.OnRound) -> None:
    """Ours: the loop of `experiments.train`."""
    ours = _process(workload, epochs=workload.epochs)
    measuring.train(ours, workload.clients, folder, rounds, on_round)


def _process(workload: Workload, **training: Any):
    training["batch_size"] = workload.batch_size
    return measuring.process("fed_avg", workload.architecture, training)


def _check(workload: Workload, worker: tff.framework.SyncContext) -> None:
    """Two steps on the same batches from the same weights, without dropout."""
    network = workload.without_dropout or workload.network
    plain = dataclasses.replace(workload, network=network, without_dropout=None)
    steps = slice(2 * workload.batch_size)
    few = [{name: column[steps] for name, column in e.items()} for e in workload.clients]
    ours = _process(plain, epochs=1, shuffle=False)
    state = ours.initialize()
    clients = [
        feeding.ClientInput(i, np.zeros(2, np.int32), e, ours.init_state(i, 0, state))
        for i, e in enumerate(few)
    ]
    found = feeding.run_round(ours, state, clients).state.weights.trainable
    batched = _batched(plain, few, shuffle=False)
    theirs = _tff_process(plain, batched)
    with tff.framework.get_context_stack().install(worker):
        weights = tff.learning.models.ModelWeights(state.weights.trainable, [])
        their_state = theirs.set_model_weights(theirs.initialize(), weights)
        their_state = theirs.next(their_state, batched).state
        expected = theirs.get_model_weights(their_state).trainable
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-5, err_msg="Ours differs from TFF's.")


def _batched(workload: Workload, examples: Sequence[measuring.Columns], *, shuffle: bool):
    """A data set for each client, as TFF takes them."""

    def dataset(own: measuring.Columns) -> tf.data.Dataset:
        data = tf.data.Dataset.from_tensor_slices(collections.OrderedDict(own))
        if shuffle:
            data = data.shuffle(workload.examples).repeat(workload.epochs)
        return data.batch(workload.batch_size)

    return list(map(dataset, examples))


def _tff_process(workload: Workload, batched: Sequence[tf.data.Dataset], form=None):
    def model_fn():
        return tff.learning.models.from_keras_model(
            _keras(workload),
            loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
            input_spec=batched[0].element_spec,
            metrics=[keras.metrics.SparseCategoricalAccuracy()],
        )

    return tff.learning.algorithms.build_weighted_fed_avg(
        model_fn,
        tff.learning.optimizers.build_sgdm(measuring.LEARNING_RATE),
        loop_implementation=form or tff.learning.LoopImplementation.DATASET_ITERATOR,
    )


def _tff(workload: Workload, form, worker: tff.framework.SyncContext) -> Callable[[], None]:
    batched = _batched(workload, workload.clients, shuffle=True)
    process = _tff_process(workload, batched, form)
    with tff.framework.get_context_stack().install(worker):
        state = process.initialize()

    def run_round():
        nonlocal state
        with tff.framework.get_context_stack().install(worker):
            state = process.next(state, batched).state

    return run_round


def _keras(workload: Workload) -> keras.Model:
    if workload.without_dropout is None:
        full = workload.architecture.build(Layers())
        return keras.Model(full.inputs, full.output["logits"])
    # TFF has no seed for our layer: the same network with Keras's own.
    layers = keras.layers
    x = inputs = keras.Input(workload.shape)
    for _ in range(2):
        x = layers.Dense(64, activation="relu")(layers.Dropout(0.5)(x))
    return keras.Model(inputs, layers.Dense(workload.classes)(x))


if __name__ == "__main__":
    main(sys.argv[1:])
