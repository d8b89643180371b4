"""The code that a result comes from: what its run imports, file by file.

Imports are followed as they stand in the files, wherever in them, but not through registries: of
the methods, data sets, partitions and networks a run's code has its own alone. Comments, docstrings
and layout do not count, nor what only reads settings, since a run's key has their values.
"""

import ast
import functools
import importlib.util
from collections.abc import Iterable, Mapping
from pathlib import Path

from experiments.run import options, plugins

_TOPS = ("experiments", "tff_het")
# These cannot change a number: they read settings, store and show results, silence and clean up.
_APART = (
    *(f"experiments.run.{name}" for name in ("config", "defaults", "options", "plugins")),
    *("experiments.study", "experiments.run.command_line", "experiments.run.comparison"),
    *("tff_het.evaluation.figures", "tff_het.simulation.tracking", "tff_het.dying_with_parent"),
    *("tff_het.kinds", "tff_het.numbers", "tff_het.quiet", "tff_het.registry", "tff_het.writing"),
)


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
    return any(f"{module}.".startswith(f"{one}.") for one in _APART)


def short(found: Mapping[str, str]) -> dict[str, str]:
    """Returns digests as they stand in results: long enough to tell versions of a file apart."""
    return {module: digest[:8] for module, digest in found.items()}


def named(names: Iterable[str]) -> set[str]:
    """Returns where the data sets, partitions, models and methods among some texts are defined."""
    return {
        registry.origin(name)
        for registry in options.REGISTRIES.values()
        for name in names
        if name in registry
    }


def texts(module: str) -> set[str]:
    """Returns all texts that stand in a module: names of methods may be among them."""
    path = _path(module)
    assert path is not None
    found = ast.walk(ast.parse(path.read_text()))
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
    names: set[str] = set()
    waiting: list[ast.AST] = [ast.parse(path.read_text())]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            names |= {f"{node.module}.{alias.name}" for alias in node.names} | {node.module}
        waiting += ast.iter_child_nodes(node)
    found: set[str] = set()
    for name in names:
        parts = name.split(".")
        if parts[0] in _TOPS:
            modules = (".".join(parts[:length]) for length in range(1, len(parts) + 1))
            found |= {module for module in modules if _path(module) is not None}
    return tuple(sorted(found))
