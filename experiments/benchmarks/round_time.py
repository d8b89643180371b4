"""How long a round takes, against TensorFlow Federated's own federated averaging.

  python -m experiments.benchmarks.round_time
  python -m experiments.benchmarks.round_time --workloads=W1,W3 --rounds=15 --json=times.json

Ten clients a round on random data. Both of TFF's forms of local training run through its
worker; ours runs on --runtime. Rounds are interleaved, so that whatever else the machine does
hits all alike; the figures are medians, and speedup is the faster of TFF's forms over ours.

  W1  784-200-10, 240 steps of batch 10 a client
  W2  two convolutions of 5 x 5 (32, 64), 512 units, 62 classes; 10 steps of batch 20
  W3  1024-64-64-2 with dropout, 10 steps of batch 32
"""

import collections
import contextlib
import dataclasses
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff
from absl import flags

from experiments.flags import command_line
from tff_het import methods
from tff_het.learning.client_work import LocalTraining
from tff_het.models import architectures
from tff_het.simulation import feeding, records, runtime

_WORKLOADS = flags.DEFINE_list("workloads", ["W1", "W2", "W3"], "Which of W1, W2, W3.")
_ROUNDS = flags.DEFINE_integer("rounds", 9, "Rounds timed of each, after two to warm up.")
_RUNTIME = flags.DEFINE_enum("runtime", "worker", list(runtime.RUNTIMES), "What executes ours.")
_JSON = flags.DEFINE_string("json", None, "A file for the figures.")

_CLIENTS = 10
_LEARNING_RATE = 0.05


@dataclasses.dataclass(frozen=True)
class Workload:
    """A network, and how much data of which form each client trains on."""

    network: architectures.Network
    shape: tuple[int, ...]
    dtype: str
    classes: int
    examples: int
    epochs: int
    batch_size: int
    # TFF cannot run our layer without its seed: the same network with Keras's own.
    keras_dropout: float = 0.0


def _convolutions(x: tf.Tensor, num_classes: int):
    for filters in (32, 64):
        x = tf.keras.layers.Conv2D(filters, 5, padding="same", activation="relu")(x)
        x = tf.keras.layers.MaxPool2D()(x)
    x = tf.keras.layers.Dense(512, activation="relu")(tf.keras.layers.Flatten()(x))
    return x, tf.keras.layers.Dense(num_classes, name="output")(x)


WORKLOADS = {
    "W1": Workload(architectures.mlp([200]), (784,), "uint8", 10, 600, 4, 10),
    "W2": Workload(_convolutions, (28, 28, 1), "uint8", 62, 200, 1, 20),
    "W3": Workload(
        architectures.mlp([64, 64], dropout=0.5), (1024,), "float32", 2, 320, 1, 32, 0.5
    ),
}


def main(argv: Sequence[str]) -> None:
    """Measures, prints a table, and writes the figures."""
    del argv
    figures = {}
    for name in _WORKLOADS.value:
        figures[name] = measure(WORKLOADS[name], _RUNTIME.value, _ROUNDS.value)
        shown = ", ".join(f"{k} {v:.3f}" for k, v in figures[name].items())
        print(f"{name} (s a round, median of {_ROUNDS.value}): {shown}", flush=True)
    print(table(figures))
    if _JSON.value:
        records.write_json(Path(_JSON.value), figures)


def measure(workload: Workload, runtime_name: str, rounds: int) -> dict[str, float]:
    """Returns seconds a round of each contender, and the speedup."""
    examples = [_examples(workload, client) for client in range(_CLIENTS)]
    with runtime.use("worker") as worker, contextlib.ExitStack() as stack:
        ours = (
            worker if runtime_name == "worker" else stack.enter_context(runtime.use(runtime_name))
        )
        contenders: dict[str, Callable[[], Any]] = {
            form.name.lower(): _tff(workload, examples, form, worker)
            for form in tff.learning.LoopImplementation
        }
        contenders["ours"] = _ours(workload, examples, ours)
        seconds: dict[str, list[float]] = {name: [] for name in contenders}
        for round_num in range(rounds + 2):
            for name, run_round in contenders.items():
                began = time.perf_counter()
                run_round()
                if round_num >= 2:
                    seconds[name].append(time.perf_counter() - began)
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


def _examples(workload: Workload, client: int) -> collections.OrderedDict:
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


def _ours(workload: Workload, examples, context) -> Callable[[], Any]:
    optimizer = tff.learning.optimizers.build_sgdm(_LEARNING_RATE)
    training = LocalTraining(optimizer, batch_size=workload.batch_size, epochs=workload.epochs)
    process = methods.build("fed_avg", _architecture(workload), training, seed=0)
    with _installed(context):
        state = process.initialize()
    clients = [
        feeding.ClientInput(
            index, np.array([index, 0], np.int32), data, process.init_state(index, 0, state)
        )
        for index, data in enumerate(examples)
    ]

    def run_round():
        nonlocal state
        with _installed(context):
            state = feeding.run_round(process, state, clients).state

    return run_round


def _tff(workload: Workload, examples, form, context) -> Callable[[], Any]:
    batched = [
        tf.data.Dataset.from_tensor_slices(data)
        .shuffle(workload.examples)
        .repeat(workload.epochs)
        .batch(workload.batch_size)
        for data in examples
    ]

    def model_fn():
        return tff.learning.models.from_keras_model(
            _keras(workload),
            loss=tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True),
            input_spec=batched[0].element_spec,
            metrics=[tf.keras.metrics.SparseCategoricalAccuracy()],
        )

    process = tff.learning.algorithms.build_weighted_fed_avg(
        model_fn,
        tff.learning.optimizers.build_sgdm(_LEARNING_RATE),
        loop_implementation=form,
    )
    with _installed(context):
        state = process.initialize()

    def run_round():
        nonlocal state
        with _installed(context):
            state = process.next(state, batched).state

    return run_round


def _keras(workload: Workload) -> tf.keras.Model:
    if not workload.keras_dropout:
        full = _architecture(workload).build()
        return tf.keras.Model(full.inputs, full.output["logits"])
    layers = tf.keras.layers
    x = inputs = tf.keras.Input(workload.shape)
    for _ in range(2):
        x = layers.Dense(64, activation="relu")(layers.Dropout(workload.keras_dropout)(x))
    return tf.keras.Model(inputs, layers.Dense(workload.classes)(x))


def _installed(context):
    return tff.framework.get_context_stack().install(context)


if __name__ == "__main__":
    command_line.run(main)
