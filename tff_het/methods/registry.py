"""All methods by name. A new method is one new file and one line here."""

import inspect
from collections.abc import Callable

from tff_het.learning.client_work import LocalTraining
from tff_het.learning.process import FederatedProcess
from tff_het.methods.fed_avg import build_fed_avg
from tff_het.methods.hdafl import build_hdafl
from tff_het.methods.local_only import build_local_only
from tff_het.models.architectures import Architecture

METHODS: dict[str, Callable[..., FederatedProcess]] = {
    "fed_avg": build_fed_avg,
    "hdafl": build_hdafl,
    "local_only": build_local_only,
}


def names() -> tuple[str, ...]:
    """Returns the names of all methods."""
    return tuple(METHODS)


def build(
    name: str, architecture: Architecture, training: LocalTraining, *, seed: int, **options
) -> FederatedProcess:
    """Builds the process of a method; options that are None count as not given.

    Raises:
      ValueError: If there is no such method, or it does not take an option.
    """
    if name not in METHODS:
        raise ValueError(f"There is no method {name!r}; there are: {', '.join(METHODS)}.")
    given = {key: value for key, value in options.items() if value is not None}
    accepted = inspect.signature(METHODS[name]).parameters
    unknown = [key for key in given if key not in accepted]
    if unknown:
        takes = ", ".join(key for key, p in accepted.items() if p.kind is p.KEYWORD_ONLY)
        raise ValueError(f"Method {name!r} has no option {', '.join(unknown)}; it has: {takes}.")
    return METHODS[name](architecture, training, seed=seed, **given)
