"""From a config to what the server holds itself: examples to train on first, and to evaluate on."""

import hashlib
from collections.abc import Collection, Mapping

import numpy as np

from experiments.run.config import RunConfig
from experiments.run.data import Dealt
from tff_het.clients import Client, Population
from tff_het.datasets import Examples

_ID = "server"


def initial(dealt: Dealt, columns: Collection[str]) -> Examples | None:
    """Returns what it trains on before the first round, of these columns; None without any."""
    return _columns(dealt.initial, columns)


def selection(config: RunConfig, dealt: Dealt, columns: Collection[str]) -> Examples | None:
    """Returns what it evaluates models on, of these columns; None without any.

    Raises:
      ValueError: If examples are held out for it, and it is to evaluate on test examples.
    """
    if config.method.ensemble_selection == "held_out":
        return _columns(dealt.selection, columns)
    if dealt.selection is not None:
        raise ValueError(
            "--ensemble_selection=test evaluates models on the test set: leave "
            f"--selection_examples out, found {config.data.selection_examples}."
        )
    return _columns(dealt.dataset.test, columns)


def with_server(population: Population, examples: Examples) -> Population:
    """Returns the population followed by the server as a client, which holds these examples."""
    nothing = {name: column[:0] for name, column in examples.items()}
    return population.grown_by([Client(_ID, examples, nothing, nothing)])


def fingerprint(config: RunConfig, examples: Examples | None) -> str | None:
    """SHA-256 (hex) over examples held out to evaluate on; None for none, or the test's."""
    if examples is None or config.method.ensemble_selection != "held_out":
        return None
    digest = hashlib.sha256()
    for name in sorted(examples):
        digest.update(f"{name} {examples[name].dtype.str} {examples[name].shape}\n".encode())
        digest.update(np.ascontiguousarray(examples[name]).tobytes())
    return digest.hexdigest()


def check(config: RunConfig, options: Mapping[str, Collection[str]], held: Examples | None) -> None:
    """Raises ValueError if a method needs examples at the server that are not there, or none does.

    Args:
      config: Names the methods.
      options: Which options each takes.
      held: What the server evaluates models on.
    """
    names = config.method.method
    judging = [name for name in names if "selection" in options[name]]
    if judging and held is None:
        raise ValueError(
            f"{', '.join(judging)} evaluates models on examples at the server, which has none: "
            "give --selection_examples (2000, say), or --ensemble_selection=test as in the paper."
        )
    if not judging and config.method.ensemble_selection == "test":
        raise ValueError(f"--ensemble_selection=test has no meaning for {', '.join(names)}.")


def _columns(examples: Examples | None, columns: Collection[str]) -> Examples | None:
    return None if examples is None else {name: examples[name] for name in columns}
