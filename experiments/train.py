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

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from experiments.run import command_line
from experiments.run.config import RunConfig

if TYPE_CHECKING:
    from experiments.run.setup import Setup
    from tff_het.learning.process import FederatedProcess


def main(argv: Sequence[str]) -> int:
    """Trains all methods, one after another, and compares them; returns the exit code."""
    train(command_line.run_config(argv, __doc__))
    return 0


def train(config: RunConfig) -> None:
    """Trains all methods of a config, with one line where something does not fit."""
    # Here, since they bring TensorFlow, which help and errors of use come without.
    from experiments.run import aggregation, comparison, executing, one, processes, setup
    from tff_het.simulation import checkpoints, loop

    run = config.run
    with command_line.errors_in_one_line():
        folder = command_line.folder(run.output_dir)
        runtime = executing.use(
            run.runtime,
            run.workers,
            run.worker_deadline,
            shared_examples_dir=run.shared_examples_dir,
            clients_in_parallel=run.clients_in_parallel,
        )
        made = setup.make(config)
        # Refused before anything is written: what cannot be continued.
        done = {
            name: checkpoints.rounds_done(folder / name, processes.identity(made, name))
            for name in config.method.method
        }
        for name, rounds in done.items():
            loop.check_length(folder / name, rounds, made.settings)
        built = processes.build(made)
        promised = aggregation.describe(made)
        with runtime:
            folder.mkdir(parents=True, exist_ok=True)
            with command_line.errors_in_one_line(exit_code=1):
                comparison.describe(made, folder)
                if run.save_initial_weights is not None:
                    one.save_initial_weights(built, Path(run.save_initial_weights))
                if promised:
                    print(promised)
                _train_all(built, made, folder, done)


def _train_all(
    processes: Mapping[str, "FederatedProcess"],
    made: "Setup",
    folder: Path,
    done: Mapping[str, int],
) -> None:
    """Trains all methods and compares those that did not diverge."""
    from experiments.run import comparison, one
    from tff_het.simulation.loop import DivergedError

    diverged = {}
    for name, process in processes.items():
        try:
            result = one.train_method(name, process, made, folder / name, done[name], show=True)
            result.client_states.close()
        except DivergedError as error:
            diverged[name] = error
    if len(diverged) < len(processes):
        print(comparison.write(made, folder, [name for name in processes if name not in diverged]))
        print(f"Results: {folder}; pictures: {folder / 'figures'}")
    if diverged:
        raise DivergedError(" ".join(f"{name}: {why}" for name, why in diverged.items()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
