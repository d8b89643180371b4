"""Makes the runs of one table or figure of a paper.

  python -m experiments.reproduce hdafl.table3 --scale=smoke --output_dir=out
  python -m experiments.reproduce hdafl.table3 --help

`python -m experiments.list experiments` prints all names. The second command describes one table or
figure. Runs that are complete are not made again; `experiments.report` writes the page.
"""

import dataclasses
import difflib
import importlib
import sys
from collections.abc import Sequence
from typing import Literal

from experiments.run import command_line
from experiments.study import papers, program


@dataclasses.dataclass(frozen=True)
class Settings(program.Making):
    """Settings of a table or figure.

    Attributes:
      scale: smoke: seconds to minutes, to see that it runs; quick: hours a paper on two cores
        (docs/reproducing.md); paper: the paper's own settings. Most boards have no quick.
    """

    scale: Literal["smoke", "quick", "paper"] = "quick"


def main(argv: Sequence[str]) -> int:
    """Makes what the first word names; returns the exit code: 1 where runs failed."""
    name = argv[0] if argv else "none"
    if name in command_line.HELP:
        command_line.settings(Settings, argv, __doc__)  # This ends the program.
    known = papers.names()
    if name not in known:
        near = difflib.get_close_matches(name, known, 1) or known[-1:]
        command_line.refuse(
            f"Name a table or figure, such as {near[0]} (`python -m experiments.list experiments` "
            f"shows all); found {name}."
        )
    module = importlib.import_module(f"experiments.{name}")
    settings = command_line.settings(Settings, argv[1:], module.__doc__)
    with command_line.errors_in_one_line():
        code = program.make_runs(module.EXPERIMENT, settings.scale, settings)
    print(f"For a page: python -m experiments.report --output_dir={settings.output_dir}")
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
