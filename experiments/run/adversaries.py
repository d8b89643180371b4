"""From a config to an adversary against protected attributes, for any method and network."""

from collections.abc import Sequence

import numpy as np

from experiments.run.config import RunConfig
from tff_het.datasets import Dataset
from tff_het.models import adversary
from tff_het.models.architectures import Architecture


def columns(config: RunConfig, dataset: Dataset) -> tuple[str, ...]:
    """Returns the protected columns, which clients have to hold beside their examples.

    Raises:
      ValueError: If the data set has no such columns of 0 and 1.
    """
    names = config.method.protected
    if names is None:
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


def attach(config: RunConfig, architecture: Architecture, protected: Sequence[str]) -> Architecture:
    """Returns the architecture with the config's adversary, if any attribute is protected.

    Raises:
      ValueError: If the weights or the layer do not fit.
    """
    if not protected:
        return architecture
    weights = config.method.adversary_weights or [1.0] * len(protected)
    return adversary.attach(
        architecture, protected, list(weights), layer=config.method.adversary_layer
    )
