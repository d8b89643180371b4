"""Profiles a round, in per cent, on the workloads of `round_time`.

  python -m experiments.benchmarks.round_profile

The whole training loop with a checkpoint a round, in this process. The parts are those of the
thread that runs the loop: it waits while clients train, and saving goes on beside the next round.
"""

import collections
import contextlib
import dataclasses
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

from experiments.benchmarks import round_time
from experiments.run import command_line
from experiments.study import files
from tff_het.backend import internals
from tff_het.backend.in_process import context
from tff_het.kinds import Whole
from tff_het.simulation import loop, runtime

_WARM_UP = 5
_PARTS = {
    "clients": "clients at work (TensorFlow, on their threads)",
    "server": "aggregation and server step (TensorFlow)",
    "in": "arguments in: checks, tensors",
    "out": "results out: arrays, containers",
    "call": "the rest of the call: finding the plan, the interpreter, TFF",
    "loop": "the loop: cohort, seeds, states, tables, waiting for the last save",
    "saving": "(beside the next round: saving)",
}


@dataclasses.dataclass(frozen=True)
class Settings:
    """Settings of this program.

    Attributes:
      rounds: Rounds profiled, after five to warm up.
    """

    rounds: Whole = 40


def main(argv: Sequence[str]) -> None:
    """Profiles the workloads and prints a table."""
    settings = command_line.settings(Settings, argv, __doc__)
    found = {name: profile(w, settings.rounds) for name, w in round_time.WORKLOADS.items()}
    rows = [["", *found], ["ms a round", *(f"{s['round'] * 1e3:.0f}" for s in found.values())]]
    for part, label in _PARTS.items():
        rows.append([label, *(f"{100 * s[part] / s['round']:.1f} %" for s in found.values())])
    print(files.as_table(rows))


def profile(workload: round_time.Workload, num_rounds: int) -> dict[str, float]:
    """Returns seconds of each part, and of a whole round: medians over rounds."""
    found: dict[str, list[float]] = collections.defaultdict(list)
    spent: collections.defaultdict[str, float] = collections.defaultdict(float)
    began = time.perf_counter()

    def after_round(*_: Any) -> None:
        nonlocal began
        now = time.perf_counter()
        parts = {part: spent[part] for part in _PARTS} | {"round": now - began}
        parts["loop"] = parts["round"] - spent["call"]
        parts["call"] -= sum(spent[part] for part in ("clients", "server", "in", "out"))
        for part, value in parts.items():
            found[part].append(value)
        spent.clear()
        began = time.perf_counter()

    with runtime.use("in_process"), _timed(spent), tempfile.TemporaryDirectory() as folder:
        round_time.train(workload, Path(folder), _WARM_UP + num_rounds, after_round)
    return {part: statistics.median(values[_WARM_UP:]) for part, values in found.items()}


@contextlib.contextmanager
def _timed(spent: collections.defaultdict[str, float]) -> Iterator[None]:
    """Inside, `spent` adds up the seconds of what a round consists of."""

    def timed(part: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            start = time.perf_counter()
            result = function(*args, **kwargs)
            # The server calls TensorFlow as clients do on their threads.
            if part != "server" or not threading.current_thread().name.startswith("client"):
                spent[part] += time.perf_counter() - start
            return result

        return call

    plan_of = context.Plans.__call__

    def timed_plan(self: Any, comp: Any) -> Any:
        plan = plan_of(self, comp)
        ingest = plan.ingest and timed("in", plan.ingest)
        return plan._replace(ingest=ingest, emit=timed("out", plan.emit))

    patches: list[tuple[Any, str, Any]] = [
        (context.Plans, "__call__", timed_plan),
        (context._Run, "map_clients", timed("clients", context._Run.map_clients)),
        (internals, "call", timed("server", internals.call)),
        (loop, "run_round", timed("call", loop.run_round)),
        (loop, "_save", timed("saving", loop._save)),
    ]
    with contextlib.ExitStack() as stack:
        for patch in patches:
            stack.enter_context(mock.patch.object(*patch))
        yield


if __name__ == "__main__":
    main(sys.argv[1:])
