"""Figure 3 of CGAU (Appendix A): XOR with two clients, by one gated unit and by two ReLU units."""

from typing import Any

import numpy as np

import experiments.study as s
from experiments.cgau import xor
from tff_het.evaluation import figures

_WITHOUT = {f"CGAU without client {x}": f"without_{x}" for x in ("modulation", "expression")}
_ROWS = {
    "MLP, two ReLU units": "mlp",
    "CGAU, one gated unit": "cgau",
    "CGAU, one gated unit, conditioning averaged": "cgau_shared",
    **_WITHOUT,
}
_COLUMNS = {"Accuracy, %": "accuracy", "Seeds solved, %": "solved", "Up - down client": "lead"}
_MOST = "Ours: one gated unit with conditioning classifies every test point from most seeds."
_MORE = "Ours: one CGAU solves XOR from more seeds than an MLP of two ReLU units."
_COSTS = "Turning off either kind of conditioning costs accuracy, each kind that of another client."
_BRIEF = s.call("xor", xor.solve, rounds=2, steps=2)
_FULL = s.call("xor", xor.solve, rounds=150, steps=10, scales_with="rounds")
_PANELS = {
    "mlp_logits": "(a) MLP",
    "cgau_logits": "(b) CGAU",
    "without_modulation_filter": "(c) filter without conditioning",
    "without_expression_gate": "(d) gate without conditioning",
    "cgau_filter": "(e) filter with conditioning",
    "cgau_gate": "(f) gate with conditioning",
    "without_modulation_logits": "(g) CGAU without modulation",
    "without_expression_logits": "(h) CGAU without expression",
}


def _draw(results: s.Results) -> Any:
    """The panels of the first seed that CGAU solved, or else of the first."""
    runs = {seed: found["xor"] for seed in results.seeds if (found := results.ok(["xor"], seed))}
    if not runs:
        return None
    seed, run = max(runs.items(), key=lambda item: item[1].metrics["cgau_solved"])
    panels = np.load(run.file(xor.FILE))
    classes = np.where(panels["y"] == 1, "lightskyblue", "lightsalmon")
    figure = figures.sheet(8, 15)
    figure.suptitle(f"seed {seed}, {'' if run.metrics['cgau_solved'] else 'not '}solved by CGAU")
    axes = figure.subplots(4, 2, sharex=True, sharey=True)
    for ax, (key, title) in zip(axes.flat, _PANELS.items(), strict=True):
        values = panels[key].reshape(len(xor.GRID), -1)
        colors, low = "viridis", -1 if key.endswith("filter") else 0
        if key.endswith("logits"):
            # Red is the negative class, as in the paper.
            colors, values = "RdBu", 1 / (1 + np.exp(-values))
        kind = {"cmap": colors, "vmin": low, "vmax": 1, "rasterized": True}
        figure.colorbar(ax.pcolormesh(xor.GRID, xor.GRID, values, **kind), ax=ax)
        ax.scatter(*panels["x"].T, s=9, c=classes, edgecolors="black", linewidths=0.3)
        ax.axhline(0, color="black", linewidth=0.8)
        ax.set(title=title, xlabel="$x_1$", ylabel="$x_2$")
    return figure


def _of(name: str, number: str) -> s.Measure:
    return s.metric("xor", f"{name}_{number}")


_COST = {f"CGAU - {r}": _of("cgau", "accuracy") - _of(x, "accuracy") for r, x in _WITHOUT.items()}
_LEADS = [_of(name, "lead") for name in _WITHOUT.values()]
# Twice the smaller of the two leads, below 0 where both are the same client's.
_APART = abs(_LEADS[0] - _LEADS[1]) - abs(_LEADS[0] + _LEADS[1])

EXPERIMENT = s.Experiment(
    "cgau.figure3",
    "Figure 3: XOR with two clients",
    scales={
        "smoke": s.Scale([_BRIEF], 1, "Only to see that it runs: two rounds of two steps."),
        "quick": s.Scale([_FULL], 20, "150 rounds of 10 steps, 20 seeds."),
        "paper": s.Scale([_FULL], 100, "As quick, with 100 seeds: the paper prints none."),
    },
    tables=[s.table("All seeds", _ROWS, _COLUMNS, _of)],
    claims=[
        s.claim(_MOST, {"share of seeds solved by CGAU": _of("cgau", "solved")}, above=0.5),
        s.claim(_MORE, {"CGAU - MLP": _of("cgau", "solved") - _of("mlp", "solved")}),
        s.claim(_COSTS, _COST | {"leads of the client that each kind spares, apart": _APART}),
    ],
    figures=[
        s.Figure(
            "Decision boundaries and activations, of the first seed that CGAU solves",
            "(a), (b) Both solve the problem; the boundaries are not described. (c) The "
            "filter splits on the sign of x_1; (d) the gate shuts off negative x_1. (e) Modulation "
            "moves the up client's filter towards positive x_1; (f) expression moves the down "
            "client's gate towards negative x_1. (g), (h) Without either, one client's half is "
            "wrong.",
            _draw,
        )
    ],
)
