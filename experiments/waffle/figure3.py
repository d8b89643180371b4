"""Figure 3 of WAFFLe: what images does a client's observed model take for each class?

python -m experiments.waffle.figure3 --scale=quick --data_dir=DIR --output_dir=out
"""

import dataclasses
import sys
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from matplotlib.figure import Figure as Drawing

from experiments.study import program
from experiments.study.experiment import (
    Call,
    Cell,
    Check,
    Claim,
    Experiment,
    Figure,
    Form,
    Grid,
    Position,
    Scale,
)
from experiments.study.measures import metric
from experiments.study.store import Results
from experiments.waffle import attacking
from experiments.waffle.attacking import Course
from tff_het.attacks.attacker import FITTED, INITIAL, PRIVATE

FED_AVG, WAFFLE = "FedAvg", "WAFFLe"
_SEARCH = {"steps": 300, "rate": 0.02, "smoothness": 0.0}
_QUICK = Course(
    "fashion_mnist",
    "cnn_16_32",
    "fed_avg",
    options={},
    num_clients=3,
    num_examples=300,
    rounds=4,
    local_epochs=5,
    batch_size=10,
    learning_rate=0.02,
)
_PAPER = dataclasses.replace(_QUICK, num_examples=1000, rounds=20)
_SMOKE = dataclasses.replace(
    _QUICK, dataset="digits", model="mlp", num_examples=20, rounds=2, local_epochs=2
)
_FACTORS = {"conv_1": 25, "conv_2": 25}
# Name of a row, its cell and where local variables come from.
_ROWS = (
    (FED_AVG, FED_AVG, FITTED),
    (f"{WAFFLE}, missing part fitted", WAFFLE, FITTED),
    (f"{WAFFLE}, missing part as it begins", WAFFLE, INITIAL),
    (f"{WAFFLE}, private part known", WAFFLE, PRIVATE),
)
_COLUMNS = {"Correlation": "correlation", "SSIM": "ssim", "Most like their own class": "recognised"}
_CHANCE = 0.1  # With ten classes.


def _cells(course: Course, factors: Mapping[str, int], seconds: float) -> Iterator[Cell]:
    methods: dict[str, tuple[str, dict[str, Any]]] = {
        FED_AVG: ("fed_avg", {}),
        WAFFLE: ("waffle", {"factors": dict(factors)}),
    }
    for row, (method, options) in methods.items():
        chosen = dataclasses.replace(course, method=method, options=options)
        arguments = {**dataclasses.asdict(chosen), "search": _SEARCH}
        yield Cell(row, Call(attacking.invert, arguments, (course.dataset,)), seconds)


def _draw(results: Results) -> Drawing | None:
    """The first victim of the first seed, class by class."""
    found = ((seed, results.ok([FED_AVG, WAFFLE], seed)) for seed in results.seeds)
    seed, runs = next(((seed, runs) for seed, runs in found if runs), (0, None))
    if runs is None:
        return None
    pictures = {cell: np.load(run.file(attacking.PICTURES)) for cell, run in runs.items()}
    shown = {"Mean of the client's own": pictures[FED_AVG]["means"]}
    shown |= {name: pictures[cell][local] for name, cell, local in _ROWS}
    classes = pictures[FED_AVG]["classes"]
    figure = Drawing(figsize=(1.0 * len(classes) + 1.5, 1.1 * len(shown)), layout="constrained")
    figure.suptitle(f"seed {seed}, first client", fontsize="small")
    axes = figure.subplots(len(shown), len(classes), squeeze=False)
    for row, (name, images) in zip(axes, shown.items(), strict=True):
        for ax, image, title in zip(row, images, classes, strict=True):
            ax.imshow(image, cmap="gray", vmin=0, vmax=1)
            ax.set(xticks=[], yticks=[])
            if row is axes[0]:
                ax.set_title(title, fontsize="x-small")
        row[0].set_ylabel(
            name.replace(", ", ",\n"), rotation=0, ha="right", va="center", fontsize="x-small"
        )
    return figure


def _difference(name: str, local: str = FITTED):
    return metric(FED_AVG, f"{FITTED}_{name}") - metric(WAFFLE, f"{local}_{name}")


EXPERIMENT = Experiment(
    paper="waffle",
    name="figure3",
    title="Figure 3: model inversion",
    settings="Models of FedAvg and WAFFLe trained on Fashion-MNIST, and images recovered from one "
    "client by Fredrikson et al. (2015). Nothing else is printed. Ours: 3 clients with examples "
    "assigned at random, all in every round; rate 0.02, batches of 10 and 5 local epochs, as "
    "Appendix C; WAFFLe factorises the two convolutions, F = 25. Of the last round's update the "
    "image is looked for that the client's model is most sure of, for each class: "
    f"{_SEARCH['steps']} steps from black, of {_SEARCH['rate']} in the pixel that changes most.",
    scales={
        "smoke": Scale(
            tuple(_cells(_SMOKE, {"dense_1": 10}, 6.0)),
            num_seeds=1,
            note="Only to see that everything runs: digits, two rounds.",
        ),
        "quick": Scale(
            tuple(_cells(_QUICK, _FACTORS, 30.0)),
            num_seeds=5,
            note="300 examples a client and 4 rounds; 5 seeds.",
        ),
        "paper": Scale(
            tuple(_cells(_PAPER, _FACTORS, 200.0)),
            num_seeds=10,
            note="1,000 examples a client and 20 rounds; 10 seeds.",
        ),
    },
    grids=(
        Grid(
            "How like the means of the client's classes the images are",
            tuple(
                Position(row, column, metric(cell, f"{local}_{name}"), Form(digits=3))
                for row, cell, local in _ROWS
                for column, name in _COLUMNS.items()
            ),
        ),
    ),
    claims=(
        Claim(
            "Reconstructions on FedAvg are significantly sharper, the class identity far clearer "
            "than for WAFFLe: they correlate more with the means of the classes",
            (Check("FedAvg - WAFFLe", _difference("correlation"), form=Form(digits=3)),),
        ),
        Claim(
            "Ours: they still do for an attacker who knows WAFFLe's private part",
            (
                Check(
                    "FedAvg - WAFFLe, private part known",
                    _difference("correlation", PRIVATE),
                    form=Form(digits=3),
                ),
            ),
        ),
    ),
    figures=(
        Figure(
            "Images by class",
            "Reconstructions from one user, selected at random: in the words of the text those on "
            "FedAvg are 'significantly sharper, with the class identity far clearer'.",
            _draw,
        ),
    ),
    notes=(
        "Correlation (Pearson's, over pixels) and SSIM are with the mean of the client's own "
        "training images of the class, and means over all clients and classes. 'Most like their "
        "own class' is the share of images that correlate more with the mean of their own class "
        f"than with any other's: {_CHANCE} by chance. The attacker fits WAFFLe's missing part as "
        "in Table 3.",
    ),
)


if __name__ == "__main__":
    sys.exit(program.main(EXPERIMENT, __doc__))
