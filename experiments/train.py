"""Trains and compares federated methods on one data set, partitioned in one way.

Without flags: HDAFL and FedAvg on handwritten digits, five clients with two digits each.

  python -m experiments.train
  python -m experiments.train --dataset=fashion_mnist --data_dir=DIR --output_dir=runs/fashion
  python -m experiments.train --flagfile=experiments/presets/waffle_mnist.flags --output_dir=out

Every method gets a folder OUTPUT_DIR/<method>/ (flags.txt, metrics.csv, clients.csv,
summary.json, weights.npz, figures, tensorboard, checkpoints, with --acquisition also acquired.csv);
the comparison stands beside them. Repeat the command to continue a run that was stopped or killed.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

from experiments.run import command_line


def main(argv: Sequence[str]) -> int:
    """Trains all methods, one after another, and compares them; returns the exit code."""
    config = command_line.run_config(argv, __doc__)
    run = config.run
    with command_line.errors_in_one_line():
        # Here, since they bring TensorFlow, which help and errors of use come without.
        from experiments.run import aggregation, comparison, one, processes, setup
        from tff_het.simulation import runtime

        folder = command_line.folder(run.output_dir)
        more = {} if run.ray_deadline is None else {"deadline": run.ray_deadline}
        executing = runtime.use(run.runtime, clients_in_parallel=run.clients_in_parallel, **more)
        made = setup.make(config)
        for name in config.method.method:  # Refused before anything is written.
            one.rounds_done(folder / name, made, processes.identity(made, name))
        built = processes.build(made)
        promised = aggregation.describe(made)
        with executing:
            folder.mkdir(parents=True, exist_ok=True)
            with command_line.errors_in_one_line(exit_code=1):
                comparison.describe(made, folder)
                if run.save_initial_weights is not None:
                    one.save_initial_weights(built, Path(run.save_initial_weights))
                if promised:
                    print(promised)
                one.compare(built, made, folder)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
