"""Table 6 of WAFFLe: alpha and F, without sub-populations; and what Table 7 shares with it."""

from collections.abc import Iterable, Sequence

import experiments.study as s
from experiments.waffle import settings

_ALPHAS, _FACTORS = ("0.4", "0.6", "0.8", "1.0"), ("80", "100", "150")
_LOW_HIGH, _FEW_MANY = ("0.4", "1.0"), ("80", "150")
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
    by_alpha = {
        f"accuracy at alpha/F = 1.0 - 0.4, F={f}": accuracy("1.0", f) - accuracy("0.4", f)
        for f in _FEW_MANY
    }
    by_factors = {
        f"accuracy at F=150 - F=80, alpha/F = {a}": accuracy(a, "150") - accuracy(a, "80")
        for a in _LOW_HIGH
    }
    corners = [accuracy(alpha, factors) for alpha in _LOW_HIGH for factors in _FEW_MANY]
    found = [
        value
        for row, quote in zip(rows, quotes, strict=True)
        for value in s.printed(row, list(columns), quote, f"Table {number}, {row}")
    ]
    values = [value.value for value in found]
    drastic = (max(values) - min(values)) / 100  # The paper calls its own range not drastic.
    spread = s.combined(lambda *of: max(of) - min(of), *corners)
    return s.Experiment(
        f"waffle.table{number}",
        f"Table {number}: alpha and the number of factors, {setting}",
        scales=settings.scales(
            cells(settings.SMOKE, _ALPHAS, _FACTORS),
            s.Scale(cells(settings.SHORT, _LOW_HIGH, _FEW_MANY), 14, _NOTE),
            cells(settings.PAPER, _ALPHAS, _FACTORS),
        ),
        tables=[s.table("MNIST", rows, columns, accuracy)],
        printed=found,
        claims=[
            s.claim("The higher alpha is, the better.", by_alpha),
            s.claim("The higher F is, the better.", by_factors),
            s.claim(
                "WAFFLe is fairly robust to both: accuracy does not vary drastically, by no more "
                "than in print.",
                {"printed range - range of the four corners": drastic - spread},
            ),
        ],
    )


EXPERIMENT = experiment(
    6,
    "unimodal",
    ["93.20 94.07 94.42", "95.08 94.48 95.56", "95.56 95.15 96.08", "96.33 95.63 96.45"],
)
