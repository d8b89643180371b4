"""Compares methods across data sets and partitions: a matrix of any metric, with intervals.

  python -m experiments.compare --datasets=digits --partitions=iid,disjoint_classes \\
      --methods=hdafl,fed_avg --seeds=3 --set=rounds=10 --output_dir=out

Columns are data sets and partitions, rows methods; a second table has each method's difference
to the first one, paired by seed. The page is OUTPUT_DIR/comparison/index.html.
"""

import sys
from collections.abc import Sequence

from absl import flags

from experiments import report
from experiments.flags import command_line
from experiments.harness import program
from experiments.harness.experiment import Cell, Experiment, Form, Grid, Position, Scale, Training
from experiments.harness.measures import Measure, difference, metric
from tff_het import datasets, methods, partitions

_SECONDS = 60.0  # Nothing is known of settings that a user chooses.


def define_flags() -> flags.FlagValues:
    """Returns this program's flags, not yet parsed."""
    values = program.define_run_flags()
    lists = (
        ("datasets", datasets.names(), ["digits"], "Data sets"),
        ("partitions", partitions.names(), ["iid", "disjoint_classes"], "Partitions"),
        ("methods", methods.names(), ["hdafl", "fed_avg"], "Methods; the first is the reference"),
    )
    for name, known, default, what in lists:
        text = f"{what}, of: {', '.join(known)}."
        flags.DEFINE_list(name, default, text, flag_values=values)
    flags.DEFINE_string(
        "metric", "local_test_accuracy_mean", "An entry of summary.json.", flag_values=values
    )
    flags.DEFINE_multi_string(
        "set",
        [],
        "A flag of experiments.train for all runs, such as rounds=10; may be repeated.",
        flag_values=values,
    )
    values["seeds"].default = 3
    values["seeds"].unparse()
    return values


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
    _check("datasets", data_sets, datasets.names())
    _check("partitions", partition_names, partitions.names())
    _check("methods", method_names, methods.names())
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
            difference(measure(place, method), measure(place, reference)),
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


def of_flags(values: flags.FlagValues) -> Experiment:
    """Makes the matrix that the flags name."""
    return experiment(
        data_sets=values["datasets"].value,
        partition_names=values["partitions"].value,
        method_names=values["methods"].value,
        metric_name=values["metric"].value,
        common=values["set"].value,
        num_seeds=values["seeds"].value,
    )


def main(argv: Sequence[str]) -> int:
    """Makes the runs and writes the page; returns the exit code."""
    values = define_flags()
    program.parse(values, __doc__, argv)
    with command_line.errors_in_one_line():
        made = of_flags(values)
        if (code := program.make_runs(made, "quick", values)) == 0 and not values["dry_run"].value:
            print(report.write([made], command_line.folder(values), "comparison"))
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
    sys.exit(main(sys.argv))
