"""The Beam pipeline: embeds shards of examples, writes a file for each, and summarizes all.

An element is a shard, a range of about a thousand examples, and becomes one file. So networks get
whole batches, no embedding moves between workers, each worker holds one shard in memory, and a
shard's bytes do not depend on which worker computes it, or how often.
"""

import collections
import concurrent.futures
import dataclasses
import json
import logging
import os
import shlex
import sys
import uuid
from collections.abc import Iterator, Sequence
from typing import Any, Protocol

import apache_beam as beam
import numpy as np
import tensorflow as tf
from apache_beam.options.pipeline_options import (
    DirectOptions,
    PipelineOptions,
    StandardOptions,
)
from apache_beam.runners.portability.fn_api_runner import FnApiRunner
from apache_beam.transforms.environments import SubprocessSDKEnvironment

from embeddings import progress, records, worker
from embeddings.examples import Item, UnusableError
from embeddings.records import Summary
from embeddings.sources import Source
from tff_het import dying_with_parent

_SUMMARY = "summary.json"
_READERS = 2  # Threads that read and decode while the network computes.
_AHEAD = 64  # Examples that are read ahead.
_DIRECT = ("", "direct", "directrunner")


class Network(Protocol):
    """A network; holds the module's handle, not the module, because it is sent to workers."""

    @property
    def batch_size(self) -> int:
        """Total `size` of the examples for one call of `embed`."""

    def decode(self, content: bytes | np.ndarray) -> np.ndarray:
        """Decodes an example; raises UnusableError."""

    def size(self, example: np.ndarray) -> int:
        """Share of `batch_size` that an example takes."""

    def padded(self, example: np.ndarray) -> bool:
        """Whether an example is too short and will be padded."""

    def embed(self, examples: Sequence[np.ndarray]) -> np.ndarray:
        """Embeds examples; returns float32 [n, dimension]."""


@dataclasses.dataclass(frozen=True)
class Shard:
    """Examples that become one file."""

    name: str
    items: tuple[Item, ...]


@dataclasses.dataclass(frozen=True)
class Written:
    """A shard's records, not yet written to a file."""

    name: str
    serialized: list[bytes]
    summary: Summary


def shards(items: Sequence[Item], examples_per_shard: int) -> list[Shard]:
    """Cuts examples into ranges of at most this many."""
    starts = range(0, len(items), examples_per_shard)
    return [
        Shard(
            f"embeddings-{index:05}-of-{len(starts):05}.tfrecord",
            tuple(items[start : start + examples_per_shard]),
        )
        for index, start in enumerate(starts)
    ]


def num_finished(parts: Sequence[Shard], folder: str) -> int:
    """Counts the examples of the shards whose files are complete."""
    names = {os.path.basename(path) for path in tf.io.gfile.glob(f"{folder}/embeddings-*.tfrecord")}
    return sum(len(part.items) for part in parts if part.name in names)


def empty(options: PipelineOptions) -> beam.Pipeline:
    """Makes an empty pipeline.

    Args:
      options: Beam's options. Without a runner, or with DirectRunner, workers are threads of this
        process, or child processes, as `direct_running_mode` says.

    Raises:
      ValueError: The runner does not exist, or requires other options.
    """
    name = options.view_as(StandardOptions).runner or ""
    # DirectRunner itself would try to download a server and start it as another process.
    runner = _local_runner(options) if name.lower() in _DIRECT else name
    pipeline = beam.Pipeline(runner=runner, options=options)
    # Only transforms in other languages use this folder, which would outlive a killed job.
    os.rmdir(pipeline.local_tempdir)
    return pipeline


def _local_runner(options: PipelineOptions) -> FnApiRunner:
    direct = options.view_as(DirectOptions)
    if direct.direct_running_mode != "multi_processing":
        return FnApiRunner()
    # Beam's own worker processes would outlive this one if it is killed.
    direct.direct_running_mode = None
    script, parent = dying_with_parent.__file__, str(os.getpid())
    command = shlex.join([sys.executable, script, parent, sys.executable, "-m", worker.__name__])
    return FnApiRunner(SubprocessSDKEnvironment.from_command_string(f"exec {command}"))


