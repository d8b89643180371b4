"""Options: the keyword parameters of data sets, partitions, models and methods.

They are found by their signatures, so that what a plugin registers has some too.
"""

import difflib
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from experiments.run.fields import Field
from tff_het.datasets import DATASETS
from tff_het.methods import METHODS
from tff_het.models import NETWORKS
from tff_het.partitions import PARTITIONS
from tff_het.registry import Registry

# Setting that chooses -> what there is to choose from.
REGISTRIES: dict[str, Registry] = {
    "dataset": DATASETS,
    "partition": PARTITIONS,
    "model": NETWORKS,
    "method": METHODS,
}
# Parameters that programs give themselves, from other settings.
_GIVEN = ("seed", "num_clients")
# Flags of before -> their names now.
RENAMED = {
    "cgau_variant": "cgau.variant",
    "dirichlet_alpha": "dirichlet.alpha",
    "dirichlet_min_examples": "dirichlet.min_examples",
    "client_classes": "disjoint_classes.classes",
    "group_column": "groups.column",
    "cluster_projection": "clusters.projection",
    "cluster_components": "clusters.num_components",
    "cluster_assignment": "clusters.assignment",
}


def of(role: str, name: str) -> dict[str, Field]:
    """Returns the options of one data set, partition, model or method, by name."""
    parameters = REGISTRIES[role].parameters(name)
    return {
        p.name: Field(p.name, p.kind, p.default, p.help, True, False)
        for p in parameters
        if p.name not in _GIVEN
    }


def owners() -> Iterator[tuple[str, str, dict[str, Field]]]:
    """Gives the role, name and options of all that have options."""
    for role, registry in REGISTRIES.items():
        for name in registry:
            if found := of(role, name):
                yield role, name, found


def chosen(values: Mapping[str, Any], settings: Collection[str]) -> dict[str, dict[str, Field]]:
    """Returns the options of what the settings choose, by owner.

    Args:
      values: The settings.
      settings: What can be set of every run: no option may have such a name.

    Raises:
      ValueError: If there is no such method, or what it takes cannot be set.
    """
    found: dict[str, dict[str, Field]] = {}
    for role, registry in REGISTRIES.items():
        names = values[role]
        for name in (names,) if isinstance(names, str) else names:
            if name not in registry:
                raise ValueError(
                    f"There is no {role} {name!r}; there are: {', '.join(registry)}. "
                    "--plugin=FILE.py registers others."
                )
            if needed := set(registry.needed(name)) - set(_GIVEN):
                raise ValueError(
                    f"{role.capitalize()} {name!r} cannot be built: its parameter "
                    f"{min(needed)} has no default."
                )
            own = of(role, name)
            if clash := sorted(set(own) & set(settings)):
                raise ValueError(
                    f"{role.capitalize()} {name!r} has a parameter {clash[0]}, which is a setting "
                    "of every run: give it another name."
                )
            found[name] = {**found.get(name, {}), **own}
    return found


def is_owner(name: str) -> bool:
    """Whether a data set, partition, model or method has this name."""
    return any(name in registry for registry in REGISTRIES.values())


def find(
    shown: str,
    name: str,
    chosen_options: Mapping[str, Mapping[str, Field]],
    settings: Sequence[str],
) -> list[tuple[str, Field]]:
    """Returns the owners and options that a name stands for, 'owner.option' or 'option'.

    Args:
      shown: How errors name it.
      name: The name.
      chosen_options: The options of what is chosen, by owner.
      settings: What else can be set, to guess what was meant.

    Raises:
      ValueError: If it stands for none of what is chosen.
    """
    owner, _, option = name.rpartition(".")
    found = [
        (of_owner, known[option])
        for of_owner, known in chosen_options.items()
        if option in known and owner in ("", of_owner)
    ]
    if found:
        return found
    if name in RENAMED:
        raise ValueError(f"{shown} is now called {RENAMED[name]}.")
    having = [(r, o) for r, o, known in owners() if option in known and owner in ("", o)]
    if not having:
        raise ValueError(_unknown(shown, name, chosen_options, settings))
    roles = dict.fromkeys(role for role, _ in having)
    needed = " or ".join(
        f"--{role}={' or '.join(o for r, o in having if r == role)}" for role in roles
    )
    now = ", ".join(_now(role, chosen_options) for role in roles)
    raise ValueError(f"{shown} belongs to {needed}; found {now}.")


def _now(role: str, chosen_options: Mapping[str, Any]) -> str:
    names = [name for name in chosen_options if name in REGISTRIES[role]]
    return f"--{role}={','.join(names)}"


def _unknown(
    shown: str,
    name: str,
    chosen_options: Mapping[str, Mapping[str, Field]],
    settings: Sequence[str],
) -> str:
    owner, _, option = name.rpartition(".")
    if owner and not is_owner(owner):
        return f"{shown}: nothing is called {owner!r}. --plugin=FILE.py registers others."
    known = {owner: chosen_options.get(owner, {})} if owner else chosen_options
    names = [*(() if owner else settings), *(o for own in known.values() for o in own)]
    near = difflib.get_close_matches(option, dict.fromkeys(names), 3, 0.7)
    hint = f" Did you mean {' or '.join(near)}?" if near else ""
    return f"{shown}: there is no such setting (--help lists all).{hint}"
