"""Run a job: it ends with a complete output folder, or with none."""

import contextlib
import dataclasses
import time
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import tensorflow as tf
from apache_beam.options.pipeline_options import PipelineOptions

from embeddings import modules, pipeline, progress, stopping
from embeddings.examples import Item, UnusableError
from embeddings.outputs import Output
from embeddings.records import Summary
from embeddings.sources import Source
from tff_het.datasets import embedding_files

# Skipped because of a flag, so not counted as errors.
_CHOSEN = ("too_short",)


class Network(pipeline.Network, Protocol):
    """A network that states what its embeddings depend on."""

    @property
    def handle(self) -> str:
        """The module."""

    def blank(self) -> np.ndarray:
        """Returns an empty example, to try the module with."""

    @property
    def settings(self) -> dict[str, Any]:
        """What embeddings depend on, besides module and input; JSON types."""


class FailedError(RuntimeError):
    """Raised when a job that began cannot be completed; its output does not exist."""


@dataclasses.dataclass(frozen=True)
class Job:
    """Settings of a job.

    Attributes:
      model: Type of the network, for error messages and metadata.
      network: The network.
      source: The examples to embed.
      output: The folder to write.
      examples_per_shard: Examples per file, which is one element of the pipeline.
      max_error_fraction: Share of the examples that may be unusable, 0 to 1.
      overwrite: Whether to replace embeddings in the folder.
    """

    model: str
    network: Network
    source: Source
    output: str
    examples_per_shard: int = 1024
    max_error_fraction: float = 0.01
    overwrite: bool = False


@dataclasses.dataclass(frozen=True)
class Result:
    """What a job wrote, and how long it took in seconds."""

    summary: Summary
    seconds: float


def run(job: Job, options: PipelineOptions) -> Result | None:
    """Runs a job, unless its result exists.

    Args:
      job: The job.
      options: Beam's options.

    Returns:
      What was written; None if the result existed.

    Raises:
      ValueError: The input, the module or the existing output does not fit.
      FileNotFoundError: The input does not exist.
      FailedError: The output cannot be written, or too many examples are unusable. In that case
        their list is left beside the output.
    """
    graph = pipeline.empty(options)
    identity = {
        "format": embedding_files.FORMAT,
        "model": job.model,
        "module_fingerprint": modules.fingerprint(job.network.handle),
        "input_fingerprint": job.source.fingerprint(),
        "settings": job.network.settings,
    }
    output = Output(job.output, identity)
    output.put_back()
    if output.is_complete(overwrite=job.overwrite):
        return None
    stopping.clean_ups.append(output.clean)
    output.clean()
    items = job.source.items()
    if not items:
        raise ValueError("Expected at least one example to embed; found none. Check the input.")
    _check_fit(job, items)
    parts = pipeline.shards(items, job.examples_per_shard)
    output.begin()
    start = time.monotonic()
    try:
        with progress.shown(len(items), lambda: pipeline.num_finished(parts, output.partial)):
            summary = pipeline.run(graph, parts, job.source, job.network, output.partial)
        _check_errors(summary, len(items), job.max_error_fraction, output)
        metadata = identity | {"module": job.network.handle} | summary.description()
        output.finish(metadata, summary.skipped)
    except FailedError:
        raise
    # Beam turns what is raised in it into a RuntimeError.
    except (OSError, MemoryError, RuntimeError, ValueError, tf.errors.OpError) as error:
        found = str(error).strip() or "there is not enough memory"
        if "Traceback" in found:  # Of a worker process.
            found = found.splitlines()[-1]
        raise FailedError(
            f"{output.path} could not be written: {found:.500}. The same command begins anew."
        ) from error
    finally:
        output.clean()
    return Result(summary, time.monotonic() - start)


def _check_fit(job: Job, items: Sequence[Item]) -> None:
    """Raises ValueError if the network does not take the input, or the module is another one."""
    with contextlib.suppress(UnusableError):  # Will be skipped.
        job.network.decode(job.source.read(items[0]))
    blank = job.network.blank()
    try:
        job.network.embed([blank])
    except (TypeError, ValueError, tf.errors.OpError) as error:
        raise ValueError(
            f"The module {job.network.handle!r} does not take or give what --model={job.model}"
            f" does: {error!s:.500}"
        ) from error


def _check_errors(summary: Summary, total: int, allowed: float, output: Output) -> None:
    by_reason = summary.skipped_by_reason
    errors = sum(n for reason, n in by_reason.items() if reason not in _CHOSEN)
    if summary.num_records and errors <= allowed * total:
        return
    output.fail(summary.skipped)
    first = summary.skipped[0]
    raise FailedError(
        f"Expected at most {allowed:.2%} of {total} examples to be unusable, and not all of them;"
        f" found {errors / total:.2%}:"
        f" {', '.join(f'{n} {reason}' for reason, n in by_reason.items())}; the first is"
        f" {first['id']} ({first['detail']}). All are listed in {output.errors}. Mend them, or"
        " allow more with --max_error_fraction."
    )
