"""Measures how much the clients of a partition differ.

  python -m experiments.heterogeneity --dataset=digits --partition=iid --num_clients=5
  python -m experiments.heterogeneity --dataset=npz --data_dir=FILE --partition=clusters \\
      --num_clients=10 --shuffle_fraction=0.2 --output_dir=out

For each client: its training and test examples; the squared Frechet distance of its features to
those of all other clients together (Rieger et al. 2020, eq. 2); the earth mover's distance of its
classes to those of all clients (Zhao et al. 2018). The last line has the means; the
mean Frechet distance is Gamma (eq. 3). Both count training and test examples together. Features
are x, flattened: best are embeddings of a pre-trained network; images are scaled to [0, 1].

Flags of data and partitions, --plugin, --seed and --output_dir (writes heterogeneity.csv) count.
All others are ignored, so that presets can be given.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from experiments.run import command_line, comparison, data
from tff_het.clients import Population
from tff_het.evaluation import heterogeneity
from tff_het.simulation import records

_COLUMNS = ("client", "train_examples", "test_examples", "frechet_distance", "emd")


def main(argv: Sequence[str]) -> int:
    """Prints the table, and writes it where that is asked for; returns the exit code."""
    config = command_line.run_config(argv, __doc__)
    with command_line.errors_in_one_line():
        dealt = data.deal(config)
        rows = measure(dealt)
        # In training, results go somewhere by default.
        if config.run.output_dir and "output_dir" in config.origins:
            folder = Path(config.run.output_dir)
            folder.mkdir(parents=True, exist_ok=True)
            text = records.as_csv([_COLUMNS, *rows])
            records.write_atomically(folder / "heterogeneity.csv", text)
        print(f"{dealt.dataset.name}: {dealt.dataset.source}")
        print(dealt.partition.describe(dealt.dataset.train["y"], dealt.dataset.test["y"]))
        cells = ([f"{v:.6g}" if isinstance(v, float) else str(v) for v in row] for row in rows)
        print(comparison.aligned([_COLUMNS, *cells]))
    return 0


def measure(dealt: data.Dealt) -> list[list[Any]]:
    """Returns a row of `_COLUMNS` for each client in the partition's order, and last the means."""
    population = Population.from_partition(dealt.dataset, dealt.partition)
    scale = 255 if dealt.dataset.train["x"].dtype == np.uint8 else 1
    distances = heterogeneity.of_population(population, dealt.dataset.num_classes, scale=scale)
    sizes = (population.num_examples(split).tolist() for split in ("train", "test"))
    columns = [*sizes, *(one.tolist() for one in distances)]
    rows = zip(population.ids, *columns, strict=True)
    return [*map(list, rows), ["mean", *(float(np.mean(column)) for column in columns)]]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
