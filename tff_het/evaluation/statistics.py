"""How a measure is distributed over the clients."""

import numpy as np
import numpy.typing as npt


def distribution(
    values: npt.ArrayLike, num_examples: npt.ArrayLike, *, higher_is_better: bool = True
) -> dict[str, float]:
    """Summarises one number for each client, such as those of a `LocalTest`.

    Clients without examples are left out. A nan of a client with examples (the
    loss of a model that has diverged) is not: it makes the results nan.

    Args:
      values: [K], one value a client.
      num_examples: [K], how many examples each value was measured on.
      higher_is_better: Which end is the worst: True for accuracies, False for losses.

    Returns:
      By name, in the values' unit except for the first, over the K' clients with examples:
      `num_clients`: K'.
      `mean`: each client counts the same.
      `weighted_mean`: each example counts the same; for accuracies, the accuracy
        on all clients' examples pooled.
      `std`: population standard deviation (ddof=0): these are all the clients and
        not a sample of them. As in the fairness tables of Li et al. (2020, q-FFL).
      `min`, `max`, `median`.
      `worst_decile`: mean over the worst tenth of the clients, ceil(K' / 10) of them.
      `decile_10`, `decile_20`, ..., `decile_90`: percentiles, linearly interpolated.

    Raises:
      ValueError: If the shapes are not both [K], a number of examples is
        negative, or no client has examples.
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
    worst_first = np.sort(values) if higher_is_better else np.sort(values)[::-1]
    # In whole numbers: 0.1 * 70 is more than 7, and would round up to 8.
    worst = worst_first[: -(-len(values) // 10)]
    percentages = range(10, 100, 10)
    deciles = np.percentile(values, percentages)
    return {
        "num_clients": len(values),
        "mean": float(np.mean(values)),
        "weighted_mean": float(np.average(values, weights=num_examples)),
        "std": float(np.std(values)),
        "min": float(np.min(values)),
        "max": float(np.max(values)),
        "median": float(np.median(values)),
        # Sorting puts nan last, where the best of the accuracies are.
        "worst_decile": float(np.nan if np.isnan(values).any() else np.mean(worst)),
        **{f"decile_{p}": float(d) for p, d in zip(percentages, deciles, strict=True)},
    }
