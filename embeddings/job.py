"""A job from its settings to a complete folder, or to none."""

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

# Left out because a flag says so, not because something is wrong with them.
_CHOSEN = ("too_short",)


class Network(pipeline.Network, Protocol):
    """A network that says what its embeddings depend on."""

    @property
    def handle(self) -> str:
        """The module."""

    def blank(self) -> np.ndarray:
        """An example with nothing in it, to try the module with."""

    @property
    def settings(self) -> dict[str, Any]:
        """What they depend on beside module and input; JSON has all types."""


class FailedError(RuntimeError):
    """The job began, and could not be completed; nothing is at the output's place."""


@dataclasses.dataclass(frozen=True)
class Job:
    """What is embedded, with what, and where the result goes.

    Attributes:
      model: The kind of network, for people.
      network: Embeds.
      source: What to embed.
      output: The folder to write.
      examples_per_shard: Examples of one file, and of one element of the pipeline.
      max_error_fraction: Share of the examples that may be unusable.
      overwrite: Replace embeddings that are in the folder.
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
    """What a job did, and the seconds that it took."""

    summary: Summary
    seconds: float


def run(job: Job, options: PipelineOptions) -> Result | None:
    """Runs a job, unless its result is there.

    Args:
      job: The job.
      options: Beam's.

    Returns:
      What was written; None if it was there before.

    Raises:
      ValueError: The input, the module or what is at the output's place does not fit.
      FileNotFoundError: There is no such input.
      FailedError: Too many examples cannot be used, whose list is left beside the output; or the
        output cannot be written.
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
    stopping.clean_ups.append(output.clean)
    output.clean()
    if output.is_complete(overwrite=job.overwrite):
        return None
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
    # Beam makes a RuntimeError of what is raised in it.
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
    """Raises ValueError where the input is not for the network, or the module is another one."""
    with contextlib.suppress(UnusableError):  # One of those that are skipped.
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
