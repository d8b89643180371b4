"""The command line: settings as flags, help, and errors of use in one line."""

import contextlib
import dataclasses
import json
import os
import signal
import sqlite3
import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from absl import flags, logging

from experiments.run import config, fields, options, plugins
from experiments.run.config import Layer, RunConfig
from experiments.run.fields import Field
from tff_het import kinds

S = TypeVar("S")

HELP = ("--help", "-help", "-h", "--helpshort", "-helpshort", "-?")
_FILES = """Files:

  --config: A YAML file of settings; may be given several times, later ones win, and flags win over
      all. --print_config prints one.
  --flagfile: A file of flags, one a line; each run leaves one, flags.txt.
  --print_config: Print all settings and where each comes from, as YAML, and stop.
  --verbosity: 1 shows where an error comes from. (default: -1)
"""


def settings(kind: type[S], argv: Sequence[str], description: str | None) -> S:
    """Reads a program's own settings; ends it where help is asked for or they do not fit.

    Args:
      kind: A dataclass, see `fields`.
      argv: The arguments, without the program's name.
      description: For the help.
    """
    known = fields.of(kind)
    if _asks_for_help(argv):
        show(f"{description or ''}\n{_help_of('Flags:', known)}")
        sys.exit(0)
    values = _read(flags.FlagValues(), known, argv)
    with errors_in_one_line():
        layer = Layer("flag", _given(values, known))
        found = {name: config.parsed(layer, name, known[name]) for name in layer.values}
        return kind(**found)


def run_config(
    argv: Sequence[str], description: str | None, below: Mapping[str, Any] = {}
) -> RunConfig:
    """Reads the settings of a run; ends the program where help is asked for or they do not fit.

    Args:
      argv: The arguments, without the program's name.
      description: For the help.
      below: The program's own defaults.
    """
    with errors_in_one_line():
        first = flags.FlagValues()
        _define(first, {"plugin": config.FIELDS["plugin"]})
        files = flags.DEFINE_multi_string("config", [], "YAML files.", flag_values=first)
        with contextlib.suppress(flags.Error, OSError, UnicodeDecodeError):  # Told below.
            first(["program", *argv], known_only=True)
        first.mark_as_parsed()
        if given := first["plugin"].value:
            plugins.load(kinds.parse(Sequence[str], given))
        layers = [Layer("program", below), *(_of_file(Path(path)) for path in files.value)]
    if _asks_for_help(argv):
        show(f"{description or ''}\n{help_text()}")
        sys.exit(0)
    known = config.FIELDS | _option_flags()
    values = flags.FlagValues()
    flags.DEFINE_multi_string("config", [], "YAML files.", flag_values=values)
    flags.DEFINE_bool("print_config", False, "Print the settings.", flag_values=values)
    values = _read(values, known, argv)
    with errors_in_one_line():
        found = config.resolve([*layers, Layer("flag", _given(values, known))])
    if values["print_config"].value:
        show(as_yaml(found), end="")
        sys.exit(0)
    return found


def show(text: str, end: str = "\n") -> None:
    """Prints what was asked for, up to where the reader stops (`| head`)."""
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    print(text, end=end)


def folder(output_dir: str) -> Path:
    """Returns the folder that `--output_dir` names.

    Raises:
      ValueError: If it names none.
    """
    if not output_dir:
        raise ValueError("--output_dir is empty: name a folder, such as --output_dir=out.")
    return Path(output_dir)


def help_text() -> str:
    """Returns all settings of a run and what they mean."""
    parts = []
    for section in config.SECTIONS.values():
        title = (section.__doc__ or "").partition("\n")[0]
        parts.append(_help_of(title, fields.of(section)))
    for role, owner, known in options.owners():
        dotted = {f"{owner}.{name}": field for name, field in known.items()}
        parts.append(_help_of(f"Options of --{role}={owner}:", dotted))
    parts.append(
        "An option without its owner's name (--local_layers) is that of all chosen that have it.\n"
    )
    return "\n".join([*parts, _FILES])


def as_yaml(found: RunConfig) -> str:
    """Returns all settings as YAML, each with a comment on where it comes from."""
    lines = []
    sections = {
        **{name: dataclasses.asdict(getattr(found, name)) for name in config.SECTIONS},
        **found.options,
    }
    for section, values in sections.items():
        lines.append(f"{section}:")
        for name, value in values.items():
            full = name if section in config.SECTIONS else f"{section}.{name}"
            text = f"  {name}: {json.dumps(value)}"
            lines.append(f"{text:40s}  # {found.origins.get(full, 'default')}")
    return "\n".join(lines) + "\n"


def _of_file(path: Path) -> Layer:
    """Reads a YAML file of settings.

    Raises:
      ValueError: If it is missing or holds no settings.
    """
    import yaml  # Here, since few programs need it.

    try:
        found = yaml.safe_load(path.read_text())
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"--config={path} cannot be read: {error}") from error
    except yaml.YAMLError as error:
        raise ValueError(f"--config={path} is no YAML: {error}") from error
    if not isinstance(found, dict) or not all(isinstance(name, str) for name in found):
        raise ValueError(f"--config={path}: expected settings by name, such as 'dataset: digits'.")
    try:
        return Layer(str(path), config.flat(found))
    except ValueError as error:
        raise ValueError(f"--config={path}: {error}") from error


