"""Distribution of a measure over clients and over sub-populations."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt


def distribution(values: npt.ArrayLike, num_examples: npt.ArrayLike) -> dict[str, float]:
    """Summarises one number per client, such as an accuracy of a `LocalTest`.

    Clients without examples are left out. A nan of a client with examples (the loss of a model that
    has diverged) is not: it makes the results nan.

    Args:
      values: [K], one value a client.
      num_examples: [K], how many examples each value was measured on.

    Returns:
      By name, in the values' unit except for `num_clients` and `variance`, over the K' clients
      with examples:
      `num_clients`: K'.
      `mean`: each client counts the same.
      `weighted_mean`: each example counts the same, as on all clients' examples pooled.
      `std`: population standard deviation (ddof=0): these are all the clients, not a sample.
      `variance`: its square, as in the fairness tables of Li et al. (2020, q-FFL).
      `min`, `max`, `median`.
      `worst_decile`: mean over the lowest tenth of the values, ceil(K' / 10) of them.
      `decile_10`, `decile_20`, ..., `decile_90`: percentiles, linearly interpolated.

    Raises:
      ValueError: If the shapes are not both [K], a number of examples is negative, or no client
        has examples.
    """
    values = np.asarray(values, np.float64)
    num_examples = np.asarray(num_examples)
    if values.ndim != 1 or values.shape != num_examples.shape:
        raise ValueError(
            "values and num_examples must hold one number a client, found shapes "
            f"{values.shape} and {num_examples.shape}."
        )
    if np.any(num_examples < 0):
        raise ValueError(f"Numbers of examples must not be negative, found {num_examples.min()}.")
    tested = num_examples > 0
    if not np.any(tested):
        raise ValueError(
            f"None of the {len(values)} clients has examples: there is nothing to summarise."
        )
    values, num_examples = values[tested], num_examples[tested]
    # In whole numbers: 0.1 * 70 is more than 7, and would round up to 8.
    worst = np.sort(values)[: -(-len(values) // 10)]
    percentages = range(10, 100, 10)
    deciles = np.percentile(values, percentages)
    return {
        "num_clients": len(values),
        "mean": float(np.mean(values)),
        "weighted_mean": float(np.average(values, weights=num_examples)),
        "std": float(np.std(values)),
        "variance": float(np.var(values)),
        "min": float(np.min(values)),
        "max": float(np.max(values)),
        "median": float(np.median(values)),
        # Sorting puts nan last, where the best of the accuracies are.
        "worst_decile": float(np.nan if np.isnan(values).any() else np.mean(worst)),
        **{f"decile_{p}": float(d) for p, d in zip(percentages, deciles, strict=True)},
    }


def by_group(
    values: npt.ArrayLike, num_examples: npt.ArrayLike, groups: Sequence[str]
) -> dict[str, float]:
    """Compares sub-populations of the clients.

    Clients without examples are left out, and so are groups of such clients alone.

    Args:
      values: [K], one value a client.
      num_examples: [K], how many examples each value was measured on.
      groups: [K], the sub-population of each client.

    Returns:
      By name, in the values' unit; nothing where there are fewer than two groups:
      `mean_<group>`: in which each client counts the same.
      `gap`: that of the group with most clients minus that of the group with fewest; where two have
        equally many, the one that comes first is taken for the larger.

    Raises:
      ValueError: If there is not one value, number and group for each client.
    """
    values, num_examples = np.asarray(values, np.float64), np.asarray(num_examples)
    if not values.shape == num_examples.shape == (len(groups),):
        raise ValueError(
            "values, num_examples and groups must hold one entry a client, found "
            f"{values.shape}, {num_examples.shape} and {len(groups)} groups."
        )
    of, tested = np.asarray(groups), num_examples > 0
    own = {group: values[tested & (of == group)] for group in dict.fromkeys(of[tested].tolist())}
    if len(own) < 2:
        return {}
    means = {group: float(np.mean(found)) for group, found in own.items()}
    largest_first = sorted(own, key=lambda group: -len(own[group]))
    gap = means[largest_first[0]] - means[largest_first[-1]]
    return {**{f"mean_{group}": mean for group, mean in means.items()}, "gap": gap}