def run(
    pipeline: beam.Pipeline,
    parts: Sequence[Shard],
    source: Source,
    network: Network,
    folder: str,
) -> Summary:
    """Embeds all shards, and writes a file for each.

    Args:
      pipeline: An empty pipeline.
      parts: The shards.
      source: Reads the examples.
      network: Embeds the examples.
      folder: Existing folder for the files, writable for all workers.

    Returns:
      The summary of all shards.
    """
    # These loggers would print errors that are also raised here, with a traceback.
    for name in ("common", "portability.local_job_service"):
        logging.getLogger(f"apache_beam.runners.{name}").setLevel(logging.CRITICAL)
    _ = (
        pipeline
        | "Shards" >> beam.Create(parts)
        | "Embed" >> beam.ParDo(EmbedShard(source, network))
        | "Write" >> beam.ParDo(WriteShard(folder))
        | "Merge" >> beam.CombineGlobally(records.merge)
        | "Summary" >> beam.Map(_write_summary, folder)
    )
    pipeline.run().wait_until_finish()
    path = os.path.join(folder, _SUMMARY)
    with tf.io.gfile.GFile(path) as file:
        summary = Summary(**json.load(file))
    tf.io.gfile.remove(path)
    return summary


class EmbedShard(beam.DoFn):
    """Reads, decodes and embeds the examples of a shard, in batches."""

    def __init__(self, source: Source, network: Network):
        super().__init__()
        self._source = source
        self._network = network
        self._done = beam.metrics.Metrics.counter("embeddings", "examples")

    def process(self, element: Shard, *args: Any, **kwargs: Any) -> Iterator[Written]:
        """Yields the shard's records."""
        serialized: list[bytes] = []
        left_out = Summary()
        for batch in self._batches(element, left_out):
            embedded = self._network.embed([example for _, example in batch])
            for (item, _), embedding in zip(batch, embedded, strict=True):
                if np.isfinite(embedding).all():
                    serialized.append(records.serialize(item, embedding))
                else:
                    detail = "the network's output has NaN or infinite values"
                    _skip(left_out, item, "not_finite", detail)
            self._count(len(batch))
        summary = records.merge([left_out, records.summarize(element.name, serialized)])
        yield Written(element.name, serialized, summary)

    def _batches(self, shard: Shard, summary: Summary) -> Iterator[list[tuple[Item, np.ndarray]]]:
        """Yields batches of decoded examples, as many as the network takes at once."""
        batch: list[tuple[Item, np.ndarray]] = []
        taken = 0
        for item, example in _ahead(shard.items, self._decode):
            if isinstance(example, UnusableError):
                _skip(summary, item, example.reason, example.detail)
                self._count(1)
                continue
            size = self._network.size(example)
            if batch and taken + size > self._network.batch_size:
                yield batch
                batch, taken = [], 0
            batch.append((item, example))
            taken += size
            summary.padded += self._network.padded(example)
        if batch:
            yield batch

    def _decode(self, item: Item) -> np.ndarray | UnusableError:
        try:
            return self._network.decode(self._source.read(item))
        except UnusableError as error:
            return error

    def _count(self, examples: int) -> None:
        self._done.inc(examples)
        progress.report(examples)


class WriteShard(beam.DoFn):
    """Writes a shard's records; the file gets its name when it is complete."""

    def __init__(self, folder: str):
        super().__init__()
        self._folder = folder

    def process(self, element: Written, *args: Any, **kwargs: Any) -> Iterator[Summary]:
        """Yields the shard's summary."""
        path = os.path.join(self._folder, element.name)
        # A runner may send a shard to two workers at once.
        partial = f"{path}.{uuid.uuid4().hex}"
        with tf.io.TFRecordWriter(partial) as writer:
            for serialized in element.serialized:
                writer.write(serialized)
        tf.io.gfile.rename(partial, path, overwrite=True)
        yield element.summary


def _ahead(items, decode) -> Iterator[tuple[Item, np.ndarray | UnusableError]]:
    """Yields items with their decoded examples, in order; threads decode ahead."""
    with concurrent.futures.ThreadPoolExecutor(_READERS) as pool:
        waiting: collections.deque = collections.deque()
        for item in items:
            waiting.append((item, pool.submit(decode, item)))
            if len(waiting) > _AHEAD:
                first, future = waiting.popleft()
                yield first, future.result()
        for item, future in waiting:
            yield item, future.result()


def _skip(summary: Summary, item: Item, reason: str, detail: str) -> None:
    summary.skipped.append({"id": item.id, "reason": reason, "detail": detail})


def _write_summary(summary: Summary, folder: str) -> None:
    with tf.io.gfile.GFile(os.path.join(folder, _SUMMARY), "w") as file:
        file.write(json.dumps(dataclasses.asdict(summary)))
