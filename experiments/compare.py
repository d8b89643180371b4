"""Compares methods across data sets and partitions: a matrix of any metric, with intervals.

  python -m experiments.compare --datasets=digits --partitions=iid,disjoint_classes \\
      --methods=hdafl,fed_avg --seeds=3 --set=rounds=10 --output_dir=out

Columns are data sets and partitions, rows methods; a second table has each method's difference
to the first one, paired by seed. The page is OUTPUT_DIR/comparison/index.html.
"""

import dataclasses
import sys
from collections.abc import Sequence

from experiments import report
from experiments.run import command_line, plugins
from experiments.study import program
from experiments.study.experiment import Cell, Experiment, Form, Grid, Position, Scale, Training
from experiments.study.measures import Measure, metric
from tff_het.datasets import DATASETS
from tff_het.kinds import Whole
from tff_het.methods import METHODS
from tff_het.partitions import PARTITIONS

_SECONDS = 60.0  # Nothing is known of settings that a user chooses.


@dataclasses.dataclass(frozen=True)
class Settings(program.Making):
    """Settings of this program.

    Attributes:
      seeds: Seeds 0 to this, exclusive.
      datasets: Data sets.
      partitions: Partitions.
      methods: Methods; the first is the reference.
      metric: An entry of summary.json.
      set: A setting of experiments.train for all runs, such as rounds=10; may be repeated.
      plugin: As in training.
    """

    seeds: Whole | None = 3
    datasets: Sequence[str] = ("digits",)
    partitions: Sequence[str] = ("iid", "disjoint_classes")
    methods: Sequence[str] = ("hdafl", "fed_avg")
    metric: str = "local_test_accuracy_mean"
    set: tuple[str, ...] = ()
    plugin: Sequence[str] = ()


def experiment(
    *,
    data_sets: Sequence[str],
    partition_names: Sequence[str],
    method_names: Sequence[str],
    metric_name: str,
    common: Sequence[str],
    num_seeds: int,
) -> Experiment:
    """Makes the matrix.

    Args:
      data_sets: Data sets.
      partition_names: Partitions.
      method_names: Methods; the others are compared to the first.
      metric_name: An entry of `summary.json`.
      common: Flags of all runs, 'name=value'.
      num_seeds: Number of seeds.

    Raises:
      ValueError: If a name does not exist or is there twice, or a flag has no value.
    """
    _check("datasets", data_sets, sorted(DATASETS))
    _check("partitions", partition_names, sorted(PARTITIONS))
    _check("methods", method_names, list(METHODS))
    if without := [text for text in common if "=" not in text]:
        raise ValueError(f"--set takes name=value, found {without[0]!r}.")
    shared = dict(text.split("=", 1) for text in common)
    places = [(d, p) for d in data_sets for p in partition_names]

    def measure(place: tuple[str, str], method: str) -> Measure:
        return metric(_name(place, method), metric_name)

    cells = tuple(
        Cell(
            _name(place, method),
            Training({**shared, "dataset": place[0], "partition": place[1], "method": method}),
            _SECONDS,
        )
        for place in places
        for method in method_names
    )
    lists = {"datasets": data_sets, "partitions": partition_names, "methods": method_names}
    command = ["python -m experiments.compare"]
    command += [f"--{name}={','.join(names)}" for name, names in lists.items()]
    command += [f"--metric={metric_name}", *(f"--set={text}" for text in common)]
    command += [f"--seeds={num_seeds}"]
    form = Form(digits=4)
    reference = method_names[0]
    means = tuple(
        Position(method, "/".join(place), measure(place, method), form)
        for method in method_names
        for place in places
    )
    gaps = tuple(
        Position(
            f"{method} - {reference}",
            "/".join(place),
            measure(place, method) - measure(place, reference),
            form,
        )
        for method in method_names[1:]
        for place in places
    )
    grids = [Grid(metric_name, means, compare=False)]
    if gaps:
        grids.append(Grid(f"{metric_name}, paired difference", gaps, compare=False))
    return Experiment(
        paper="compare",
        name="matrix",
        title=f"{metric_name} by method, data set and partition",
        settings="None: no paper has this table.",
        scales={"quick": Scale(cells, num_seeds, f"Flags of all runs: {', '.join(common) or '-'}")},
        grids=tuple(grids),
        command=" ".join(command),
    )


def of(settings: Settings) -> Experiment:
    """Makes the matrix that the settings name."""
    assert settings.seeds is not None
    plugin = [f"plugin={','.join(settings.plugin)}"] if settings.plugin else []
    return experiment(
        data_sets=settings.datasets,
        partition_names=settings.partitions,
        method_names=settings.methods,
        metric_name=settings.metric,
        common=[*plugin, *settings.set],
        num_seeds=settings.seeds,
    )


def main(argv: Sequence[str]) -> int:
    """Makes the runs and writes the page; returns the exit code."""
    settings = command_line.settings(Settings, argv, __doc__)
    with command_line.errors_in_one_line():
        plugins.load(settings.plugin)
        made = of(settings)
        if (code := program.make_runs(made, "quick", settings)) == 0 and not settings.dry_run:
            print(report.write([made], command_line.folder(settings.output_dir), "comparison"))
    return code


def _name(place: tuple[str, str], method: str) -> str:
    return "/".join((*place, method))


def _check(flag: str, names: Sequence[str], known: Sequence[str]) -> None:
    wrong = [name for name in names if name not in known]
    if not names or wrong or len(set(names)) < len(names):
        raise ValueError(
            f"--{flag} takes different ones of {', '.join(known)}; found {', '.join(names)}."
        )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
