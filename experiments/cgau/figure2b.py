"""Figure 2b of CGAU: CIFAR-10 on image embeddings, accuracy over the share of shuffling.

python -m experiments.cgau.figure2b --scale=quick --data_dir=DIR --output_dir=out

DIR/cifar10_embeddings holds what `python -m embeddings.extract --dataset=cifar10` makes, and
DIR/cifar10 the images, on which another network is trained for the last question.
"""

import functools
import sys
from collections.abc import Mapping

from experiments.cgau import own_features, settings
from experiments.cgau.settings import BASELINE, CGAU, COMMON, SHUFFLED, Size
from experiments.study import program, timing
from experiments.study.experiment import (
    PERCENT,
    Call,
    Cell,
    Check,
    Claim,
    Experiment,
    Figure,
    Form,
    Grid,
    Position,
    Printed,
    Scale,
)
from experiments.study.measures import metric

_DATA, _TIMES, _OWN = "cifar10", "times", "own features"
_ACCURACY = own_features.ACCURACY
_FORM = Form(digits=4)
_MORE = "Longer round than the baseline's, %"
_OWN_ROW = own_features.NAMES

_CIFAR = {
    **COMMON,
    "dataset": "cifar10_embeddings",
    "model": "mlp_two_layers_128",
    "client_learning_rate": "0.01",
    "validation_fraction": "0.2",
    "rounds": "500",
}
_LEVELS = ("0.0", "0.4", "1.0")
_SMOKE = Size(settings.SMOKE, SHUFFLED, seconds=1.0)
_QUICK = Size(
    {**_CIFAR, "rounds": "200", "eval_every": "10", "checkpoint_every": "50"}, _LEVELS, seconds=15.0
)
_PAPER = Size({**_CIFAR, "eval_every": "1"}, SHUFFLED, seconds=90.0)


def _extra(
    dataset: str, images: str, flags: Mapping[str, str], epochs: int, seconds: float
) -> tuple[Cell, ...]:
    bare = {k: v for k, v in flags.items() if k != "dataset"} | {"shuffle_fraction": "0.0"}
    return (
        Cell(
            _TIMES,
            Call(
                timing.round_times,
                {
                    "flags": {**flags, "shuffle_fraction": "0.0"},
                    "methods": ("cgau", "fed_avg"),
                    "rounds": 20,
                },
                (dataset,),
                alone=True,
            ),
            30.0,
        ),
        Cell(
            _OWN,
            Call(
                own_features.compare,
                {"dataset": images, "epochs": epochs, "flags": bare},
                (images,),
            ),
            seconds,
        ),
    )


EXPERIMENT = Experiment(
    paper="cgau",
    name="figure2b",
    title="Figure 2b: CIFAR-10, accuracy over the proportion of shuffled points",
    settings="CIFAR-10; the last hidden layer of an Inception network trained on ImageNet, images "
    "at 299 x 299. 128 units a layer, learning rate 0.01, 20 % validation, 500 epochs, which are "
    f"rounds here, 5 seeds. {settings.SCHEME}",
    scales={
        "smoke": Scale(
            (*_SMOKE.cells(_DATA), *_extra("digits", "digits", settings.SMOKE, 1, 10.0)),
            num_seeds=1,
            note="Only to see that it runs: zeros among digits, 3 clients, 2 rounds of 2 steps.",
        ),
        "quick": Scale(
            (
                *_QUICK.cells(_DATA),
                *_extra("cifar10_embeddings", "cifar10", _QUICK.common, 3, 100.0),
            ),
            num_seeds=5,
            note="The data are what the folder holds. Three levels of shuffling; 200 rounds "
            "instead of 500, tested every 10. The network for the features of CIFAR-10's own "
            "is trained for 3 epochs.",
        ),
        "paper": Scale(
            (
                *_PAPER.cells(_DATA),
                *_extra("cifar10_embeddings", "cifar10", _PAPER.common, 20, 1200.0),
            ),
            num_seeds=5,
            note="The paper's settings; the data are what the folder holds. The network for the "
            "features of CIFAR-10's own is a small one, trained for 20 epochs.",
        ),
    },
    grids=(
        settings.grid(_DATA, "Accuracy on all clients' test examples together", _ACCURACY, _FORM),
        Grid(
            "Cost",
            (Position(CGAU, _MORE, metric(_TIMES, "cgau_more"), Form(digits=0, factor=100.0)),),
        ),
        Grid(
            "Features from a network trained on CIFAR-10 itself, without shuffling",
            tuple(
                Position(row, "Accuracy", metric(_OWN, f"{name}_accuracy"), _FORM)
                for row, name in (*_OWN_ROW.items(), ("That network itself", "network"))
            ),
            compare=False,
        ),
    ),
    printed=(
        Printed(
            BASELINE,
            settings.column("1.0"),
            0.780,
            "from about 0.780 to 0.785",
            "Section 5",
        ),
        Printed(CGAU, settings.column("1.0"), 0.785, "from about 0.780 to 0.785", "Section 5"),
        Printed(CGAU, _MORE, 85, "took roughly 85% longer per epoch", "Section 4.2"),
    ),
    claims=(
        Claim(
            "Without shuffling, CGAU is better than the baseline.",
            (settings.check(_DATA, "0.0", _ACCURACY),),
        ),
        Claim(
            f"CGAU is better at the levels {', '.join(_LEVELS)}.",
            tuple(settings.check(_DATA, level, _ACCURACY) for level in _LEVELS),
        ),
        Claim(
            "CGAU is better at all levels of shuffling.",
            tuple(settings.check(_DATA, level, _ACCURACY) for level in SHUFFLED),
        ),
        Claim(
            "It gains more without shuffling than with everything shuffled.",
            (
                Check(
                    "gain without shuffling - with everything shuffled",
                    settings.gain(_DATA, "0.0", _ACCURACY) - settings.gain(_DATA, "1.0", _ACCURACY),
                    form=PERCENT,
                ),
            ),
        ),
        Claim(
            "It gains less on features from a network trained on CIFAR-10 itself.",
            (
                Check(
                    "gain on the embeddings - on CIFAR-10's own features",
                    settings.gain(_DATA, "0.0", _ACCURACY)
                    - (metric(_OWN, "cgau_accuracy") - metric(_OWN, "baseline_accuracy")),
                    form=PERCENT,
                ),
            ),
        ),
    ),
    figures=(
        Figure(
            "Accuracy over the proportion of shuffled points",
            "CGAU is above the baseline at all levels, most of all without shuffling; the baseline "
            "is about the same throughout.",
            functools.partial(settings.draw, data=_DATA, name=_ACCURACY, label="accuracy"),
        ),
    ),
    notes=(
        "Accuracy is that of all clients' test examples together. The time of a round is the "
        "median of training rounds of both methods in turn, in one program; CGAU's with private "
        "conditioning, where the paper's averages it. It depends on the machine, so that of all "
        "numbers on this page it alone differs when the run is made again.",
        "The network for the features of CIFAR-10's own is trained on all training images, also "
        "those that then choose the round, and is the same for both methods.",
        *settings.NOTES,
    ),
)


if __name__ == "__main__":
    sys.exit(program.main(EXPERIMENT, __doc__))
