"""Compares methods across data sets and partitions: a matrix of any metric, with intervals.

  python -m experiments.compare --datasets=digits --partitions=iid,disjoint_classes \\
      --methods=hdafl,fed_avg --seeds=3 --set=rounds=10 --output_dir=out

Columns are data sets and partitions, rows methods; a second table has each method's difference
to the first one, paired by seed. The page is OUTPUT_DIR/comparison/index.html. It is a sweep over
three settings; `experiments.sweep` says what --over and --choose add to them.
"""

import dataclasses
import sys
from collections.abc import Sequence

from experiments import sweep
from experiments.run import command_line


@dataclasses.dataclass(frozen=True)
class Settings(sweep.Settings):
    """Settings of this program.

    Attributes:
      datasets: Data sets.
      partitions: Partitions.
      methods: Methods; the first is the reference.
    """

    datasets: Sequence[str] = ("digits",)
    partitions: Sequence[str] = ("iid", "disjoint_classes")
    methods: Sequence[str] = ("hdafl", "fed_avg")


def main(argv: Sequence[str]) -> int:
    """Makes the runs and writes the page; returns the exit code."""
    with command_line.errors_in_one_line():
        given = command_line.settings(Settings, argv, __doc__)
        axes = {"method": given.methods, "dataset": given.datasets, "partition": given.partitions}
        over = (f"{name}={','.join(values)}" for name, values in axes.items())
        settings = dataclasses.replace(given, over=(*over, *given.over))
        return sweep.run(settings, "compare.matrix", "comparison", argv)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
