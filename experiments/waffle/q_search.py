"""Searches q-FFL's exponent q on validation examples, as WAFFLe's paper does.

python -m experiments.waffle.q_search --scale=quick --data_dir=DIR --output_dir=out
"""

import sys

from experiments.study import program
from experiments.study.experiment import Check, Claim
from experiments.waffle import search
from experiments.waffle.settings import MNIST, Q_FFL, UNIMODAL

# Of the paper; the first is its choice.
_SEARCHED = ("0.001", "0.005", "0.01", "0.1", "1", "3", "5")
_MOST, _LEAST = (search.accuracy(MNIST, UNIMODAL, Q_FFL, "q", q) for q in ("0.001", "5"))

EXPERIMENT = search.experiment(
    name="q_search",
    title="Section 4.1: the search for q",
    about="q was searched in 0.001, 0.005, 0.01, 0.1, 1, 3 and 5.",
    method=Q_FFL,
    flag="q",
    values=_SEARCHED,
    few=("0.001", "0.1", "1", "5"),
    claims=(
        Claim(
            "(MNIST, unimodal) q = 0.001 is better than the largest q.",
            (Check("validation accuracy of q = 0.001 - q = 5", _MOST - _LEAST),),
        ),
    ),
    note="The paper does not say on which examples it searched. Here on a tenth of each client's "
    "training examples, set apart; test examples choose nothing, and Tables 1 and 2 have the "
    "printed 0.001.",
)


if __name__ == "__main__":
    sys.exit(program.main(EXPERIMENT, __doc__))
