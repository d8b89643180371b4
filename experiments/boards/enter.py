"""Puts a method of yours on the fair board; the others' results come with the project.

  python -m experiments.boards.enter --plugin=mine.py --method=mine --own=strength=0.1 \\
      --setting="FMNIST, Dirichlet .1, 20 clients" --data_dir=data --output_dir=out

Your method gets the trials of all others: three rates, and one with the value of --own. The page is
OUTPUT_DIR/board/index.html. --seeds=2 takes the first two seeds of all.
"""

import dataclasses
import sys
from collections.abc import Sequence
from pathlib import Path

from experiments.boards import fair
from experiments.run import command_line, plugins
from experiments.study import files, page, program, results, runner, sections, store
from tff_het.simulation import records


@dataclasses.dataclass(frozen=True)
class Settings(program.Making):
    """Settings of this program.

    Attributes:
      plugin: The module or file (.py) that registers your method.
      method: Its name.
      own: Its main parameter and the value to try beside its default, as name=value. Default: it
        has none, and a fourth rate is tried.
      setting: A setting of the board; may be repeated. Default: all.
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
    if not settings.method or settings.method in fair.METHODS:
        raise ValueError(f"--method names a method of yours; found {settings.method!r}.")
    if unknown := [one for one in settings.setting if one not in fair.SETTINGS]:
        raise ValueError(f"--setting is one of {'; '.join(fair.SETTINGS)}; found {unknown[0]}.")
    name, equals, value = (settings.own or "").partition("=")
    if settings.own and not (name and equals and value):
        raise ValueError(f"--own takes name=value, found {settings.own!r}.")
    mine = {settings.method: {name: value} if name else {}}
    chosen = settings.setting or tuple(fair.SETTINGS)
    board = fair.EXPERIMENT.scales["paper"]
    cells = fair.cells(mine, chosen, plugin=",".join(settings.plugin))
    only = dataclasses.replace(board, cells=cells)
    made = dataclasses.replace(fair.EXPERIMENT, scales={"paper": only}, tables=())
    if (code := program.make_runs(made, "paper", settings)) or settings.dry_run:
        return code
    folder = command_line.folder(settings.output_dir)
    found = runner.read(made, "paper", folder)
    assert found is not None
    others = results.read(fair.EXPERIMENT, "paper")
    known = {**(others.runs if others else {}), **found.runs}
    absent = store.Run(Path(), store.Status.ABSENT)
    everyone = [*board.cells, *cells]
    runs = {
        (cell.name, seed): known.get((cell.name, seed), absent)
        for cell in everyone
        for seed in found.seeds
    }
    whole = dataclasses.replace(
        fair.EXPERIMENT,
        scales={"paper": dataclasses.replace(board, cells=everyone)},
        tables=fair.tables({**fair.METHODS, **mine}, chosen),
        figures=fair.figures({**fair.METHODS, **mine}, chosen),
    )
    section = sections.section(whole, store.Results("paper", found.seeds, runs))
    (folder / "board").mkdir(exist_ok=True)
    records.write_atomically(folder / "board" / "table.csv", files.as_csv(section))
    records.write_atomically(folder / "board" / "index.html", page.page([section]))
    print(folder / "board" / "index.html")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
