"""Identity of runs: what names a run's folder and what makes a stored run stale."""

import ast
import functools
import hashlib
import importlib
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from experiments.harness.experiment import Call, Training

_ROOT = Path(__file__).parents[2]
# What takes part in every run, from the flags to its summary.
_LIBRARY = ("tff_het",)
TRAINING = ("experiments/run",)


def name(work: Training | Call) -> str:
    """Returns the name of the folder that all seeds of a cell share: readable, and unique."""
    if isinstance(work, Training):
        parts = [work.flags.get(key, "") for key in ("dataset", "partition", "method")]
        readable = "-".join(part for part in parts if part)
    else:
        readable = work.function.__qualname__
    return f"{readable}-{_digest(_content(work))[:10]}"


def key(work: Training | Call, fingerprints: Sequence[str]) -> str:
    """Returns what changes with the flags, the data and the code that a result comes from.

    Args:
      work: What is run.
      fingerprints: Those of its data sets.
    """
    if isinstance(work, Training):
        code = code_hash((*_LIBRARY, *TRAINING))
    else:
        module = importlib.import_module(_module(work))
        assert module.__file__ is not None
        # It may read flags as training does.
        code = code_hash((*_LIBRARY, *TRAINING, module.__file__))
    return _digest([_content(work), list(fingerprints), code])


@functools.lru_cache
def code_hash(paths: tuple[str, ...]) -> str:
    """Returns a hash of Python files and of those in folders; comments do not count."""
    files: set[Path] = set()
    for path in (_ROOT / path for path in paths):
        files |= set(path.rglob("*.py")) if path.is_dir() else {path}
    return _digest([[file.name, _meaning(file.read_text())] for file in sorted(files)])


def _meaning(source: str) -> str:
    """The program without comments, docstrings and layout."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        # A string that stands alone does nothing.
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            node.value = ast.Constant(None)
    return ast.dump(tree)


def function_name(call: Call) -> str:
    """The function's name, with which it can be imported."""
    return f"{_module(call)}.{call.function.__qualname__}"


def _module(call: Call) -> str:
    """The module's name, also where it is the program that runs (`python -m`)."""
    name = call.function.__module__
    spec = sys.modules[name].__spec__ if name == "__main__" else None
    return name if spec is None else spec.name


def _content(work: Training | Call) -> Any:
    if isinstance(work, Training):
        flags = dict(work.flags)
        return flags if work.start is None else [flags, _content(work.start)]
    call = [function_name(work), dict(work.arguments)]
    return call if work.start is None else [*call, _content(work.start)]


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()
