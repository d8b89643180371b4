"""Figure 3 of WAFFLe: what images does a client's observed model take for each class?"""

from typing import Any

import numpy as np

import experiments.study as s
from experiments.waffle.attacking import PICTURES, invert
from experiments.waffle.settings import BRIEF, BRIEF_NOTE, FED_AVG, WAFFLE, attacks
from tff_het.attacks.attacker import FITTED, INITIAL, PRIVATE

_TRAINING = {"local_epochs": 5, "batch_size": 10, "learning_rate": 0.02, "momentum": 0.0}
_QUICK = {"dataset": "fashion_mnist", "model": "cnn_16_32", "num_examples": 300, "rounds": 4}
_QUICK |= {"search": {"steps": 300, "rate": 0.02, "smoothness": 0.0}, **_TRAINING}
_QUICK |= {"factors": {"conv_1": 25, "conv_2": 25}}
_PAPER = _QUICK | {"num_examples": 1000, "rounds": 20}
_NOTE = "300 examples per client and 4 rounds; 5 seeds."
_PAPER_NOTE = "1,000 examples per client and 20 rounds; 10 seeds."
_METHODS = {FED_AVG: "fed_avg", WAFFLE: "waffle"}
_SIMILAR = "Similarity of the images to the means of the client's classes"
# Row -> its cell, and where local variables come from.
_ROWS = {
    FED_AVG: (FED_AVG, FITTED),
    f"{WAFFLE}, local variables fitted": (WAFFLE, FITTED),
    f"{WAFFLE}, initial local variables": (WAFFLE, INITIAL),
    f"{WAFFLE}, local variables known": (WAFFLE, PRIVATE),
}
_COLUMNS: dict[str, Any] = {
    "Correlation": "correlation",
    "SSIM": "ssim",
    "Most like their own class": "recognised",
    "Gradient energy, first client": ("sharpness", s.Form(digits=4)),
}


def _draw(results: s.Results):
    """The first victim of the first seed, class by class."""
    from tff_het.evaluation import figures

    if (found := results.first(FED_AVG, WAFFLE)) is None:
        return None
    seed, runs = found
    pictures = {cell: np.load(run.file(PICTURES)) for cell, run in runs.items()}
    shown = {"Mean of the client's own": pictures[FED_AVG]["means"]}
    shown |= {row: pictures[cell][local] for row, (cell, local) in _ROWS.items()}
    classes = pictures[FED_AVG]["classes"]
    figure = figures.sheet(1.0 * len(classes) + 1.5, 1.1 * len(shown))
    figure.suptitle(f"seed {seed}, first client", fontsize="small")
    axes = figure.subplots(len(shown), len(classes), squeeze=False)
    for row, (name, images) in zip(axes, shown.items(), strict=True):
        for ax, image in zip(row, images, strict=True):
            ax.imshow(image, cmap="gray", vmin=0, vmax=1)
            ax.set(xticks=[], yticks=[])
        label = name.replace(", ", ",\n")
        row[0].set_ylabel(label, rotation=0, ha="right", va="center", fontsize="x-small")
    for ax, title in zip(axes[0], classes, strict=True):
        ax.set_title(title, fontsize="x-small")
    return figure


def _of(row: tuple[str, str], name: str) -> s.Measure:
    return s.metric(row[0], f"{row[1]}_{name}")


def _more(check: str, local: str, *names: str) -> dict[str, s.Measure]:
    gaps = {n: _of((FED_AVG, FITTED), n) - _of((WAFFLE, local), n) for n in names}
    return {f"{n} of FedAvg - {check}": gap for n, gap in gaps.items()}


EXPERIMENT = s.Experiment(
    "waffle.figure3",
    "Figure 3: model inversion",
    scales={
        "smoke": s.Scale(attacks(invert, _QUICK | BRIEF, _METHODS), 1, BRIEF_NOTE),
        "quick": s.Scale(attacks(invert, _QUICK, _METHODS), 5, _NOTE),
        "paper": s.Scale(attacks(invert, _PAPER, _METHODS), 10, _PAPER_NOTE),
    },
    tables=[s.table(_SIMILAR, _ROWS, _COLUMNS, _of, s.Form(digits=3))],
    claims=[
        s.claim(
            "Reconstructions on FedAvg are significantly sharper, the class identity far clearer "
            "than for WAFFLe: they have more gradient energy, correlate more with the means of the "
            "classes, and are more often most like their own class",
            _more(WAFFLE, FITTED, "sharpness", "correlation", "recognised"),
            form=s.Form(digits=4),
        ),
        s.claim(
            "Ours: FedAvg's reconstructions correlate more, even if local variables are known",
            _more(f"{WAFFLE}, local variables known", PRIVATE, "correlation"),
            form=s.Form(digits=4),
        ),
    ],
    figures=[
        s.Figure(
            "Images by class",
            "Reconstructions from one user, selected at random: in the words of the text those on "
            "FedAvg are 'significantly sharper, with the class identity far clearer'.",
            _draw,
        )
    ],
)
