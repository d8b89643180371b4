"""The command line: settings as flags, help, and errors of use in one line."""

import contextlib
import itertools
import json
import os
import re
import shlex
import signal
import sqlite3
import sys
import textwrap
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from absl import flags, logging

from experiments.run import config, options, plugins
from experiments.run.config import Layer, RunConfig
from tff_het import kinds, registry
from tff_het.registry import Parameter

S = TypeVar("S")

HELP = ("--help", "-help", "-h", "--helpshort", "-helpshort", "-?")
_LAST = """\
--local_layers goes to every chosen method that has it, --hdafl.local_layers to one alone.

Files:

  --config: A YAML file of settings (--print_config prints one). Later ones win; flags over all.
  --flagfile: A file of flags, one a line; each run leaves one, flags.txt.
  --print_config: Print all settings and where each comes from, as YAML, and stop.
  --verbosity: 1 shows where an error comes from. (default: -1)
"""
_OF_FILES = {
    "config": Parameter("config", tuple[str, ...], None, "YAML files."),
    "print_config": Parameter("print_config", bool, None, "Print the settings."),
}


def settings(kind: type[S], argv: Sequence[str], description: str | None) -> S:
    """Reads a program's own settings, a dataclass; ends it for help, or where they do not fit.

    If `config` is one of them, it names a YAML file of the others, over which flags win.
    """
    known = registry.settings(kind)
    if {*HELP} & {*argv}:
        _end_with(f"{description or ''}\n{_help_of('Flags:', known)}")
    layers = [Layer("flag", _read(argv, known))]
    with errors_in_one_line():
        if file := layers[0].values.get("config"):
            layers.insert(0, _of_file(Path(file)))
            if set(layers[0].values) - set(known):
                raise ValueError(f"{file} should have settings of {', '.join(known)}.")
        return kind(**{n: layer.parsed(n, known[n]) for layer in layers for n in layer.values})


def without(argv: Sequence[str], *left_out: str) -> str:
    """Returns arguments as they are typed, without some flags that take a value."""
    flag = f"--?({'|'.join(left_out)})"
    pairs = itertools.pairwise(["", *argv])  # A value may be an argument of its own.
    kept = [a for last, a in pairs if not (re.fullmatch(flag, last) or re.match(f"{flag}(=|$)", a))]
    return shlex.join(kept)


def run_config(argv: Sequence[str], description: str | None) -> RunConfig:
    """Reads the settings of a run, as `settings`."""
    with errors_in_one_line():
        first = _defined({**_OF_FILES, "plugin": config.FIELDS["plugin"]})
        with contextlib.suppress(flags.Error, OSError, UnicodeDecodeError):  # Told below.
            first(["program", *argv], known_only=True)
        first.mark_as_parsed()
        plugins.load(kinds.parse(Sequence[str], first["plugin"].value or ()))
        layers = [_of_file(Path(name)) for name in first["config"].value or ()]
    if {*HELP} & {*argv}:
        _end_with(f"{description or ''}\n{help_text()}")
    known: dict[str, Parameter] = {}
    for _, owner, of_owner in options.owners():
        known = {**of_owner, **{f"{owner}.{name}": f for name, f in of_owner.items()}, **known}
    given = _read(argv, known | config.FIELDS | _OF_FILES)
    print_config, _ = (given.pop(name, None) for name in ("print_config", "config"))
    with errors_in_one_line():
        found = config.resolve([*layers, Layer("flag", given)])
    if print_config:
        _end_with(as_yaml(found))
    return found


def _end_with(text: str) -> NoReturn:
    show(text)
    sys.exit(0)


def show(text: str) -> None:
    """Prints what was asked for, up to where the reader stops (`| head`)."""
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    print(text)


def folder(output_dir: str) -> Path:
    """Returns the folder that `--output_dir` names; raises ValueError if it names none."""
    if not output_dir:
        raise ValueError("--output_dir is empty: name a folder, such as --output_dir=out.")
    return Path(output_dir)


def help_text() -> str:
    """Returns all settings of a run and what they mean."""
    known = {s.__doc__.partition("\n")[0]: registry.settings(s) for s in config.SECTIONS.values()}
    for role, owner, own in options.owners():
        dotted = {f"{owner}.{name}": field for name, field in own.items()}
        known[f"Options of --{role}={owner}:"] = dotted
    return "\n".join([*(_help_of(title, own) for title, own in known.items()), _LAST])


