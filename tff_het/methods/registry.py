"""All methods by name. A new method is one new file and one line here."""

import inspect
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING

from tff_het.methods.warning import MethodWarning
from tff_het.registry import Registry

if TYPE_CHECKING:
    from tff_het.learning.local_training import LocalTraining
    from tff_het.learning.process import FederatedProcess
    from tff_het.models.architectures import Architecture

METHODS: Registry["Callable[..., FederatedProcess]"] = Registry(
    "method",
    {
        "fed_avg": "tff_het.methods.fed_avg:build_fed_avg",
        "fed_prox": "tff_het.methods.fed_prox:build_fed_prox",
        "q_ffl": "tff_het.methods.q_ffl:build_q_ffl",
        "fed_recon": "tff_het.methods.fed_recon:build_fed_recon",
        "hdafl": "tff_het.methods.hdafl:build_hdafl",
        "lg_fedavg": "tff_het.methods.lg_fedavg:build_lg_fedavg",
        "cgau": "tff_het.methods.cgau:build_cgau",
        "waffle": "tff_het.methods.waffle:build_waffle",
        "ave_fl": "tff_het.methods.ave_fl:build_ave_fl",
        "opt_fl": "tff_het.methods.opt_fl:build_opt_fl",
        "mix_fl": "tff_het.methods.mix_fl:build_mix_fl",
        "ditto": "tff_het.methods.ditto:build_ditto",
        "scaffold": "tff_het.methods.scaffold:build_scaffold",
        "ifca": "tff_het.methods.ifca:build_ifca",
        "p_fed_me": "tff_het.methods.p_fed_me:build_p_fed_me",
        "per_fed_avg": "tff_het.methods.per_fed_avg:build_per_fed_avg",
        "apfl": "tff_het.methods.apfl:build_apfl",
        "fed_dyn": "tff_het.methods.fed_dyn:build_fed_dyn",
        "fed_proto": "tff_het.methods.fed_proto:build_fed_proto",
        "fed_per": "tff_het.methods.fed_per:build_fed_per",
        "fed_bn": "tff_het.methods.fed_bn:build_fed_bn",
        "fed_rep": "tff_het.methods.fed_rep:build_fed_rep",
        "fed_avg_ft": "tff_het.methods.fed_avg_ft:build_fed_avg_ft",
        "fed_babu": "tff_het.methods.fed_babu:build_fed_babu",
        "fed_ala": "tff_het.methods.fed_ala:build_fed_ala",
        "local_only": "tff_het.methods.local_only:build_local_only",
        "centralized": "tff_het.methods.centralized:build_centralized",
    },
)
# Methods that train on the pooled examples of all clients (`Population.with_pooled`).
_ON_POOLED_EXAMPLES = ("centralized",)


def names() -> tuple[str, ...]:
    """Returns the names of all methods."""
    return tuple(METHODS)


def trains_on_pooled_examples(name: str) -> bool:
    """Returns whether a method is trained on one client that holds all clients' examples."""
    return name in _ON_POOLED_EXAMPLES


def options(name: str) -> tuple[str, ...]:
    """Returns the names of the options of a method, beside architecture, training and seed.

    Raises:
      ValueError: If there is no such method.
    """
    parameters = inspect.signature(METHODS[name]).parameters.values()
    return tuple(p.name for p in parameters if p.kind is p.KEYWORD_ONLY and p.name != "seed")


def build(
    name: str, architecture: "Architecture", training: "LocalTraining", *, seed: int, **given
) -> "FederatedProcess":
    """Builds the process of a method; `MethodWarning`s are kept as its `warnings`.

    Raises:
      ValueError: If there is no such method, or it does not take an option or its value.
    """
    accepted = options(name)
    unknown = [key for key in given if key not in accepted]
    if unknown:
        raise ValueError(
            f"Method {name!r} has no option {', '.join(unknown)}; it has: {', '.join(accepted)}."
        )
    for parameter in METHODS.parameters(name):
        value = given.get(parameter.name)
        try:
            if value is not None and not callable(value):
                given[parameter.name] = parameter.parsed(value)
        except ValueError as error:
            raise ValueError(f"{name}.{parameter.name}: {error}.") from error
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        process = METHODS[name](architecture, training, seed=seed, **given)
    for one in caught:
        warnings.warn_explicit(one.message, one.category, one.filename, one.lineno)
    texts = (str(one.message) for one in caught if issubclass(one.category, MethodWarning))
    process.warnings = tuple(texts)
    return process
