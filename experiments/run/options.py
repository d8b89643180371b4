"""Options: the keyword parameters of data sets, partitions, models and methods.

They are found by their signatures, so that what a plugin registers has some too.
"""

from collections.abc import Iterator, Mapping, Sequence
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


def chosen(values: Mapping[str, Any]) -> dict[str, dict[str, Field]]:
    """Returns the options of what the settings choose, by owner.

    Raises:
      ValueError: If there is no such method.
    """
    found: dict[str, dict[str, Field]] = {}
    for role in REGISTRIES:
        names = values[role]
        for name in (names,) if isinstance(names, str) else names:
            found[name] = {**found.get(name, {}), **of(role, name)}
    return found


def is_owner(name: str) -> bool:
    """Whether a data set, partition, model or method has this name."""
    return any(name in registry for registry in REGISTRIES.values())


def find(
    name: str, chosen_options: Mapping[str, Mapping[str, Field]], settings: Sequence[str]
) -> list[tuple[str, Field]]:
    """Returns the owners and options that a name stands for, 'owner.option' or 'option'.

    Args:
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
        raise ValueError(f"--{name} is now called --{RENAMED[name]}.")
    having = [(r, o) for r, o, known in owners() if option in known and owner in ("", o)]
    if not having:
        raise ValueError(_unknown(name, settings))
    roles = dict.fromkeys(role for role, _ in having)
    needed = " or ".join(
        f"--{role}={' or '.join(o for r, o in having if r == role)}" for role in roles
    )
    now = ", ".join(_now(role, chosen_options) for role in roles)
    raise ValueError(f"--{name} belongs to {needed}; found {now}.")


def _now(role: str, chosen_options: Mapping[str, Any]) -> str:
    names = [name for name in chosen_options if name in REGISTRIES[role]]
    return f"--{role}={','.join(names)}"


def _unknown(name: str, settings: Sequence[str]) -> str:
    known = [*settings, *dict.fromkeys(option for _, _, own in owners() for option in own)]
    near = [other for other in known if name in other or other in name][:5]
    hint = f" Did you mean {', '.join(near)}?" if near else ""
    return f"There is no setting {name!r} (--help lists all).{hint}"
