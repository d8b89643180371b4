"""Plugins: modules of yours that register methods, networks, data sets and partitions."""

import ast
import functools
import hashlib
import importlib
import sys
from collections.abc import Iterable
from pathlib import Path


def load(names: Iterable[str]) -> None:
    """Imports plugins, each once.

    Args:
      names: Of modules, or files that end with '.py'.

    Raises:
      ValueError: If there is no such module or file, or it cannot be imported.
    """
    for name in names:
        path = Path(name)
        module = path.stem if name.endswith(".py") else name
        if module in sys.modules:
            continue
        if name.endswith(".py") and not path.is_file():
            raise ValueError(f"--plugin={name}: there is no such file in {Path.cwd()}.")
        if name.endswith(".py"):
            # What stands beside it can be imported by it.
            sys.path.insert(0, str(path.parent.absolute()))
        try:
            importlib.import_module(module)
        except Exception as error:
            raise ValueError(
                f"--plugin={name} cannot be imported: {type(error).__name__}: {error}"
            ) from error


def fingerprint(names: Iterable[str]) -> str | None:
    """Tells the programs of plugins, which must be loaded, from others; None without any."""
    modules = [sys.modules[Path(n).stem if n.endswith(".py") else n] for n in names]
    return " ".join(meaning(Path(m.__file__)) for m in modules if m.__file__) or None


@functools.lru_cache
def meaning(path: Path) -> str:
    """SHA-256 (hex) of a program without comments, docstrings, layout and what registries list."""
    tree = ast.parse(path.read_text())
    for node in ast.walk(tree):
        # A string that stands alone does nothing.
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            node.value = ast.Constant(None)
        elif isinstance(node, ast.Call) and ast.unparse(node.func) == "Registry":
            node.args = node.args[:1]
    return hashlib.sha256(ast.dump(tree).encode()).hexdigest()
