"""Puts a method of yours on the fair board, beside the results that come with the project.

  python -m experiments.boards.enter --plugin=mine.py --method=mine --own=strength=0.1 \\
      --setting="FMNIST, Dirichlet .1, 20 clients" --data_dir=data --output_dir=out

Your method gets as many trials as all others: three rates, and the best of these with the value of
--own. The page is OUTPUT_DIR/board/index.html. --seeds=2 compares on
seeds 0 and 1 alone. Runs of the board in OUTPUT_DIR replace those of the project.
"""

import dataclasses
import sys
from collections.abc import Sequence

from experiments.boards import fair
from experiments.run import command_line, plugins
from experiments.run.config import RunConfig
from experiments.study import files, identity, page, program, results, runner, sections, store
from experiments.study.experiment import Work
from experiments.study.store import Status
from tff_het.methods import METHODS
from tff_het.simulation import records


@dataclasses.dataclass(frozen=True)
class Settings(program.Making):
    """Settings of this program.

    Attributes:
      plugin: The module or file (.py) that registers your method.
      method: Its name.
      own: Its main parameter and the value to try beside its default, as name=value. Default: it
        has none, and a fourth rate is tried.
      seeds: How many: seeds 0, 1 and so on. Default: the board's five.
      setting: A setting of the board (a wrong name lists them); may be repeated. Default: all.
    """

    plugin: Sequence[str] = ()
    method: str = ""
    own: str | None = None
    setting: tuple[str, ...] = ()


@command_line.errors_in_one_line()
def main(argv: Sequence[str]) -> int:
    """Makes your method's runs and writes the page; returns the exit code: 1 where some failed."""
    settings = command_line.settings(Settings, argv, __doc__)
    plugins.load(settings.plugin)
    if unknown := [one for one in settings.setting if one not in fair.SETTINGS]:
        raise ValueError(f"--setting is one of {'; '.join(fair.SETTINGS)}; found {unknown[0]}.")
    name, equals, value = (settings.own or "").partition("=")
    if settings.own and not (name and equals and value):
        raise ValueError(f"--own takes name=value, found {settings.own!r}.")
    if not settings.plugin or settings.method in fair.METHODS or settings.method not in METHODS:
        raise ValueError(f"--method names a method of --plugin; found {settings.method!r}.")
    RunConfig.of(method=settings.method, **({f"{settings.method}.{name}": value} if name else {}))
    mine = {settings.method: fair.Tuned(name, None, value)}
    chosen = settings.setting or tuple(fair.SETTINGS)
    board = fair.EXPERIMENT.scales["paper"]
    cells = fair.cells(mine, chosen, plugin=",".join(settings.plugin))
    everyone = {**fair.METHODS, **mine}
    # No part of what the runs are.
    shown = command_line.without(argv, "data_dir", "output_dir", "jobs", "seeds")
    made = dataclasses.replace(
        fair.EXPERIMENT,
        id="boards.entered",
        scales={"paper": dataclasses.replace(board, cells=[*board.cells, *cells])},
        tables=fair.tables(everyone, chosen),
        figures=fair.figures(everyone, chosen),
        command=f"python -m experiments.boards.enter {shown}",
    )
    only = {"paper": dataclasses.replace(board, cells=cells)}
    code = program.make_runs(dataclasses.replace(made, scales=only, tables=()), "paper", settings)
    if settings.dry_run:
        return code
    folder, known = command_line.folder(settings.output_dir), results.kept("boards", "paper")

    def find(work: Work, seed: int) -> store.Run:
        run = store.read(runner.folder_of(folder, "boards", work, seed))
        return known.get((identity.name(work), seed), run) if run.status is not Status.OK else run

    seeds = range(settings.seeds or board.num_seeds)
    section = sections.section(made, made.results("paper", seeds, find))
    (folder / "board").mkdir(exist_ok=True)
    records.write_atomically(folder / "board" / "table.csv", files.as_csv(section))
    records.write_atomically(folder / "board" / "index.html", page.page([section]))
    print(folder / "board" / "index.html")
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
