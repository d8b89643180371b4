"""Trains and compares federated methods on one data set, partitioned in one way.

Without flags: HDAFL and FedAvg on handwritten digits, five clients with two digits each.

  python -m experiments.train
  python -m experiments.train --dataset=fashion_mnist --data_dir=DIR --method=hdafl,fed_avg
  python -m experiments.train --flagfile=experiments/presets/hdafl_disjoint.flags

Every method gets a folder OUTPUT_DIR/<method>/ (flags.txt, metrics.csv, clients.csv,
summary.json, weights.npz, figures, tensorboard, checkpoints, and with --acquisition what was
acquired, acquired.csv); the comparison stands beside them. A run that was stopped or killed goes on
where it was when the same command is given again.
"""

import contextlib
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tqdm import tqdm

from experiments import aggregation, comparison, configure, summary
from experiments.flags import command_line, data, method
from experiments.flags import run as run_flags
from tff_het.evaluation import factors, figures
from tff_het.learning.process import FederatedProcess
from tff_het.simulation import checkpoints, loop, records, runtime, several_workers
from tff_het.simulation import start as starts


def main(argv: Sequence[str]) -> None:
    """Trains all methods, one after another, and compares them."""
    del argv
    with command_line.errors_in_one_line():
        folder = command_line.folder()
        executing = _runtime()
        configure.fill_in_defaults()
        made = configure.setup()
        # Refused before anything is written: what cannot be continued.
        done = {
            name: checkpoints.rounds_done(folder / name, configure.config(made, name))
            for name in method.METHOD.value
        }
        for name, rounds in done.items():
            loop.check_length(folder / name, rounds, made.settings)
        processes = configure.processes(made)
        promised = aggregation.describe(made)
        with executing:
            folder.mkdir(parents=True, exist_ok=True)
            with command_line.errors_in_one_line(exit_code=1):
                comparison.describe(made, folder)
                if promised:
                    print(promised)
                _train_all(processes, made, folder, done)


def _train_all(
    processes: Mapping[str, FederatedProcess],
    made: configure.Setup,
    folder: Path,
    done: Mapping[str, int],
) -> None:
    """Trains all methods and compares those that did not diverge."""
    diverged = {}
    for name, process in processes.items():
        try:
            train_method(name, process, made, folder / name, done[name])
        except loop.DivergedError as error:
            diverged[name] = error
    if len(diverged) < len(processes):
        print(comparison.write(made, folder, [name for name in processes if name not in diverged]))
        print(f"Results: {folder}; pictures: {folder / 'figures'}")
    if diverged:
        raise loop.DivergedError(" ".join(f"{name}: {why}" for name, why in diverged.items()))


def _runtime() -> contextlib.AbstractContextManager:
    """The runtime that the flags name, not opened yet.

    Raises:
      ValueError: If flags contradict each other.
      FileNotFoundError: If there is no folder for shared examples.
    """
    parallel = run_flags.CLIENTS_IN_PARALLEL.value
    deadline, shared = run_flags.WORKER_DEADLINE.value, run_flags.SHARED_EXAMPLES_DIR.value
    if run_flags.WORKERS.value is None:
        for name, value in (("worker_deadline", deadline), ("shared_examples_dir", shared)):
            if value is not None:
                raise ValueError(f"--{name} belongs to --workers: give that too.")
        return runtime.use(run_flags.RUNTIME.value, clients_in_parallel=parallel)
    return several_workers.use(
        run_flags.WORKERS.value,
        deadline=several_workers.DEADLINE_SECONDS if deadline is None else deadline,
        shared_examples_dir=shared,
        clients_in_parallel=parallel,
    )


def run(values: Mapping[str, str], folder: Path) -> None:
    """Trains one method as a part of another program, in the runtime that is installed.

    Args:
      values: Flags of this program by name, `method` with one method; all others have their
        defaults, whatever was given to the program that calls.
      folder: The method's folder; an unfinished run of the same flags is continued.

    Raises:
      ValueError: If the flags do not exist, contradict each other or do not fit the data.
      FileNotFoundError: If data are missing.
      CheckpointError: If the folder has a run of other flags.
      DivergedError: If a loss is not finite any more.
    """
    with configure.setup_with(values) as made:
        processes = configure.processes(made)
        if len(processes) != 1:
            raise ValueError(f"Expected one method, found {', '.join(processes)}.")
        ((name, process),) = processes.items()
        done = checkpoints.rounds_done(folder, configure.config(made, name))
        loop.check_length(folder, done, made.settings)
        train_method(name, process, made, folder, done, show=False)


def train_method(
    name: str,
    process: FederatedProcess,
    made: configure.Setup,
    folder: Path,
    done: int,
    *,
    show: bool = True,
) -> None:
    """Trains one method, or goes on with it after `done` rounds, and writes its summary.

    Args:
      name: The method.
      process: Its process.
      made: What is trained on.
      folder: The method's folder.
      done: How many rounds its run has.
      show: Whether there is a progress bar, and a picture of the factors where there are some.
    """
    folder.mkdir(parents=True, exist_ok=True)
    records.write_atomically(folder / "flags.txt", configure.flagfile(name))
    total = made.settings.rounds
    course = configure.course(made, name, process)
    with tqdm(
        total=total,
        initial=done,
        desc=name,
        unit="round",
        dynamic_ncols=True,
        # A bar redraws its line, which a file cannot: there, it would be a line each time.
        disable=None if show else True,
    ) as bar:
        result = loop.train(
            process,
            course.population,
            course.schedule,
            made.settings,
            evaluated=made.population,
            ledger=course.ledger,
            test_examples=made.common_test,
            folder=folder,
            config=configure.config(made, name),
            on_round=lambda row, seconds: _show(bar, row, seconds),
            start=made.start,
        )
    with contextlib.closing(result.client_states):
        if result.is_complete:
            used = factors.of_clients(process.model, summary.states(made, result))
            table = folder / "metrics.csv"
            found = summary.of_run(name, made, process, result, course, used, table)
            records.write_json(folder / "summary.json", found)
            if made.training.acquisition is not None:
                acquired = summary.acquired(made, course, result)
                records.write_atomically(folder / "acquired.csv", acquired)
            if used and show:
                figures.save(factors.figure(used), folder / "figures" / "factors.png")
            # The last file: who starts from this run needs the summary as well.
            starts.write(folder, starts.after(process, result.state))
    if result.stopped_by is not None:
        print(
            f"Stopped by {result.stopped_by.name} after round {result.rounds} of {total}: the same "
            "command goes on from there.",
            file=sys.stderr,
        )
        sys.exit(128 + result.stopped_by)


def _show(bar: tqdm, row: Mapping[str, Any], seconds: float) -> None:
    shown = {"loss": f"{row['train_loss']:.3f}"}
    if (accuracy := row.get("local_test_accuracy_mean")) is not None:  # Not in every round.
        shown["accuracy"] = f"{accuracy:.3f}"
    shown["MB"] = f"{(row['bytes_up'] + row['bytes_down']) / 1e6:.2f}"
    shown["s"] = f"{seconds:.2f}"
    bar.set_postfix(shown, refresh=False)
    bar.update()


if __name__ == "__main__":
    command_line.run(main, groups=(data, method, run_flags))
