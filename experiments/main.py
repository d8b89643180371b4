"""All programs under one name.

  tff-het train --method=hdafl,fed_avg
  tff-het sweep --over=method=hdafl,fed_avg --over=client_learning_rate=0.03,0.1,0.3
  tff-het reproduce hdafl.table3 --scale=smoke --output_dir=out
  tff-het report --output_dir=out
  tff-het list methods
  tff-het heterogeneity --partition=iid
  tff-het embed --model=yamnet --module=HANDLE --input=FOLDER --output=FOLDER

Each takes --help. In a checkout, `uv run tff-het` runs it.
"""

import importlib
import runpy
import sys
from collections.abc import Sequence

from experiments.run import command_line

_PROGRAMS = ("train", "sweep", "reproduce", "report", "list", "heterogeneity", "embed")


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the program that the first word names; returns its exit code."""
    first, *rest = (sys.argv[1:] if argv is None else argv) or [""]
    if first in ("", "help", *command_line.HELP):
        print(__doc__)
        return 0
    if first not in _PROGRAMS:
        command_line.refuse(f"Name one of {', '.join(_PROGRAMS)}; found {first}.")
    if first == "embed":
        sys.argv[1:] = rest  # It ends the program itself, on signals too.
        runpy.run_module("embeddings.extract", run_name="__main__", alter_sys=True)
    return importlib.import_module(f"experiments.{first}").main(rest)


if __name__ == "__main__":
    sys.exit(main())
