"""Options: the keyword parameters of data sets, partitions, models and methods.

They are found by their signatures, so that what a plugin registers has some too.
"""

import difflib
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from tff_het.datasets import DATASETS
from tff_het.methods import METHODS
from tff_het.models import NETWORKS
from tff_het.partitions import PARTITIONS
from tff_het.registry import Parameter, Registry

# Setting that chooses -> what there is to choose from.
REGISTRIES: dict[str, Registry] = {
    "dataset": DATASETS,
    "partition": PARTITIONS,
    "model": NETWORKS,
    "method": METHODS,
}
# Parameters that programs give themselves, from other settings.
_GIVEN = ("seed", "num_clients")


def of(role: str, name: str) -> dict[str, Parameter]:
    """Returns the options of one data set, partition, model or method, by name."""
    return {p.name: p for p in REGISTRIES[role].parameters(name) if p.name not in _GIVEN}


def owners() -> Iterator[tuple[str, str, dict[str, Parameter]]]:
    """Gives the role, name and options of all that have options."""
    for role, registry in REGISTRIES.items():
        for name in registry:
            if found := of(role, name):
                yield role, name, found


def chosen(values: Mapping[str, Any], settings: Collection[str]) -> dict[str, dict[str, Parameter]]:
    """Returns the options of what the values choose, by owner; refuses what cannot be set."""
    found: dict[str, dict[str, Parameter]] = {}
    for role, registry in REGISTRIES.items():
        names = values[role]
        for name in (names,) if isinstance(names, str) else names:
            if needed := set(registry.needed(name)) - set(_GIVEN):
                why = f"its parameter {min(needed)} has no default"
                raise ValueError(f"{role.capitalize()} {name!r} cannot be built: {why}.")
            own = of(role, name)
            if clash := sorted(set(own) & set(settings)):
                why = f"rename its parameter {clash[0]}, a setting of every run"
                raise ValueError(f"{role.capitalize()} {name!r} cannot be built: {why}.")
            found[name] = found.get(name, {}) | own
    return found


def is_owner(name: str) -> bool:
    """Whether a data set, partition, model or method has this name."""
    return any(name in registry for registry in REGISTRIES.values())


def find(
    name: str, among: Mapping[str, Mapping[str, Parameter]], settings: Collection[str], shown: str
) -> list[tuple[str, Parameter]]:
    """Returns the owners and options that a name, 'owner.option' or 'option', stands for.

    `among` are the options of what is chosen, by owner. Errors say `shown` and suggest settings.
    """
    owner, _, option = name.rpartition(".")
    asked = {one: known for one, known in among.items() if owner in ("", one)}
    if fitting := [(one, known[option]) for one, known in asked.items() if option in known]:
        return fitting
    having: dict[str, list[str]] = {}  # Role -> owners that have it and are not chosen.
    for role, other, known in owners():
        if option in known and owner in ("", other):
            having.setdefault(role, []).append(other)
    if having:
        needed = (f"--{role}={' or '.join(names)}" for role, names in having.items())
        now = (f"--{role}={','.join(n for n in among if n in REGISTRIES[role])}" for role in having)
        raise ValueError(f"{shown} belongs to {' or '.join(needed)}; found {', '.join(now)}.")
    if owner and not is_owner(owner):
        raise ValueError(f"{shown}: nothing is called {owner!r} (--plugin registers yours).")
    names = [*(() if owner else settings), *(other for own in asked.values() for other in own)]
    near = difflib.get_close_matches(option, dict.fromkeys(names), 3, 0.7)
    hint = f" Did you mean {' or '.join(near)}?" if near else ""
    raise ValueError(f"{shown}: there is no such setting (--help lists all).{hint}")
