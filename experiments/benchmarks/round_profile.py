"""Profiles a round, in per cent, on the workloads of `round_time`.

  python -m experiments.benchmarks.round_profile

The whole training loop with a checkpoint a round, in this process. The parts are those of the
thread that runs the loop: it waits while clients train, and saving goes on beside the next round.
"""

import collections
import contextlib
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

from experiments.benchmarks import measuring, round_time
from tff_het.backend import internals
from tff_het.backend.in_process import context
from tff_het.simulation import loop, runtime

_WARM_UP, _ROUNDS = 5, 40
_PARTS = {
    "clients": "clients at work (TensorFlow, on their threads)",
    "server": "aggregation and server step (TensorFlow)",
    "in": "arguments in: checks, tensors",
    "out": "results out: arrays, containers",
    "call": "the rest of the call: finding the plan, the interpreter, TFF",
    "loop": "the loop: cohort, seeds, states, tables, waiting for the last save",
    "saving": "(beside the next round: saving)",
}


def main(argv: Sequence[str]) -> None:
    """Profiles the workloads and prints a table."""
    names = measuring.chosen(argv, __doc__, tuple(round_time.WORKLOADS))
    measuring.report("", ((name, profile(round_time.WORKLOADS[name])) for name in names))


def profile(workload: measuring.Workload) -> dict[str, float]:
    """Returns milliseconds a round, and the share of each part in per cent: medians over rounds."""
    rounds: list[dict[str, float]] = []
    spent: dict[str, float] = collections.defaultdict(float)
    began = time.perf_counter()

    def after_round(*_: Any) -> None:
        nonlocal began
        spent["round"] = time.perf_counter() - began
        spent["loop"] = spent["round"] - spent["call"]
        spent["call"] -= sum(spent[part] for part in ("clients", "server", "in", "out"))
        rounds.append({part: spent[part] for part in (*_PARTS, "round")})
        spent.clear()
        began = time.perf_counter()

    with runtime.use("in_process"), _timed(spent), tempfile.TemporaryDirectory() as folder:
        round_time.train(workload, Path(folder), _WARM_UP + _ROUNDS, after_round)
    found = {part: statistics.median(r[part] for r in rounds[_WARM_UP:]) for part in rounds[0]}
    shares = {label: 100 * found[part] / found["round"] for part, label in _PARTS.items()}
    return {"ms a round": 1e3 * found["round"], **shares}


@contextlib.contextmanager
def _timed(spent: dict[str, float]) -> Iterator[None]:
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

    with (
        mock.patch.object(context.Plans, "__call__", timed_plan),
        mock.patch.object(context._Run, "map_clients", timed("clients", context._Run.map_clients)),
        mock.patch.object(internals, "call", timed("server", internals.call)),
        mock.patch.object(loop, "run_round", timed("call", loop.run_round)),
        mock.patch.object(loop, "_save", timed("saving", loop._save)),
    ):
        yield


if __name__ == "__main__":
    main(sys.argv[1:])
