"""Plugins: modules of yours that register methods, networks, data sets and partitions."""

import ast
import functools
import hashlib
import importlib
import itertools
import sys
from collections.abc import Iterable
from pathlib import Path

TOPS = ("experiments", "tff_het")  # The project's own packages.


def load(names: Iterable[str]) -> None:
    """Imports plugins, each once: modules by name, or files that end with '.py'."""
    for name in names:
        module, path = _module(name), Path(name)
        if name.endswith(".py"):
            if not path.is_file():
                raise ValueError(f"--plugin={name}: there is no such file in {Path.cwd()}.")
            known = getattr(sys.modules.get(module), "__file__", None)
            if "." in module or (module in sys.modules and not (known and path.samefile(known))):
                raise ValueError(f"--plugin={name}: rename it, {module} names another module.")
            sys.path.insert(0, str(path.parent.absolute()))  # For imports of its neighbours.
        try:
            importlib.import_module(module)
        except (Exception, SystemExit) as error:
            raise ValueError(
                f"--plugin={name} cannot be imported: {type(error).__name__}: {error}"
            ) from error


def _module(name: str) -> str:
    return Path(name).stem if name.endswith(".py") else name


def fingerprint(names: Iterable[str]) -> str | None:
    """Tells loaded plugins, and what they import from beside them, from others; None without."""
    files = (getattr(sys.modules[_module(name)], "__file__", None) for name in names)
    found = [Path(file) for file in files if file]
    for path in found:
        found += [one for one in beside(path) if one not in found]
    return " ".join(map(meaning, found)) or None


def beside(path: Path) -> list[Path]:
    """Returns a plugin's imports beside it, packages whole; none for a module of a package."""
    if path.with_name("__init__.py").exists():
        return []
    tops = sorted({name.partition(".")[0] for name in imports(path)} - {*TOPS})
    near = [[path.with_name(f"{top}.py"), *path.with_name(top).rglob("*.py")] for top in tops]
    return [one for found in near for one in sorted(found) if one.is_file()]


@functools.lru_cache
def imports(path: Path) -> frozenset[str]:
    """Returns the names of all that a program imports, wherever in it, but for type checkers."""
    names: set[str] = set()
    body = ast.parse(path.read_text(encoding="utf-8")).body
    top = (one for one in body if not ast.unparse(one).startswith("if TYPE_CHECKING"))
    for node in itertools.chain.from_iterable(map(ast.walk, top)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            names |= {f"{node.module}.{alias.name}" for alias in node.names} | {node.module}
    return frozenset(names)


@functools.lru_cache
def meaning(path: Path) -> str:
    """SHA-256 (hex) of a program without comments, docstrings, layout and what registries list.

    Nor does EXPERIMENT count, a table or figure that is made of results.
    """
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "EXPERIMENT":
            node.value = ast.Constant(None)
        # A string that stands alone does nothing.
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            node.value = ast.Constant(None)
        elif isinstance(node, ast.Call) and ast.unparse(node.func) == "Registry":
            node.args = node.args[:1]
    return hashlib.sha256(ast.dump(tree).encode()).hexdigest()
