"""The command line: help in groups, and errors of use in one line."""

import contextlib
import functools
import sys
from collections.abc import Callable, Iterator, Sequence
from types import ModuleType
from typing import NoReturn

from absl import app, flags, logging

_HELP = ("--help", "-help", "-h", "--helpshort", "-helpshort", "-?")


def run(main: Callable[[Sequence[str]], None], groups: Sequence[ModuleType] = ()) -> None:
    """Runs a program as `absl.app.run` does.

    Args:
      main: Its main function.
      groups: The modules with the program's flags, in the order of the help text;
        by default the program's own.
    """
    app.run(main, flags_parser=functools.partial(_parse, groups=groups))


def _parse(argv: Sequence[str], *, groups: Sequence[ModuleType]) -> list[str]:
    if any(argument in _HELP for argument in argv[1:]):
        print(help_text(sys.modules["__main__"], groups))
        sys.exit(0)
    try:
        rest = flags.FLAGS(argv)
    except flags.Error as error:
        refuse(f"{error} (--help lists all flags)")
    if rest[1:]:
        refuse(f"Not a flag: {' '.join(rest[1:])} (--help lists all flags)")
    if not flags.FLAGS["verbosity"].present:
        # absl's default, INFO, shows what TFF says to its developers.
        logging.set_verbosity(logging.WARNING)
    return rest


def help_text(program: ModuleType, groups: Sequence[ModuleType]) -> str:
    """Returns the program's description and its flags in groups."""
    parts = [program.__doc__ or ""]
    for group in groups or (program,):
        title, *_ = (group.__doc__ or "").splitlines() if groups else ("Flags:",)
        help_of_group = flags.FLAGS.module_help(group).split("\n", 2)[2]
        parts.append(f"{title}\n\n{help_of_group.rstrip()}\n")
    parts.append(
        "--flagfile=FILE reads flags from a file; --helpfull lists those of all libraries."
    )
    return "\n".join(parts)


@contextlib.contextmanager
def errors_in_one_line() -> Iterator[None]:
    """Ends the program with one line where flags or files are not usable."""
    # Here, since they bring TensorFlow with them, which not every program needs.
    from tff_het.simulation.checkpoints import CheckpointError
    from tff_het.simulation.loop import DivergedError

    try:
        yield
    except (ValueError, OSError, CheckpointError, DivergedError) as error:
        if flags.FLAGS.is_parsed() and flags.FLAGS["verbosity"].value > 0:
            raise
        refuse(error)


def refuse(why: str | Exception) -> NoReturn:
    """Ends the program with one line on what does not fit."""
    line = " ".join(str(why).split())
    print(f"error: {line}", file=sys.stderr)
    sys.exit(2)
