"""Table 6 of WAFFLe: alpha and F, without sub-populations; and what Table 7 shares with it."""

import itertools
from collections.abc import Iterable, Sequence

import experiments.study as s
from experiments.waffle import settings

_ALPHAS, _FACTORS = ("0.4", "0.6", "0.8", "1.0"), ("80", "100", "150")
_LOW_HIGH, _FEW_MANY = ("0.4", "1.0"), ("80", "150")
_SEEDS = {"unimodal": 14, "multimodal": 30}  # With 14, more factors being better was open.
_NOTE = "The four corners of the table, 30 rounds instead of 100."


def experiment(number: int, setting: str, quotes: Sequence[str]) -> s.Experiment:
    """Returns Table 6 or 7, 'unimodal' or 'multimodal', with the printed rows."""
    partition, name = f"MNIST/{setting}", "/F={factors}, alpha/F={alpha}"

    def cells(size: settings.Size, alphas: Iterable[str], factors: Iterable[str]):
        axes = {"alpha": {alpha: {"alpha_over_factors": alpha} for alpha in alphas}}
        axes["factors"] = {number: {"factors": f"dense_1={number}"} for number in factors}
        return settings.cells(size, [partition], ["WAFFLe"], name, **axes)

    def accuracy(alpha: str, factors: str) -> s.Measure:
        cell = f"{partition}/WAFFLe{name}".format(alpha=alpha, factors=factors)
        return s.metric(cell, settings.ACCURACY)

    columns = {f"F={factors}": factors for factors in _FACTORS}
    rows = {f"alpha/F = {alpha}": alpha for alpha in _ALPHAS}
    found = s.printed(dict(zip(rows, quotes, strict=True)), [*columns], f"Table {number}, {{row}}")
    values = [value.value for value in found]
    drastic = (max(values) - min(values)) / 100  # The paper calls its own range not drastic.

    def claims(alphas: Sequence[str], factors: Sequence[str], where: str) -> list[s.Claim]:
        by_alpha = {
            f"accuracy at alpha/F = {high} - {low}, F={f}": accuracy(high, f) - accuracy(low, f)
            for f in factors
            for low, high in itertools.pairwise(alphas)
        }
        by_factors = {
            f"accuracy at F={many} - F={few}, alpha/F = {a}": accuracy(a, many) - accuracy(a, few)
            for a in alphas
            for few, many in itertools.pairwise(factors)
        }
        of_all = itertools.starmap(accuracy, itertools.product(alphas, factors))
        spread = s.combined(lambda *of: max(of) - min(of), *of_all)
        robust = "WAFFLe is fairly robust to both: accuracy does not vary drastically, by no more "
        return [
            s.claim(f"The higher alpha is, the better{where}.", by_alpha),
            s.claim(f"The higher F is, the better{where}.", by_factors),
            s.claim(f"{robust}than in print{where}.", {"printed range - range": drastic - spread}),
        ]

    return s.Experiment(
        f"waffle.table{number}",
        f"Table {number}: alpha and the number of factors, {setting}",
        scales=settings.scales(
            cells(settings.SMOKE, _ALPHAS, _FACTORS),
            s.Scale(cells(settings.SHORT, _LOW_HIGH, _FEW_MANY), _SEEDS[setting], _NOTE),
            cells(settings.PAPER, _ALPHAS, _FACTORS),
        ),
        tables=[s.table("MNIST", rows, columns, accuracy)],
        printed=found,
        # At scale `quick` there are the corners alone.
        claims=claims(_LOW_HIGH, _FEW_MANY, "")
        + claims(_ALPHAS, _FACTORS, ", over the whole table"),
    )


EXPERIMENT = experiment(
    6,
    "unimodal",
    ["93.20 94.07 94.42", "95.08 94.48 95.56", "95.56 95.15 96.08", "96.33 95.63 96.45"],
)
