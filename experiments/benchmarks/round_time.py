"""Times a round against TensorFlow Federated's own federated averaging.

  python -m experiments.benchmarks.round_time
  python -m experiments.benchmarks.round_time --workloads=W1,W3 --blocks=9 --json=times.json

Ten clients a round on random data. Ours is the whole training loop: cohorts, client states,
metrics, tables and a checkpoint after each round, on --runtime. TFF's is `process.next` alone, in
both of its forms, through its worker. They take turns, block by block, so that whatever else the
machine does hits all alike; the figures are medians over rounds, and speedup is the faster of TFF's
forms over ours. It fails if the weights differ from TFF's after two steps.

  W1  784-200-10, 240 steps of batch 10 a client
  W2  two convolutions of 5 x 5 (32, 64), 512 units, 62 classes; 10 steps of batch 20
  W3  1024-64-64-2 with dropout, 10 steps of batch 32
"""

import collections
import contextlib
import dataclasses
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import tensorflow as tf

from experiments.run import command_line
from tff_het import methods
from tff_het.backend.names import keras, tff
from tff_het.clients import Client, Population
from tff_het.kinds import Whole
from tff_het.learning.client_work import LocalTraining
from tff_het.models import architectures, networks
from tff_het.models.layers import Layers
from tff_het.simulation import feeding, loop, records, runtime

CLIENTS = 10
_LEARNING_RATE = 0.05
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


def _convolutions(x: tf.Tensor, num_classes: int, layers: Layers):
    for index, filters in enumerate((32, 64)):
        x = keras.layers.MaxPool2D()(layers.conv(filters, 5, f"conv_{index + 1}")(x))
    x = layers.dense(512, "dense_1")(keras.layers.Flatten()(x))
    return x, layers.output(num_classes)(x)


WORKLOADS = {
    "W1": Workload(networks.mlp([200]), (784,), "uint8", 10, 600, 4, 10),
    "W2": Workload(_convolutions, (28, 28, 1), "uint8", 62, 200, 1, 20),
    "W3": Workload(
        networks.mlp([64, 64], dropout=0.5),
        (1024,),
        "float32",
        2,
        320,
        1,
        32,
        without_dropout=networks.mlp([64, 64]),
    ),
}


@dataclasses.dataclass(frozen=True)
class Settings:
    """Settings of this program.

    Attributes:
      workloads: Which of W1, W2, W3.
      blocks: Blocks timed of each, after one to warm up.
      runtime: What executes ours.
      json: A file for the figures.
    """

    workloads: Sequence[str] = ("W1", "W2", "W3")
    blocks: Whole = 7
    runtime: Literal["in_process", "worker"] = "in_process"
    json: str | None = None


def main(argv: Sequence[str]) -> None:
    """Measures, prints a table, and writes the figures."""
    settings = command_line.settings(Settings, argv, __doc__)
    figures = {}
    for name in settings.workloads:
        figures[name] = measure(WORKLOADS[name], settings.runtime, settings.blocks)
        shown = ", ".join(f"{k} {v:.3f}" for k, v in figures[name].items())
        print(f"{name} (s a round, medians of {settings.blocks} blocks): {shown}", flush=True)
    print(table(figures))
    if settings.json:
        records.write_json(Path(settings.json), figures)


def measure(workload: Workload, runtime_name: str, blocks: int) -> dict[str, float]:
    """Returns seconds a round of each contender, and the speedup.

    Raises:
      AssertionError: If ours and TFF's weights differ after two steps.
    """
    examples = [examples_of(workload, client) for client in range(CLIENTS)]
    with contextlib.ExitStack() as stack:
        worker = stack.enter_context(runtime.use("worker"))
        if runtime_name != "worker":
            stack.enter_context(runtime.use(runtime_name))
        _check(workload, examples, worker)
        theirs = {
            form.name.lower(): _tff(workload, examples, form, worker)
            for form in tff.learning.LoopImplementation
        }
        seconds: dict[str, list[float]] = {name: [] for name in (*theirs, "ours")}
        began = time.perf_counter()

        def after_round(row: Any, round_seconds: float) -> None:
            nonlocal began
            del round_seconds  # Without what lies between two rounds.
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

        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        train(workload, examples, folder, (blocks + 1) * _ROUNDS_A_BLOCK, after_round)
    medians = {name: statistics.median(values) for name, values in seconds.items()}
    best = min(value for name, value in medians.items() if name != "ours")
    return {**medians, "speedup": best / medians["ours"]}


def table(figures: dict[str, dict[str, float]]) -> str:
    """Returns the figures as a table in Markdown."""
    columns = list(next(iter(figures.values())))
    lines = ["| | " + " | ".join(columns) + " |", "|---" * (len(columns) + 1) + "|"]
    for name, row in figures.items():
        lines.append(f"| {name} | " + " | ".join(f"{row[c]:.3f}" for c in columns) + " |")
    return "\n".join(lines)


