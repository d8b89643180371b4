"""Trains over lists, grids or random draws of any settings, and compares with intervals.

  python -m experiments.sweep --over=method=hdafl,fed_avg --over=client_learning_rate=0.03,0.1 \\
      --choose=client_learning_rate --set=validation_fraction=0.1 --seeds=3 --output_dir=out

Every combination is run with every seed. What --choose names is then chosen on validation examples,
for each combination of everything else. The page is OUTPUT_DIR/sweep/index.html: a table of all
runs, one of the chosen runs, differences paired by seed, and lines over the last setting that is a
number. Methods, data sets and partitions can vary as any setting: --over=dataset=digits,adult.
"""

import contextlib
import dataclasses
import itertools
import math
import sys
from collections.abc import Callable, Mapping, Sequence

import numpy as np

import experiments.study as s
from experiments import report
from experiments.run import command_line, plugins
from experiments.run.config import RunConfig
from experiments.study import program, runner
from tff_het import kinds
from tff_het.methods import METHODS

# Kinds of draws -> to the scale on which they are uniform, and back.
_DRAWN: dict[str, Sequence[Callable]] = {"uniform": (float, float), "log": (math.log, math.exp)}
_FORM = s.Form(digits=4)
Points = Sequence[Mapping[str, str]]
"""Of each combination, setting -> value."""


@dataclasses.dataclass(frozen=True)
class Settings(program.Making):
    """Settings of this program.

    Attributes:
      seeds: How many: seeds 0, 1 and so on.
      over: A setting of experiments.train and its values, as name=value,value (with semicolons
        where values have commas); or random draws, as name=uniform:0:1 or name=log:0.001:1. May be
        repeated: all combinations are run. The first gives the rows, compared with the first row.
      draws: Number of random draws; each draws a value for every random setting.
      choose: Settings of --over whose best value is chosen on validation examples.
      select: The validation metric whose mean over seeds --choose maximises; no loss.
      metric: What is reported: an entry of summary.json.
      set: A setting of experiments.train for all runs; may be repeated. Default: digits and hdafl.
      plugin: As in training.
      config: A YAML file with settings of this program; flags win over it.
    """

    seeds: kinds.Whole = 3
    over: tuple[str, ...] = ()
    draws: kinds.Whole = 8
    choose: Sequence[str] = ()
    select: str = "local_validation_accuracy_mean"
    metric: str = "local_test_accuracy_mean"
    set: tuple[str, ...] = ()
    plugin: Sequence[str] = ()
    config: str | None = None


def points(over: Sequence[str], draws: int) -> Points:
    """Returns all combinations of values, each of the listed ones with as many random draws.

    Raises ValueError if a text is of another form than `Settings.over`, or names anything twice.
    """
    listed: dict[str, list[str]] = {}
    random: dict[str, tuple[Callable, float, float]] = {}
    for text in over:
        name, _, values = text.partition("=")
        kind, *bounds = values.split(":")
        parts = values.split(";" if ";" in values else ",")
        if not (name and values) or name in {*listed, *random} or len({*parts}) < len(parts):
            raise ValueError(f"--over takes name=value,value, all once; found {text!r}.")
        if kind not in _DRAWN:
            listed[name] = parts
            continue
        there, back = _DRAWN[kind]
        with contextlib.suppress(ValueError):  # No numbers, not two, or without a logarithm.
            low, high = (there(float(bound)) for bound in bounds)
            random |= {name: (back, low, high)} if 0 < high - low < np.inf else {}
        if name not in random:
            raise ValueError(f"--over takes {kind}:LOW:HIGH with LOW < HIGH; found {text!r}.")
    rng = np.random.default_rng(0)
    drawn = [
        {name: f"{back(rng.uniform(low, high)):.4g}" for name, (back, low, high) in random.items()}
        for _ in range(draws if random else 1)
    ]
    grid = itertools.product(*listed.values())
    found = [dict(zip(listed, values, strict=True)) | one for values in grid for one in drawn]
    # An option of a method varies nothing for the others.
    fitting = [{name: one[name] for name in one if _fits(name, one)} for one in found]
    return list({_name(one): one for one in fitting}.values())


def _fits(name: str, one: Mapping[str, str]) -> bool:
    owner, dot, _ = name.partition(".")
    return not dot or owner not in METHODS or one.get("method", owner) == owner


def best(over: Points, choose: Sequence[str], select: str, results: s.Results) -> Points:
    """Returns the best of what was to be chosen, for each combination of everything else.

    The best one has the highest mean over seeds of the metric `select`; of equals, the first.
    Combinations that lack a run with any seed are not chosen.
    """
    groups: dict[tuple[str, ...], list[tuple[float, Mapping[str, str]]]] = {}
    for one in over:
        found = s.metric(_name(one), select).values(results)
        if len(found) == len(results.seeds):
            group = tuple(value for name, value in one.items() if name not in choose)
            groups.setdefault(group, []).append((float(np.mean(found)), one))
    return [max(group, key=lambda pair: pair[0])[1] for group in groups.values()]


def _name(one: Mapping[str, str]) -> str:
    return ", ".join(f"{name}={value}" for name, value in one.items())