def _option_flags() -> dict[str, Field]:
    """Flags of options: with their owner's name, and, unless settings are called so, without."""
    found: dict[str, Field] = {}
    for _, owner, known in options.owners():
        for name, field in known.items():
            found[f"{owner}.{name}"] = field
            found.setdefault(name, field)
    return {name: field for name, field in found.items() if name not in config.FIELDS}


def _define(values: flags.FlagValues, known: Mapping[str, Field]) -> None:
    for name, field in known.items():
        if field.kind is bool:
            flags.DEFINE_bool(name, None, field.help, flag_values=values)
        elif field.repeated:
            flags.DEFINE_multi_string(name, None, field.help, flag_values=values)
        else:
            flags.DEFINE_string(name, None, field.help, flag_values=values)


def _given(values: flags.FlagValues, known: Mapping[str, Field]) -> dict[str, Any]:
    return {name: values[name].value for name in known if values[name].present}


def _read(
    values: flags.FlagValues, known: Mapping[str, Field], argv: Sequence[str]
) -> flags.FlagValues:
    """Reads a command line; ends the program with one line if it does not fit."""
    _define(values, known)
    flags.DEFINE_integer("verbosity", -1, "1 shows where errors come from.", flag_values=values)
    for argument in argv:
        try:
            argument.encode()
        except UnicodeEncodeError:  # Python's mark of bytes that the locale has no letters for.
            refuse(
                f"{argument} has letters that the locale {os.environ.get('LC_ALL') or 'C'} does "
                "not have: set PYTHONUTF8=1."
            )
    try:
        rest = values(["program", *argv])
        if rest[1:]:
            raise flags.Error(
                f"Not a flag: {' '.join(rest[1:])}. Several values have commas between them"
            )
    except flags.UnrecognizedFlagError as error:
        now, owner = options.RENAMED.get(error.flagname), error.flagname.partition(".")[0]
        if owner != error.flagname and not options.is_owner(owner):
            refuse(f"--{error.flagname}: nothing is called {owner!r} ({_PLUGIN}).")
        refuse(f"--{error.flagname} is now called --{now}." if now else f"{error} ({_ALL})")
    # A flagfile may be missing, a folder, or no text.
    except (flags.Error, OSError, UnicodeDecodeError) as error:
        refuse(f"{error} ({_ALL})")
    # absl's default, INFO, shows what TFF says to its developers.
    logging.set_verbosity(values["verbosity"].value)
    # Pictures are written to files; a backend for windows, if there is one, is of no use.
    os.environ["MPLBACKEND"] = "agg"
    return values


_ALL = "--help lists all flags"
_PLUGIN = "--plugin=FILE.py registers what is yours"


def _asks_for_help(argv: Sequence[str]) -> bool:
    return any(argument in HELP for argument in argv)


def _help_of(title: str, known: Mapping[str, Field]) -> str:
    lines = [title, ""]
    for name, field in known.items():
        flag = f"--[no]{name}" if field.kind is bool else f"--{name}"
        text = f"{flag}: {field.help}"
        if values := kinds.hint(field.kind):
            text += f" Values: {values.removesuffix(', ...')}."
        if field.default not in (None, "", ()) and "Default:" not in field.help:
            text += f" Default: {kinds.text(field.default)}."
        lines.append(
            textwrap.fill(
                text, 100, initial_indent="  ", subsequent_indent=" " * 6, break_on_hyphens=False
            )
        )
    return "\n".join(lines) + "\n"


@contextlib.contextmanager
def errors_in_one_line(exit_code: int = 2) -> Iterator[None]:
    """Ends the program with one line where settings, files or the machine do not do.

    Args:
      exit_code: The program's: 2 before work starts, 1 for what goes wrong in the middle of it.
    """
    try:
        yield
    except KeyboardInterrupt:
        print("Stopped: the same command goes on from here.", file=sys.stderr)
        sys.exit(128 + signal.SIGINT)
    except Exception as error:
        if not isinstance(error, _known()) or logging.get_verbosity() > logging.INFO:
            raise
        refuse(error if str(error) else "There is not enough memory.", exit_code)


def _known() -> tuple[type[Exception], ...]:
    """The errors that are not a mistake of the program."""
    plain = (ValueError, OSError, MemoryError, sqlite3.Error)
    if "tensorflow" not in sys.modules:  # These bring it with them, and nobody raised them.
        return plain
    from tff_het.simulation.checkpoints import CheckpointError
    from tff_het.simulation.loop import DivergedError
    from tff_het.simulation.worker_process import WorkerDied

    return (*plain, CheckpointError, DivergedError, WorkerDied)


def refuse(why: str | Exception, exit_code: int = 2) -> NoReturn:
    """Ends the program with one line on what does not fit."""
    print(f"error: {' '.join(str(why).split())}", file=sys.stderr)
    sys.exit(exit_code)
