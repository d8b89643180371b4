"""From flags to an adversary against protected attributes, for any method and network."""

from collections.abc import Sequence

import numpy as np

from experiments.flags import method as method_flags
from tff_het.datasets import Dataset
from tff_het.models import adversary
from tff_het.models.architectures import Architecture
from tff_het.numbers import Number


def columns(dataset: Dataset) -> tuple[str, ...]:
    """Returns the protected columns, which clients have to hold beside their examples.

    Raises:
      ValueError: If the data set has no such columns of 0 and 1, or flags are given without them.
    """
    names = method_flags.PROTECTED.value
    if names is None:
        for flag in (
            method_flags.ADVERSARY_WEIGHTS,
            method_flags.ADVERSARY_LAYER,
            method_flags.ADVERSARY_STEPS,
        ):
            if flag.value is not None:
                raise ValueError(f"--{flag.name} belongs to --protected, which is not given.")
        return ()
    able = [
        name
        for name, column in dataset.train.items()
        if name not in ("x", "y") and column.ndim == 1 and set(np.unique(column)) <= {0, 1}
    ]
    if not names or len(set(names)) < len(names) or set(names) - set(able):
        raise ValueError(
            f"--protected names different columns of 0 and 1, of which data set {dataset.name!r} "
            f"has: {', '.join(able) or 'none'}; found {','.join(names)}."
        )
    return tuple(names)


def attach(architecture: Architecture, protected: Sequence[str]) -> Architecture:
    """Returns the architecture with the adversary of the flags, if any attribute is protected.

    Raises:
      ValueError: If the weights or the layer do not fit.
    """
    if not protected:
        return architecture
    texts = method_flags.ADVERSARY_WEIGHTS.value
    try:
        weights = [1.0] * len(protected) if texts is None else list(map(Number(low=0), texts))
    except ValueError as error:
        raise ValueError(f"--adversary_weights: {error}.") from error
    return adversary.attach(
        architecture, protected, weights, layer=method_flags.ADVERSARY_LAYER.value
    )