def _tables(settings: Settings, over: Points, compared: Points) -> list[s.Table]:
    """All runs, where some were chosen; those that are compared; differences to the first row."""
    metric, choose = settings.metric, settings.choose
    ours: dict[tuple[str, str], s.Measure] = {}
    gaps: dict[tuple[str, str], s.Measure] = {}
    for one in compared:
        (_, row), *rest = [of for of in one.items() if of[0] not in choose] or [("", "best")]
        # Options of a method are its own: it is compared with the first row without any.
        column = "/".join(f"{name}={value}" if "." in name else value for name, value in rest)
        plain = "/".join(value for name, value in rest if "." not in name)
        ours[row, column or metric] = measure = s.metric(_name(one), metric)
        first = next(iter(ours))[0]
        for base in [(first, of or metric) for of in (column, plain)]:
            if row != first and base in ours:
                gaps.setdefault((f"{row} - {first}", column or metric), measure - ours[base])
    title = f"{metric}, {', '.join(choose)} chosen on validation examples" if choose else metric
    shown = {"validation": settings.select, metric: metric}
    tables = [s.table("All runs", map(_name, over), shown, s.metric, _FORM)] if choose else []
    for name, of in {title: ours, f"{metric}, paired difference": gaps}.items():
        places = (s.Place(*place, measure, _FORM) for place, measure in of.items())
        tables.append(s.Table(name, tuple(places)))
    return tables


def _lines(over: Points, metric: str) -> list[s.Figure]:
    """Lines over the last setting whose values are different numbers, if there is one."""
    names = dict.fromkeys(name for one in over for name in one)
    varying = [name for name in names if len({one[name] for one in over if name in one}) > 1]
    for axis in reversed(varying):
        with contextlib.suppress(ValueError):  # No numbers.
            having = [one for one in over if axis in one]
            lines: dict[str, dict[float, s.Measure]] = {}
            for one in sorted(having, key=lambda one: float(one[axis])):
                others = _name({name: value for name, value in one.items() if name != axis})
                line = lines.setdefault(others or metric, {})
                line[float(one[axis])] = s.metric(_name(one), metric)
            return [s.lines(f"{metric} of all runs", "", lines, xlabel=axis, ylabel=metric)]
    return []


@command_line.errors_in_one_line()
def main(argv: Sequence[str]) -> int:
    """Makes the runs, chooses, and writes the page, with `argv` on it; returns the exit code."""
    settings = command_line.settings(Settings, argv, __doc__)
    plugins.load(settings.plugin)
    if not settings.over:
        raise ValueError("--over says what varies: give it, such as --over=method=hdafl,fed_avg.")
    over = points(settings.over, settings.draws)
    names = [*over[0], *(text.partition("=")[0] for text in settings.set)]
    if wrong := [t for t in settings.set if "=" not in t or names.count(t.partition("=")[0]) > 1]:
        raise ValueError(f"--set takes name=value, all once and not in --over; found {wrong[0]!r}.")
    common = {"dataset": "digits", "method": "hdafl"}
    common |= dict(text.split("=", 1) for text in settings.set)
    common |= {"plugin": ",".join(settings.plugin)} if settings.plugin else {}
    if unknown := set(settings.choose) - {name for one in over for name in one}:
        raise ValueError(f"--choose names settings of --over; found {', '.join(unknown)}.")
    if settings.choose and ("validation" not in settings.select or "loss" in settings.select):
        raise ValueError(f"--select is maximised, on validation data; found {settings.select}.")
    for config in [RunConfig.of(**{**common, **one}) for one in over]:
        if settings.choose and not config.data.validation_fraction:
            raise ValueError("--choose needs validation examples: --set=validation_fraction=0.1.")
    cells = [s.Cell(_name(one), s.Training({**common, **one})) for one in over]
    fixed = {name: value for name, value in common.items() if name not in over[0]}
    note = f"Settings of all runs: {_name(fixed)}." if fixed else ""
    scale = s.Scale(cells, settings.seeds, note)
    title = f"{settings.metric} by {', '.join(over[0])}"
    # Where the runs are and how many are made at a time is no part of what they are.
    shown = command_line.without(argv, "output_dir", "data_dir", "jobs")
    command = f"python -m experiments.sweep {shown}"
    made = s.Experiment("sweep.runs", title, {"quick": scale}, command=command)
    if (code := program.make_runs(made, "quick", settings)) or settings.dry_run:
        return code
    compared, output_dir = over, command_line.folder(settings.output_dir)
    results = runner.read(made, "quick", output_dir)
    assert results is not None
    there = [run.metrics for cell in cells for run in results.of(cell.name)]
    for name in (settings.metric, *(settings.select for _ in settings.choose)):
        if there and not any(name in metrics for metrics in there):
            raise ValueError(f"No run has {name}: name an entry of a run's summary.json.")
    if settings.choose:
        compared = best(over, settings.choose, settings.select, results)
        chosen = f" Chosen on validation examples: {'; '.join(map(_name, compared))}."
        scale = dataclasses.replace(scale, note=scale.note + chosen)
    tables, figures = _tables(settings, over, compared), _lines(over, settings.metric)
    made = dataclasses.replace(made, scales={"quick": scale}, tables=tables, figures=figures)
    print(report.write([made], output_dir, "sweep"))
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
