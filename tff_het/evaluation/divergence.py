"""What averaging does to models: how far apart they are, and what each of them knows.

Qian et al. (2019, "Towards federated learning"), §IV-E and IV-F, Figures 10 to 12. Everything here
compares arrays, so it serves any method and round.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from tff_het.models.model import Model, Weights


def by_layer(model: Model, devices: Sequence[Weights], ensemble: Weights) -> dict[str, np.ndarray]:
    """Returns ||W_i - W|| / ||W_i|| of every device i and every layer that travels.

    The norm is taken over all trainable variables of a layer together, kernel and bias. What
    clients keep has no counterpart in the ensemble, and moving statistics are no weights: both are
    left out.

    Args:
      model: The model.
      devices: The global variables of each device after its training.
      ensemble: The global variables that the server makes of them.

    Returns:
      By the layer's name, in the model's order, float64 [devices]; nan where a layer is all zeros
      at a device and in the ensemble, infinite where it is so at the device alone.

    Raises:
      ValueError: If there are no devices, or the variables are not the model's global ones.
    """
    if not devices:
        raise ValueError("The models of one or more devices are needed, found 0.")
    specs = [spec for spec in model.specs if spec.trainable and not spec.local]
    wanted = [spec.shape for spec in specs]
    for weights in (*devices, ensemble):
        found = [np.shape(value) for value in weights.trainable]
        if found != wanted:
            raise ValueError(
                f"The model's global variables to train have the shapes {wanted}, found {found}."
            )
    layers: dict[str, list[int]] = {}
    for index, spec in enumerate(specs):
        layers.setdefault(spec.path.rpartition("/")[0], []).append(index)

    def flat(weights: Weights, indices: Sequence[int]) -> np.ndarray:
        values = [np.ravel(np.asarray(weights.trainable[i], np.float64)) for i in indices]
        return np.concatenate(values)

    divergence = {}
    with np.errstate(divide="ignore", invalid="ignore"):
        for layer, indices in layers.items():
            own = np.stack([flat(weights, indices) for weights in devices])  # [devices, parameters]
            apart = np.linalg.norm(own - flat(ensemble, indices), axis=1)
            divergence[layer] = apart / np.linalg.norm(own, axis=1)
    return divergence


def correct_by_class(logits: npt.ArrayLike, labels: npt.ArrayLike) -> np.ndarray:
    """Returns how many examples of each class a model classifies correctly (Figure 11).

    Args:
      logits: [n, classes].
      labels: [n], integers below the number of classes.

    Returns:
      int64 [classes].
    """
    logits, labels = np.asarray(logits), np.asarray(labels)
    right = labels[logits.argmax(axis=-1) == labels]
    return np.bincount(right, minlength=logits.shape[-1])


def pattern_correlation(one: npt.ArrayLike, other: npt.ArrayLike) -> float:
    """Returns how alike two patterns are, such as two models' activations (Figure 12).

    Args:
      one: [...], such as the last hidden layer's activations on some examples [n, units].
      other: The same of another model.

    Returns:
      Pearson's correlation over all values, in [-1, 1]; 0 where one of the patterns is constant, so
      that nothing of it is found in the other.

    Raises:
      ValueError: If their shapes differ or there are fewer than two values.
    """
    a, b = np.asarray(one, np.float64), np.asarray(other, np.float64)
    if a.shape != b.shape or a.size < 2:
        raise ValueError(
            f"Two patterns of one shape with two or more values are needed, found {a.shape} and "
            f"{b.shape}."
        )
    if not np.ptp(a) or not np.ptp(b):
        return 0.0
    a, b = np.ravel(a) - a.mean(), np.ravel(b) - b.mean()
    scale = np.linalg.norm(a) * np.linalg.norm(b)
    return float(np.clip(a @ b / scale, -1.0, 1.0))
