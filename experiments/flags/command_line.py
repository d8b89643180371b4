"""The command line: help in groups, and errors of use in one line."""

import contextlib
import sys
from collections.abc import Iterator, Sequence
from types import ModuleType

from absl import flags

from experiments.flags import data, method, run
from tff_het.simulation.checkpoints import CheckpointError
from tff_het.simulation.loop import DivergedError

_GROUPS = (data, method, run)
_HELP = ("--help", "-help", "-h", "--helpshort", "-helpshort", "-?")


def parse(argv: Sequence[str]) -> list[str]:
    """Parses flags; as `flags_parser` of `absl.app.run`.

    Args:
      argv: The program's name and arguments.

    Returns:
      The arguments that are no flags.
    """
    if any(argument in _HELP for argument in argv[1:]):
        print(help_text(sys.modules["__main__"]))
        sys.exit(0)
    try:
        return flags.FLAGS(argv)
    except flags.Error as error:
        _exit(f"{error} (--help lists all flags)")


def help_text(program: ModuleType) -> str:
    """Returns the program's description and its flags in groups."""
    parts = [program.__doc__ or ""]
    for group in _GROUPS:
        help_of_group = flags.FLAGS.module_help(group).split("\n", 2)[2]
        parts.append(f"{group.__doc__}\n\n{help_of_group.rstrip()}\n")
    parts.append(
        "--flagfile=FILE reads flags from a file; --helpfull lists those of all libraries."
    )
    return "\n".join(parts)


@contextlib.contextmanager
def errors_in_one_line() -> Iterator[None]:
    """Ends the program with one line where flags or files are not usable."""
    try:
        yield
    except (ValueError, OSError, CheckpointError, DivergedError) as error:
        if flags.FLAGS.is_parsed() and flags.FLAGS["verbosity"].value > 0:
            raise
        _exit(str(error))


def _exit(message: str):
    line = " ".join(message.split())
    print(f"error: {line}", file=sys.stderr)
    sys.exit(2)
