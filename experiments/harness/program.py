"""The main function of every table and figure.

Flags of a harness program are few and its own: those of the training program belong to the cells.
"""

import functools
import os
import signal
import sys
import time
from collections.abc import Sequence

from absl import flags, logging

from experiments.flags import command_line, numbers
from experiments.harness import jobs, runner, store
from experiments.harness.experiment import SCALES, Experiment
from experiments.harness.store import Status
from tff_het.simulation import runtime, several_workers


def define_flags() -> flags.FlagValues:
    """Returns the flags of a table or figure, not yet parsed."""
    values = define_run_flags()
    flags.DEFINE_enum(
        "scale",
        "quick",
        SCALES,
        "smoke: seconds, to see that it runs; quick: at most an hour a paper on two cores; paper: "
        "the paper's own settings.",
        flag_values=values,
    )
    return values


def define_run_flags() -> flags.FlagValues:
    """Returns the flags of all programs that make runs, not yet parsed."""
    values = flags.FlagValues()
    flags.DEFINE_string(
        "data_dir",
        None,
        "A folder with one folder for each data set; cells whose data are not there say so. "
        "Without, data sets are downloaded where that is possible.",
        flag_values=values,
    )
    flags.DEFINE_string("output_dir", "runs", "Where the results go.", flag_values=values)
    numbers.whole(
        "seeds",
        None,
        "Seeds 0 to this, exclusive. Default: what the scale has.",
        flag_values=values,
    )
    flags.DEFINE_bool(
        "dry_run", False, "Print the plan with the time it may take, and stop.", flag_values=values
    )
    flags.DEFINE_string(
        "shard", "1/1", "i/n makes part i of n, each on a machine of its own.", flag_values=values
    )
    numbers.whole(
        "jobs",
        None,
        "Runs made at the same time, each in a process of its own, with the runtime in_process. "
        "Default: one a core. No result depends on it; what measures time runs alone.",
        flag_values=values,
    )
    flags.DEFINE_enum(
        "runtime", "in_process", list(runtime.RUNTIMES), "As in training.", flag_values=values
    )
    flags.DEFINE_list("workers", None, "As in training.", flag_values=values)
    numbers.real("worker_deadline", None, "As in training.", above=True, flag_values=values)
    return values


def main(experiment: Experiment, description: str | None, argv: Sequence[str] | None = None) -> int:
    """The main function of a table or figure.

    Args:
      experiment: What is run.
      description: The program's docstring, for its help.
      argv: Its command line; by default the process's.

    Returns:
      The exit code: 1 where runs failed. Where flags do not fit, the program ends with code 2.
    """
    values = define_flags()
    parse(values, description, argv or sys.argv)
    with command_line.errors_in_one_line():
        return make_runs(experiment, values["scale"].value, values)


def parse(values: flags.FlagValues, description: str | None, argv: Sequence[str]) -> None:
    """Reads a command line; ends the program where it asks for help or does not fit."""
    if {"--help", "-h", "--helpshort"} & set(argv[1:]):
        print(f"{description or ''}\n{values.get_help()}")
        sys.exit(0)
    command_line.read(values, list(argv))


def make_runs(experiment: Experiment, scale: str, values: flags.FlagValues) -> int:
    """Makes the runs of one scale, or prints their plan; returns the exit code.

    Raises:
      ValueError: If flags do not fit, or a file of results is damaged.
      OSError: If a file cannot be read or written.
    """
    logging.set_verbosity(logging.WARNING)
    if scale not in experiment.scales:
        raise ValueError(
            f"{experiment.id} has no scale {scale}, only {', '.join(experiment.scales)}."
        )
    index, parts = _shard(values["shard"].value)
    executing, count = _executing(values), _jobs(values)
    output_dir = command_line.folder(values)
    seeds = range(values["seeds"].value or experiment.scales[scale].num_seeds)
    tasks = runner.shard(runner.plan(experiment, scale, seeds, output_dir), index, parts)
    if values["dry_run"].value:
        print(plan_text(tasks, values["data_dir"].value))
        return 0
    for task in tasks:
        store.read(task.folder)  # What is damaged is refused before work starts.
    store.write_seeds(output_dir / experiment.paper / experiment.name / scale, seeds)
    # Between two runs, where no training listens to it.
    before = signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    try:
        with command_line.errors_in_one_line(exit_code=1):
            return _run(tasks, values, executing, count)
    finally:
        signal.signal(signal.SIGTERM, before)


def _executing(values: flags.FlagValues) -> runner.Executing:
    """What the flags name to execute runs.

    Raises:
      ValueError: If they contradict each other, or an address is none.
    """
    addresses, deadline = values["workers"].value, values["worker_deadline"].value
    if addresses is None:
        if deadline is not None:
            raise ValueError("--worker_deadline belongs to --workers: give that too.")
        return runner.on(values["runtime"].value)
    use = functools.partial(
        several_workers.use,
        addresses,
        deadline=several_workers.DEADLINE_SECONDS if deadline is None else deadline,
    )
    use()  # Checks the addresses; nothing is opened before it is entered.
    return runner.Executing(f"worker, clients on {len(addresses)} more", use)


def _jobs(values: flags.FlagValues) -> int:
    """How many runs are made at the same time.

    Raises:
      ValueError: If several are asked for in a runtime that does not allow it.
    """
    is_here = values["workers"].value is None and values["runtime"].value == "in_process"
    asked = values["jobs"].value
    if asked is not None and asked > 1 and not is_here:
        raise ValueError("--jobs belongs to --runtime=in_process: leave one of the two out.")
    if not is_here or not jobs.possible():
        return 1
    return asked or len(os.sched_getaffinity(0))


def _run(
    tasks: Sequence[runner.Task],
    values: flags.FlagValues,
    executing: runner.Executing,
    count: int,
) -> int:
    bad, began = 0, time.perf_counter()
    run_all = runner.run_all if count == 1 else functools.partial(jobs.run_all, count=count)
    made = run_all(tasks, data_dir=values["data_dir"].value, executing=executing)
    for number, (task, result) in enumerate(made, start=1):
        passed = time.perf_counter() - began
        print(
            f"[{number}/{len(tasks)}, {_duration(passed)}] {task.cell.name}, seed {task.seed}: "
            f"{result.status.value}{f' ({result.error})' if result.error else ''}",
            flush=True,
        )
        bad += result.status not in (Status.OK, Status.MISSING_DATA)
    output_dir = values["output_dir"].value
    print(f"The page: python -m experiments.report --output_dir={output_dir}")
    return 1 if bad else 0


def plan_text(tasks: Sequence[runner.Task], data_dir: str | None) -> str:
    """Returns which runs there are to make, and about how long that takes."""
    lines, total = [], 0.0
    for task in tasks:
        done = runner.is_done(task, data_dir)
        seconds = 0.0 if done else runner.expected_seconds(task)
        total += seconds
        state = "done" if done else f"about {_duration(seconds)}"
        if (status := store.read(task.folder).status) not in (Status.ABSENT, Status.OK):
            state += f" ({status.value} before)"
        lines.append(f"{task.cell.name}, seed {task.seed}: {state}")
    return "\n".join([*lines, f"{len(tasks)} runs, about {_duration(total)} on two cores."])


def _duration(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


def _shard(text: str) -> tuple[int, int]:
    index, _, count = text.partition("/")
    if index.isdecimal() and count.isdecimal() and 1 <= int(index) <= int(count):
        return int(index), int(count)
    raise ValueError(f"--shard is i/n with 1 <= i <= n, such as 2/4; found {text!r}.")