def examples_of(workload: Workload, client: int) -> collections.OrderedDict:
    generator = np.random.default_rng(client)
    size = (workload.examples, *workload.shape)
    x: np.ndarray
    if workload.dtype == "uint8":
        x = generator.integers(0, 256, size, np.uint8)
    else:
        x = generator.standard_normal(size, np.float32)
    y = generator.integers(0, workload.classes, workload.examples, np.int32)
    return collections.OrderedDict(x=x, y=y)


def _architecture(workload: Workload) -> architectures.Architecture:
    spec = {"x": (np.dtype(workload.dtype), workload.shape), "y": (np.dtype(np.int32), ())}
    return architectures.make("benchmark", spec, workload.classes, workload.network)


def _process(workload: Workload, *, seed: int = 0, **training: Any):
    optimizer = tff.learning.optimizers.build_sgdm(_LEARNING_RATE)
    settings = LocalTraining(optimizer, batch_size=workload.batch_size, **training)
    return methods.build("fed_avg", _architecture(workload), settings, seed=seed)


def train(workload: Workload, examples, folder: Path, rounds: int, on_round) -> None:
    """Ours: the loop of `experiments.train`, with a checkpoint after every round."""
    population = Population(
        Client(str(i), train=e, validation=_first(e, 0), test=_first(e, 10))
        for i, e in enumerate(examples)
    )
    result = loop.train(
        _process(workload, epochs=workload.epochs),
        population,
        lambda round_num: range(CLIENTS),
        loop.Settings(rounds=rounds, seed=0, eval_every=rounds),
        folder=folder,
        on_round=on_round,
    )
    result.client_states.close()


def _first(examples, n: int) -> dict[str, np.ndarray]:
    return {name: column[:n] for name, column in examples.items()}


def _check(workload: Workload, examples, worker) -> None:
    """Two steps on the same batches from the same weights, without dropout."""
    plain = dataclasses.replace(
        workload, network=workload.without_dropout or workload.network, without_dropout=None
    )
    few = [_first(e, 2 * workload.batch_size) for e in examples]
    ours = _process(plain, epochs=1, shuffle=False)
    state = ours.initialize()
    clients = [
        feeding.ClientInput(i, np.zeros(2, np.int32), e, ours.init_state(i, 0, state))
        for i, e in enumerate(few)
    ]
    found = feeding.run_round(ours, state, clients).state.weights.trainable
    theirs = _tff_process(plain, _batched(plain, few, shuffle=False)[0].element_spec)
    with tff.framework.get_context_stack().install(worker):
        weights = tff.learning.models.ModelWeights(state.weights.trainable, [])
        their_state = theirs.set_model_weights(theirs.initialize(), weights)
        their_state = theirs.next(their_state, _batched(plain, few, shuffle=False)).state
        expected = theirs.get_model_weights(their_state).trainable
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-5, err_msg="Ours differs from TFF's.")


def _batched(workload: Workload, examples, *, shuffle: bool) -> list[tf.data.Dataset]:
    def dataset(e):
        data = tf.data.Dataset.from_tensor_slices(collections.OrderedDict(e))
        if shuffle:
            data = data.shuffle(workload.examples).repeat(workload.epochs)
        return data.batch(workload.batch_size)

    return [dataset(e) for e in examples]


def _tff_process(workload: Workload, element_spec, form=None):
    def model_fn():
        return tff.learning.models.from_keras_model(
            _keras(workload),
            loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
            input_spec=element_spec,
            metrics=[keras.metrics.SparseCategoricalAccuracy()],
        )

    return tff.learning.algorithms.build_weighted_fed_avg(
        model_fn,
        tff.learning.optimizers.build_sgdm(_LEARNING_RATE),
        loop_implementation=form or tff.learning.LoopImplementation.DATASET_ITERATOR,
    )


def _tff(workload: Workload, examples, form, worker) -> Callable[[], Any]:
    batched = _batched(workload, examples, shuffle=True)
    process = _tff_process(workload, batched[0].element_spec, form)
    with tff.framework.get_context_stack().install(worker):
        state = process.initialize()

    def run_round():
        nonlocal state
        with tff.framework.get_context_stack().install(worker):
            state = process.next(state, batched).state

    return run_round


def _keras(workload: Workload) -> keras.Model:
    if workload.without_dropout is None:
        full = _architecture(workload).build(Layers())
        return keras.Model(full.inputs, full.output["logits"])
    # TFF has no seed for our layer: the same network with Keras's own.
    layers = keras.layers
    x = inputs = keras.Input(workload.shape)
    for _ in range(2):
        x = layers.Dense(64, activation="relu")(layers.Dropout(0.5)(x))
    return keras.Model(inputs, layers.Dense(workload.classes)(x))


if __name__ == "__main__":
    main(sys.argv[1:])