def _help_of(title: str, known: Mapping[str, Parameter]) -> str:
    lines = [title, ""]
    for name, field in known.items():
        text = f"--{'[no]' if field.kind is bool else ''}{name}: {field.help}"
        if of := kinds.hint(field.kind):
            text += f" Values: {of}."
        if field.default not in (None, "", ()) and "Default:" not in field.help:
            text += f" Default: {kinds.text(field.default)}."
        wrapped = textwrap.wrap(text, 98, subsequent_indent=" " * 4, break_on_hyphens=False)
        lines += [f"  {line}" for line in wrapped]
    return "\n".join(lines) + "\n"


def as_yaml(found: RunConfig) -> str:
    """Returns all settings as YAML, each with a comment on where it comes from."""
    lines = []
    for name, value in found.values().items():
        text = f"{name}: {json.dumps(value)}"
        lines.append(f"{text:40s}  # {found.origins.get(name, 'default')}")
    return "\n".join(lines)


def _of_file(path: Path) -> Layer:
    """Reads a YAML file of settings."""
    import yaml  # Here, since few programs need it.

    try:
        found = yaml.safe_load(path.read_text(encoding="utf-8"))
        if not isinstance(found, dict) or not all(isinstance(name, str) for name in found):
            raise ValueError("expected settings by name, such as 'dataset: digits'.")
        return Layer(str(path), config.flat(found))
    except (OSError, ValueError, RecursionError, yaml.YAMLError) as error:
        raise ValueError(f"--config={path} cannot be read: {error}") from error


def _defined(known: Mapping[str, Parameter]) -> flags.FlagValues:
    values = flags.FlagValues()
    for name, field in known.items():
        define: Callable = flags.DEFINE_bool if field.kind is bool else flags.DEFINE_string
        if typing.get_origin(field.kind) is tuple:  # May be given several times.
            define = flags.DEFINE_multi_string
        define(name, None, field.help, flag_values=values)
    return values


def _read(argv: Sequence[str], known: Mapping[str, Parameter]) -> dict[str, Any]:
    """Returns what a command line gives; ends the program with one line if it does not fit."""
    values = _defined(known)
    flags.DEFINE_integer("verbosity", -1, "1 shows where errors come from.", flag_values=values)
    # Python marks bytes that the locale has no letters for by what cannot be encoded.
    if strange := [text for text in argv if text.encode(errors="ignore").decode() != text]:
        refuse(
            f"{strange[0]} has letters that the locale {os.environ.get('LC_ALL') or 'C'} does not "
            "have: set PYTHONUTF8=1."
        )
    hint = " (--help lists all flags)"
    try:
        _, *rest = values(["program", *argv])
        if rest:
            raise flags.Error(
                f"Not a flag: {' '.join(rest)}. Several values have commas between them"
            )
    except flags.UnrecognizedFlagError as error:
        owner, dot, _ = error.flagname.partition(".")
        if dot and not options.is_owner(owner):
            refuse(f"--{error.flagname}: nothing is called {owner!r} (--plugin registers yours).")
        hint = " (programs of many runs have --engine=ray)" if error.flagname == "runtime" else hint
        refuse(f"{error}{hint}")
    # A flagfile may be missing, a folder, or no text.
    except (flags.Error, OSError, UnicodeDecodeError) as error:
        refuse(f"{error}{hint}")
    # absl's default, INFO, shows what TFF says to its developers.
    logging.set_verbosity(values["verbosity"].value)
    # Pictures are written to files; a backend for windows, if there is one, is of no use.
    os.environ["MPLBACKEND"] = "agg"
    return {name: values[name].value for name in known if values[name].present}


@contextlib.contextmanager
def errors_in_one_line(exit_code: int = 2) -> Iterator[None]:
    """Ends the program with one line where settings, files or the machine do not do.

    Its exit code is 2 before work starts, 1 for what goes wrong in the middle of it.
    """
    try:
        yield
    except KeyboardInterrupt:
        print("Stopped: the same command goes on from here.", file=sys.stderr)
        sys.exit(128 + signal.SIGINT)
    except Exception as error:
        known: tuple[type[Exception], ...] = (ValueError, OSError, MemoryError, sqlite3.Error)
        if "tensorflow" in sys.modules:  # The others bring it with them: nobody raised them before.
            from tff_het.simulation import checkpoints, loop, worker_process

            known += (checkpoints.CheckpointError, loop.DivergedError, worker_process.WorkerDied)
            known += (sys.modules["tensorflow"].errors.ResourceExhaustedError,)
        if not isinstance(error, known) or logging.get_verbosity() > logging.INFO:
            raise
        refuse(error if str(error) else "There is not enough memory.", exit_code)


def refuse(why: str | Exception, exit_code: int = 2) -> NoReturn:
    """Ends the program with one line on what does not fit."""
    print(f"error: {' '.join(str(why).split())}", file=sys.stderr)
    sys.exit(exit_code)
