"""Searches the learning rate of WAFFLe's posteriors on validation examples.

python -m experiments.waffle.rate_search --scale=quick --data_dir=DIR --output_dir=out
"""

import sys

from experiments.study import program
from experiments.study.experiment import Check, Claim
from experiments.waffle import search
from experiments.waffle.settings import MNIST, UNIMODAL, WAFFLE

_SEARCHED = ("1", "1000", "10000", "100000", "1000000")
_CHOSEN = "100000"
_MOST, _LEAST = (
    search.accuracy(MNIST, UNIMODAL, WAFFLE, "posterior_rate", rate) for rate in (_CHOSEN, "1")
)

EXPERIMENT = search.experiment(
    name="rate_search",
    title="How many times faster than everything else posteriors learn",
    about="The paper does not say what SGD learns pi by; here by its logits, at a rate that is so "
    "many times that of everything else.",
    method=WAFFLE,
    flag="posterior_rate",
    values=_SEARCHED,
    few=("1", "1000", "100000"),
    claims=(
        Claim(
            "(MNIST, unimodal) Posteriors that learn faster than everything else do better.",
            (Check("validation accuracy of 100000 - 1", _MOST - _LEAST),),
        ),
    ),
    note="100,000 is what all tables have. It was chosen by one run each of 40 rounds on MNIST, "
    "unimodal, with seed 100, which is in no table, on a tenth of each client's training examples: "
    "0.900 with 1, 0.917 with 1,000, 0.949 with 10,000, 0.960 with 100,000, 0.942 with 1,000,000; "
    "FedAvg had 0.891.",
)


if __name__ == "__main__":
    sys.exit(program.main(EXPERIMENT, __doc__))
