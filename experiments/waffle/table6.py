"""Table 6 of WAFFLe: alpha and F, without sub-populations; and what Table 7 shares with it."""

from collections.abc import Iterable, Sequence

import experiments.study as s
from experiments.waffle import settings

# Row -> alpha / F, column -> F.
_ALPHAS = {f"alpha/F = {alpha}": alpha for alpha in ("0.4", "0.6", "0.8", "1.0")}
_FACTORS = {f"F={factors}": factors for factors in ("80", "100", "150")}
_NOTE = "The four corners of the table, 30 rounds instead of 100, 2 seeds."
_CORNERS = (("0.4", "1.0"), ("80", "150"))


def experiment(number: int, setting: str, quotes: Sequence[str]) -> s.Experiment:
    """Returns Table 6 or 7, 'unimodal' or 'multimodal', with the printed rows."""
    partition = f"MNIST/{setting}"

    def cells(size: settings.Size, alphas: Iterable[str], factors: Iterable[str]):
        axes = {"alpha": {alpha: {"alpha_over_factors": alpha} for alpha in alphas}}
        axes["factors"] = {number: {"factors": f"dense_1={number}"} for number in factors}
        name = "/F={factors}, alpha/F={alpha}"
        return settings.cells(size, [partition], ["WAFFLe"], name, **axes)

    def accuracy(alpha: str, factors: str) -> s.Measure:
        cell = f"{partition}/WAFFLe/F={factors}, alpha/F={alpha}"
        return s.metric(cell, settings.ACCURACY)

    by_alpha = {f: accuracy("1.0", f) - accuracy("0.4", f) for f in ("80", "150")}
    by_f = {alpha: accuracy(alpha, "150") - accuracy(alpha, "80") for alpha in ("0.4", "1.0")}
    every = (_ALPHAS.values(), _FACTORS.values())
    return s.Experiment(
        f"waffle.table{number}",
        f"Table {number}: alpha and the number of factors, {setting}",
        scales={
            "smoke": s.Scale(cells(settings.SMOKE, *every), 1, settings.SMOKE_NOTE),
            "quick": s.Scale(cells(settings.SHORT, *_CORNERS), 2, _NOTE),
            "paper": s.Scale(cells(settings.PAPER, *every), 5, settings.PAPER_NOTE),
        },
        tables=[s.table("MNIST", _ALPHAS, _FACTORS, accuracy)],
        printed=[
            value
            for row, quote in zip(_ALPHAS, quotes, strict=True)
            for value in s.printed(row, list(_FACTORS), quote, f"Table {number}, {row}")
        ],
        claims=[
            s.claim(
                "The higher alpha is, the better.",
                {f"accuracy at alpha/F = 1.0 - 0.4, F={f}": gain for f, gain in by_alpha.items()},
            ),
            s.claim(
                "The higher F is, the better.",
                {f"accuracy at F=150 - F=80, alpha/F = {a}": gain for a, gain in by_f.items()},
            ),
        ],
    )


EXPERIMENT = experiment(
    6,
    "unimodal",
    ["93.20 94.07 94.42", "95.08 94.48 95.56", "95.56 95.15 96.08", "96.33 95.63 96.45"],
)

if __name__ == "__main__":
    s.main(EXPERIMENT, __doc__)
