"""Counts the dictionary factors that each client uses and that clients share (WAFFLe's pruning)."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import tensorflow as tf

from tff_het.evaluation import figures
from tff_het.learning.client_work import ClientState
from tff_het.models.layers import POSTERIOR_LOGITS
from tff_het.models.model import Model, Variables

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Factors(NamedTuple):
    """What clients use of one layer's dictionary.

    Attributes:
      probabilities: float32 [clients, F], pi of those that have trained.
      active: bool [clients, F], those that a client rather uses than not.
      shared: int [clients, clients], how many active ones two clients have in common; on the
        diagonal how many one has.
    """

    probabilities: np.ndarray
    active: np.ndarray
    shared: np.ndarray


def of_clients(model: Model, states: Iterable[ClientState]) -> dict[str, Factors]:
    """Returns the factors of each factorised layer, by its name; empty where there is none.

    Args:
      model: The model, whose local variables the states hold.
      states: The clients' states, read once, and not at all where there are no factors; clients
        that have never trained have no posterior and are left out.
    """
    indices = [i for i, spec in enumerate(model.specs) if spec.path.endswith(POSTERIOR_LOGITS)]
    if not indices:
        return {}
    nothing = model.split([None] * len(model.specs)).global_weights
    logits = [
        [flat[index] for index in indices]
        for state in states
        if state.rounds > 0
        for flat in (model.join(Variables(nothing, state.model)),)
    ]
    return {
        model.specs[index].path.rpartition("/")[0]: _factors(np.stack(of_layer))
        for index, of_layer in zip(indices, zip(*logits, strict=True), strict=False)
    }


def _factors(logits: np.ndarray) -> Factors:
    active = logits > 0
    shared = active.astype(int) @ active.T.astype(int)
    return Factors(tf.sigmoid(logits).numpy(), active, shared)


def summary(found: Mapping[str, Factors]) -> dict[str, float]:
    """Returns means over clients, and over pairs of them, for each layer."""
    values: dict[str, float] = {}
    for layer, (_, active, shared) in found.items():
        values[f"active_factors_{layer}"] = float(active.sum(axis=1).mean())
        pairs = shared[~np.eye(len(shared), dtype=bool)]
        if len(pairs):
            values[f"shared_factors_{layer}"] = float(pairs.mean())
    return values


def figure(found: Mapping[str, Factors]) -> "Figure":
    """Draws for each layer who uses which factor, and how many two clients have in common."""
    drawn = figures.sheet(9, 3.4 * len(found))
    axes = drawn.subplots(len(found), 2, squeeze=False)
    for (left, right), (layer, factors) in zip(axes, found.items(), strict=True):
        image = left.imshow(factors.probabilities, aspect="auto", vmin=0, vmax=1)
        drawn.colorbar(image, ax=left, label="probability that it is used")
        left.set(title=f"{layer}: factors of each client", xlabel="factor", ylabel="client")
        image = right.imshow(factors.shared, aspect="equal", vmin=0)
        drawn.colorbar(image, ax=right, label="factors")
        right.set(title=f"{layer}: active ones in common", xlabel="client", ylabel="client")
    return drawn
