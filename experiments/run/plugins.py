"""Plugins: modules of yours that register methods, networks, data sets and partitions."""

import hashlib
import importlib
import importlib.util
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
            raise ValueError(f"--plugin={name}: there is no such file.")
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
    """SHA-256 (hex) over the plugins' files, which must be loaded; None without any."""
    digest = hashlib.sha256()
    for name in names:
        file = sys.modules[Path(name).stem if name.endswith(".py") else name].__file__
        digest.update(Path(file).read_bytes() if file else b"")
    return digest.hexdigest() if names else None
