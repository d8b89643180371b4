"""Figure 3 of CGAU (Appendix A): XOR with two clients, by one gated unit and by two ReLU units.

python -m experiments.cgau.figure3 --scale=quick --output_dir=out
"""

import sys
from typing import Any

import numpy as np
from matplotlib.figure import Figure as Drawing

from experiments.cgau import xor
from experiments.study import program
from experiments.study.experiment import (
    PERCENT,
    Call,
    Cell,
    Check,
    Claim,
    Experiment,
    Figure,
    Grid,
    Position,
    Scale,
)
from experiments.study.measures import Measure, metric
from experiments.study.store import Results

_CELL = "xor"


def _draw(results: Results) -> Drawing | None:
    """The panels of the first seed that CGAU solved."""
    runs = {seed: found[_CELL] for seed in results.seeds if (found := results.ok([_CELL], seed))}
    if not runs:
        return None
    solved = [seed for seed, run in runs.items() if run.metrics["cgau_solved"]]
    shown = solved[0] if solved else next(iter(runs))
    panels = np.load(runs[shown].file(xor.FILE))
    titles = {
        "mlp_logits": "(a) MLP",
        "cgau_logits": "(b) CGAU",
        "filter_bare": "(c) filter without conditioning",
        "gate_bare": "(d) gate without conditioning",
        "filter": "(e) filter with conditioning",
        "gate": "(f) gate with conditioning",
        "without_modulation_logits": "(g) CGAU without modulation",
        "without_expression_logits": "(h) CGAU without expression",
    }
    figure = Drawing(figsize=(8, 15), layout="constrained")
    figure.suptitle(f"seed {shown}, {'solved' if solved else 'not solved'} by CGAU")
    axes = figure.subplots(4, 2, sharex=True, sharey=True)
    shape = (len(xor.GRID), len(xor.GRID))
    half = (xor.GRID[1] - xor.GRID[0]) / 2
    extent = (xor.GRID[0] - half, xor.GRID[-1] + half) * 2
    for ax, (key, title) in zip(axes.flat, titles.items(), strict=True):
        values = panels[key].reshape(shape)
        kind: dict[str, Any] = {"cmap": "viridis", "vmin": -1 if key.startswith("filter") else 0}
        if key.endswith("logits"):
            values = 1 / (1 + np.exp(-values))
            kind = {"cmap": "RdBu", "vmin": 0}  # Red is the negative class, as in the paper.
        image = ax.imshow(values, **kind, vmax=1, origin="lower", extent=extent)
        figure.colorbar(image, ax=ax)
        for label, color in ((0, "lightsalmon"), (1, "lightskyblue")):
            x = panels["x"][panels["y"] == label]
            ax.scatter(x[:, 0], x[:, 1], s=9, c=color, edgecolors="black", linewidths=0.3)
        ax.axhline(0, color="black", linewidth=0.8)
        ax.set(title=title, xlabel="$x_1$", ylabel="$x_2$")
    return figure


def _solved(name: str) -> Measure:
    return metric(_CELL, f"{name}_solved")


def _scale(rounds: int, steps: int, num_seeds: int, seconds: float, note: str) -> Scale:
    arguments = {"rounds": rounds, "steps": steps}
    return Scale((Cell(_CELL, Call(xor.solve, arguments), seconds),), num_seeds, note)


_TITLES = {name: title for name, (title, *_) in xor.NETWORKS.items()} | xor.ABLATIONS

EXPERIMENT = Experiment(
    paper="cgau",
    name="figure3",
    title="Figure 3: XOR with two clients",
    settings="Two classes, two features: the negative class has features of the same sign, the "
    'positive one of opposite signs. The "up" client has only points with positive x_2, the "down" '
    "client only those with negative. MLP with two hidden units, CGAU with one gated unit. Nothing "
    "else is printed; ours: 200 training points a client, "
    "clusters at (+-1, +-1) with standard deviation 0.2, all clients in each round, SGD at rate "
    "0.1 with momentum 0.9, batches of 32.",
    scales={
        "smoke": _scale(2, 2, 1, 6.0, "Only to see that it runs: two rounds of two steps."),
        "quick": _scale(150, 10, 20, 12.0, "150 rounds of 10 steps, 20 seeds."),
        "paper": _scale(150, 10, 100, 12.0, "As quick, with 100 seeds: the paper prints none."),
    },
    grids=(
        Grid(
            "All seeds",
            tuple(
                Position(title, column, metric(_CELL, f"{name}_{key}"))
                for name, title in _TITLES.items()
                for column, key in (("Accuracy, %", "accuracy"), ("Seeds solved, %", "solved"))
            ),
        ),
    ),
    claims=(
        Claim(
            "Ours, since the paper shows one solution of each: one gated unit with conditioning "
            "solves XOR (every test point right) from most seeds.",
            (Check("share of seeds solved by CGAU", _solved("cgau"), 0.5),),
        ),
        Claim(
            "Ours: it does so from more seeds than an MLP of two ReLU units.",
            (Check("CGAU - MLP", _solved("cgau") - _solved("mlp")),),
        ),
        Claim(
            "Turning off either kind of conditioning costs the trained unit accuracy.",
            tuple(
                Check(
                    f"accuracy of CGAU - {title}",
                    metric(_CELL, "cgau_accuracy") - metric(_CELL, f"{name}_accuracy"),
                    form=PERCENT,
                )
                for name, title in xor.ABLATIONS.items()
            ),
        ),
    ),
    figures=(
        Figure(
            "Decision boundaries and activations, of the first seed that CGAU solves",
            "Two classes in the four quadrants. (a) The MLP's boundaries are two parallel lines. "
            "(b) CGAU's differ between the two halves. (c) The filter has learnt a split on the "
            "sign of x_1; (d) the gate shuts off negative x_1. (e) Modulation moves the filter of "
            "the up client towards positive x_1; (f) expression moves the gate of the down client "
            "towards negative x_1. (g), (h) Without either, one client's half is wrong.",
            _draw,
        ),
    ),
    notes=(
        "Red is the negative class. Each half of a panel is the model of the client that lives "
        "there. Which client is served by modulation and which by expression, and the signs, need "
        "not be those of the paper's figure.",
    ),
)


if __name__ == "__main__":
    sys.exit(program.main(EXPERIMENT, __doc__))
