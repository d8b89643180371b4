"""Which tables and figures there are: one module each, named by its paper's package."""

import importlib
import pkgutil
from collections.abc import Iterator

import experiments
from experiments.study.experiment import Experiment


def modules() -> dict[str, tuple[str, ...]]:
    """Paper -> its modules: those of every package in `experiments` that has `MODULES`."""
    packages = [info.name for info in pkgutil.iter_modules(experiments.__path__) if info.ispkg]
    found = {name: importlib.import_module(f"experiments.{name}") for name in packages}
    return {name: one.MODULES for name, one in found.items() if hasattr(one, "MODULES")}


def names() -> list[str]:
    """All tables and figures of all papers, as `paper.module`."""
    return [f"{paper}.{module}" for paper, own in modules().items() for module in own]


def all_experiments() -> Iterator[Experiment]:
    """All tables and figures of all papers."""
    return (importlib.import_module(f"experiments.{name}").EXPERIMENT for name in names())
