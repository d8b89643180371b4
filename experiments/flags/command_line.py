"""The command line: help in groups, and errors of use in one line."""

import contextlib
import functools
import os
import signal
import sqlite3
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
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
    rest = read(flags.FLAGS, argv)
    if not flags.FLAGS["verbosity"].present:
        # absl's default, INFO, shows what TFF says to its developers.
        logging.set_verbosity(logging.WARNING)
    return rest


def read(values: flags.FlagValues, argv: Sequence[str]) -> list[str]:
    """Reads a command line into flags; ends the program with one line if it does not fit."""
    for argument in argv:
        try:
            argument.encode()
        except UnicodeEncodeError:  # Python's mark of bytes that the locale has no letters for.
            refuse(
                f"{argument} has letters that the locale {os.environ.get('LC_ALL') or 'C'} does "
                "not have: set PYTHONUTF8=1."
            )
    try:
        rest = values(argv)
        if rest[1:]:
            raise flags.Error(f"Not a flag: {' '.join(rest[1:])}")
    # A flagfile may be missing, a folder, or no text.
    except (flags.Error, OSError, UnicodeDecodeError) as error:
        refuse(f"{error} (--help lists all flags)")
    # Pictures are written to files; a backend for windows, if there is one, is of no use.
    os.environ["MPLBACKEND"] = "agg"
    return rest


def folder(values: flags.FlagValues = flags.FLAGS) -> Path:
    """Returns the folder that `--output_dir` names.

    Raises:
      ValueError: If it names none.
    """
    if not (given := values["output_dir"].value):
        raise ValueError("--output_dir is empty: name a folder, such as --output_dir=out.")
    return Path(given)


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
def errors_in_one_line(exit_code: int = 2) -> Iterator[None]:
    """Ends the program with one line where flags, files or the machine do not do.

    Args:
      exit_code: The program's: 2 before work starts, 1 for what goes wrong in the middle of it.
    """
    try:
        yield
    except KeyboardInterrupt:
        print("Stopped: the same command goes on from here.", file=sys.stderr)
        sys.exit(128 + signal.SIGINT)
    except Exception as error:
        if not isinstance(error, _known()) or (
            flags.FLAGS.is_parsed() and flags.FLAGS["verbosity"].value > 0
        ):
            raise
        refuse(error if str(error) else "There is not enough memory.", exit_code)


def _known() -> tuple[type[Exception], ...]:
    """The errors that are not a mistake of the program."""
    # Here, since they bring TensorFlow with them, which not every program needs.
    from tff_het.simulation.checkpoints import CheckpointError
    from tff_het.simulation.loop import DivergedError
    from tff_het.simulation.worker_process import WorkerDied

    ours = (CheckpointError, DivergedError, WorkerDied)
    return (ValueError, OSError, MemoryError, sqlite3.Error, *ours)


def refuse(why: str | Exception, exit_code: int = 2) -> NoReturn:
    """Ends the program with one line on what does not fit."""
    print(f"error: {' '.join(str(why).split())}", file=sys.stderr)
    sys.exit(exit_code)
