"""Identity of runs: what names a run's folder, and what makes a stored run stale.

A result comes from the code that its run imports, file by file. Imports are followed as they stand
in the files, wherever in them, but not through registries: of the methods, data sets, partitions
and networks a run's code has its own alone. Comments, docstrings and layout do not count, nor what
only reads settings, since a run's key has their values.
"""

import ast
import functools
import hashlib
import importlib.util
import itertools
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import tensorflow as tf

from experiments.run import options, plugins
from experiments.run.config import WITHOUT_EFFECT, RunConfig
from experiments.run.defaults import DEFAULTS
from experiments.study import store
from experiments.study.experiment import Call, Training, Work

# These cannot change a number: they read settings, store and show results, silence and clean up.
# That `quiet` turns oneDNN on is a matter of the CPU, and stands with it (`runner.hardware`). Of
# `study`, `timing` alone makes numbers.
_APART = (
    *(f"experiments.run.{name}" for name in ("config", "defaults", "options", "plugins")),
    *("experiments.study", "experiments.run.command_line", "experiments.run.comparison"),
    *("tff_het.evaluation.figures", "tff_het.simulation.tracking", "tff_het.dying_with_parent"),
    *("tff_het.kinds", "tff_het.numbers", "tff_het.quiet", "tff_het.registry", "tff_het.writing"),
)


def name(work: Work) -> str:
    """Returns the name of the folder that all seeds of a cell share: readable, and unique."""
    if isinstance(work, Training):
        parts = [work.flags.get(key, "") for key in ("dataset", "partition", "method")]
        readable = "-".join(part for part in parts if part)
    else:
        readable = work.function.__qualname__
    return f"{readable}-{store.checksum(content(work))[:10]}"


def key(work: Work, fingerprints: Sequence[str]) -> str:
    """Returns what changes with settings, data sets' fingerprints and code behind a result."""
    return store.checksum([settings(work), list(fingerprints), code_of(work)])


def settings(work: Work) -> str:
    """Tells what a run is told, defaults included, from other settings."""
    return store.checksum([_settings(one) for one in work.chain])[:12]


def code_of(work: Work) -> Mapping[str, str]:
    """Returns the files that a result comes from, as `files`."""
    return files(frozenset(module for one in work.chain for module in _roots(one)))


def _roots(work: Work) -> set[str]:
    if isinstance(work, Training):
        settings = _settings(work)
        names = [settings[role] for role in ("dataset", "partition", "model", "method")]
        own = [one for one in str(work.flags.get("plugin", "")).split(",") if one.endswith(".py")]
        return {"experiments.run.one", *_named(names), *(str(Path(one).absolute()) for one in own)}
    module, texts = work.function.__module__, tf.nest.flatten(_settings(work))
    given = dict(work.arguments.get("flags", {})).get("plugin")
    plugins.load(given.split(",") if given else ())
    return {module, *_named([*work.data_sets, *texts, *_texts_in(module)])}


def _settings(work: Work) -> Mapping[str, Any]:
    """What a run is told, defaults included; a new setting that is off changes nothing."""
    if isinstance(work, Call):
        suited = DEFAULTS.get(work.arguments.get("flags", {}).get("dataset"), {})
        return {"function": function_name(work), "arguments": work.arguments, "defaults": suited}
    values = RunConfig.of(**work.flags).values() | {"method": work.flags["method"]}
    for file in [Path(v) for k, v in values.items() if k.endswith(".path") and Path(v).is_file()]:
        values[f"{file} holds"] = hashlib.sha256(file.read_bytes()).hexdigest()
    return {k: v for k, v in values.items() if v is not None and k not in (*WITHOUT_EFFECT, "seed")}


def shown(work: Work) -> str:
    """Returns what is run in one line: flags, or a function with its arguments."""
    if isinstance(work, Training):
        own = " ".join(f"--{name}={value}" for name, value in sorted(work.flags.items()))
    else:
        own = f"{function_name(work)}({', '.join(f'{k}={v!r}' for k, v in work.arguments.items())})"
    return own if work.start is None else f"{shown(work.start)}, then {own}"


def function_name(call: Call) -> str:
    """The function's name, with which it can be imported."""
    return f"{call.function.__module__}.{call.function.__qualname__}"


def content(work: Work) -> Any:
    """Returns what is run, as JSON values: flags, or a function with its arguments."""
    start = [] if work.start is None else [content(work.start)]
    if isinstance(work, Call):
        return [function_name(work), dict(work.arguments), *start]
    return [dict(work.flags), *start] if start else dict(work.flags)


@functools.lru_cache
def files(roots: frozenset[str]) -> Mapping[str, str]:
    """Returns the `plugins.meaning` of each file that modules, or files of plugins, need."""
    waiting, found = list(roots), dict[str, str]()
    while waiting:
        module = waiting.pop()
        if module in found or _is_apart(module):
            continue
        path = _path(module)
        assert path is not None, module
        found[module] = plugins.meaning(path)
        waiting += _imported(path)
    return dict(sorted(found.items()))


def _is_apart(module: str) -> bool:
    is_apart = any(f"{module}.".startswith(f"{one}.") for one in _APART)
    return is_apart and module != "experiments.study.timing"


def short(found: Mapping[str, str]) -> dict[str, str]:
    """Returns digests as they stand in results: long enough to tell versions of a file apart."""
    return {module: digest[:8] for module, digest in found.items()}


def _named(names: Iterable[str]) -> set[str]:
    """Returns where the data sets, partitions, models and methods among some texts are defined."""
    registries = options.REGISTRIES.values()
    found = {known.origin(name) for known in registries for name in names if name in known}
    # A plugin of this project goes by its module's name: its file's differs between machines.
    modules = {m.__file__: name for name, m in sys.modules.items() if hasattr(m, "__file__")}
    ours = {file: name for file, name in modules.items() if name.partition(".")[0] in plugins.TOPS}
    return {ours.get(one, one) for one in found}


def _texts_in(module: str) -> set[str]:
    """Returns all texts that stand in a module: names of methods may be among them."""
    path = _path(module)
    assert path is not None
    found = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    return {n.value for n in found if isinstance(n, ast.Constant) and isinstance(n.value, str)}


@functools.cache
def _path(module: str) -> Path | None:
    """The file of a module, or of a plugin; None where there is no such module."""
    if module.endswith(".py"):
        return Path(module)
    try:
        spec = importlib.util.find_spec(module)
    except ModuleNotFoundError:  # Of a name inside a module.
        return None
    return None if spec is None or spec.origin is None else Path(spec.origin)


@functools.lru_cache
def _imported(path: Path) -> tuple[str, ...]:
    """The modules of this project that a file imports, and their packages."""
    own = [name for name in plugins.imports(path) if name.partition(".")[0] in plugins.TOPS]
    found = {one for name in own for one in itertools.accumulate(name.split("."), "{}.{}".format)}
    found |= {str(one) for one in plugins.beside(path)}  # Of a plugin.
    return tuple(sorted(module for module in found if _path(module) is not None))
